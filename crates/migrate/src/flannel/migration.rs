//! The steps of the move, in order.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Client as Cluster;
use tortie_client::Client;

use super::addresses::Addresses;
use super::cluster::{Kubernetes, NodeLabels};
use super::command::Command;
use super::order::{Progress, progress, to_move};
use super::settings::{Settings, Subnet};
use super::vtep::Vtep;
use super::{CALICO, FLANNEL, IN_PROGRESS_LABEL, NEITHER, NETWORK_LABEL};

/// The label of a `DaemonSet` that somebody else would put back.
const ADD_ON_LABEL: &str = "addonmanager.kubernetes.io/mode";

/// Where what flannel wrote is kept for the next start of this process.
const OWN_CONFIG: (&str, &str) = ("flannel-migration-config", "flannel_subnet_env");

/// Where Calico's nodes are told how large packets may be.
const CALICO_CONFIG: (&str, &str) = ("calico-config", "veth_mtu");

/// The folder of the file that flannel writes.
const FLANNEL_FOLDER: &str = "/run/flannel";

/// Calico's tunnel.
const CALICO_DEVICE: &str = "vxlan.calico";

/// Until then container runtimes have seen a new configuration: twice the time between their looks.
const CNI_SETTLES: Duration = Duration::from_secs(10);

/// How the move ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing to move, and why.
    NotNeeded(String),
    /// All nodes are in Calico's network.
    Done,
}

/// Why the move cannot go on. A process that starts anew tries again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What flannel says of a node is of no use.
    #[error("node {node}: {reason}")]
    Node {
        node: String,
        /// What is wrong.
        reason: String,
    },
    /// What flannel wrote is of no use.
    #[error("{FLANNEL_FOLDER}/subnet.env on node {node}: {reason}")]
    Subnet {
        node: String,
        /// What is wrong.
        reason: String,
    },
    /// Calico's `DaemonSet` lacks something.
    #[error("DaemonSet {daemonset}: {reason}")]
    DaemonSet {
        /// Its name.
        daemonset: String,
        /// What it lacks.
        reason: String,
    },
    /// The pool for all pods is there, and different.
    #[error("IPPool {pool} is there with {found}; flannel's network needs {wanted}")]
    OtherPool {
        /// Its name.
        pool: String,
        /// What it is like.
        found: String,
        /// What it should be like.
        wanted: String,
    },
    /// The address of a tunnel end is somebody else's.
    #[error(
        "{0} is the address of the node's tunnel, and somebody else holds it: tortie ipam why {0}"
    )]
    Occupied(IpAddr),
    /// A command on a node did not succeed.
    #[error("node {node}: {what} failed{}{log}", if log.is_empty() { "" } else { ": " })]
    Command {
        node: String,
        /// What was tried.
        what: &'static str,
        /// What it said.
        log: String,
    },
    /// Something took too long.
    #[error("{0} took too long")]
    Timeout(String),
    /// The datastore.
    #[error(transparent)]
    Store(#[from] tortie_store::Error),
    /// Addresses.
    #[error(transparent)]
    Ipam(#[from] tortie_ipam::Error),
    #[error(transparent)]
    Cluster(#[from] kube::Error),
}

/// Moves the cluster.
pub async fn run(client: Client, cluster: Cluster, settings: Settings) -> Result<Outcome, Error> {
    let kubernetes = Kubernetes::new(cluster);
    let mut settings = settings;
    if kubernetes
        .daemonset(&settings.flannel_namespace, Settings::canal())
        .await?
        .is_some()
    {
        tracing::info!("Canal daemonset exists, we are migrating from Canal to Calico.");
        settings = settings.for_canal();
    }
    let (namespace, name) = (&settings.flannel_namespace, &settings.flannel_daemonset);
    let Some(flannel) = kubernetes.daemonset(namespace, name).await? else {
        return Ok(Outcome::NotNeeded(format!(
            "there is no DaemonSet {namespace}/{name}"
        )));
    };
    let labels = flannel.metadata.labels.unwrap_or_default();
    if let Some(mode) = labels.get(ADD_ON_LABEL) {
        let reason = format!(
            "DaemonSet {namespace}/{name} has the label {ADD_ON_LABEL}={mode}: an add-on manager would put it back"
        );
        return Ok(Outcome::NotNeeded(reason));
    }
    let calico = kubernetes.calico(&settings).await?;
    let subnet = match settings.subnet.clone() {
        Some(subnet) => subnet,
        None => read_subnet(&kubernetes, &settings, &calico.image).await?,
    };
    let (map, key) = CALICO_CONFIG;
    let mtu = subnet.mtu.to_string();
    kubernetes
        .set_config(&settings.calico_namespace, map, key, &mtu)
        .await?;

    let addresses = Addresses::new(client);
    // Until Calico knows flannel's tunnel ends, it would take their packets for strangers'.
    addresses.set_vxlan(Some(false)).await?;
    addresses.prepare(&settings, &subnet).await?;
    let moving = Move {
        kubernetes,
        addresses,
        settings,
        image: calico.image,
        cni_file: calico.cni_file,
    };
    moving.take_over_addresses().await?;
    moving.addresses.set_vxlan(None).await?;
    let selector = (NETWORK_LABEL, FLANNEL);
    let Settings {
        flannel_namespace,
        flannel_daemonset,
        ..
    } = &moving.settings;
    moving
        .kubernetes
        .select_nodes(flannel_namespace, flannel_daemonset, selector, true)
        .await?;
    moving.move_nodes().await?;
    moving.finish().await?;
    Ok(Outcome::Done)
}

/// Reads what flannel wrote on this process's node, and keeps it: once flannel is gone it cannot be read any more.
async fn read_subnet(
    kubernetes: &Kubernetes,
    settings: &Settings,
    image: &str,
) -> Result<Subnet, Error> {
    let read = Command {
        name: "read-flannel",
        what: "reading flannel's configuration",
        shell: format!("cat /host{FLANNEL_FOLDER}/subnet.env"),
        folder: FLANNEL_FOLDER.to_owned(),
    };
    let text = kubernetes
        .run_on(&settings.node, &settings.calico_namespace, image, &read)
        .await?;
    let subnet = Subnet::parse(&text).map_err(|reason| Error::Subnet {
        node: settings.node.clone(),
        reason,
    })?;
    let (map, key) = OWN_CONFIG;
    let line = text.trim_end().replace('\n', ";");
    kubernetes
        .set_config(&settings.calico_namespace, map, key, &line)
        .await?;
    Ok(subnet)
}

struct Move {
    kubernetes: Kubernetes,
    addresses: Addresses,
    settings: Settings,
    /// The image of Calico's nodes, which has the programs that are run on nodes.
    image: String,
    /// The name of Calico's configuration for container runtimes.
    cni_file: String,
}

impl Move {
    /// For all nodes before the first is moved: pods of moved nodes must reach those of the others.
    async fn take_over_addresses(&self) -> Result<(), Error> {
        let nodes = self.kubernetes.nodes().await?;
        for node in to_move(&nodes, &self.settings.node) {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            if progress(node) == Progress::Flannel {
                let labels = NodeLabels::set(NETWORK_LABEL, FLANNEL);
                self.kubernetes.label(name, &labels).await?;
            }
            self.take_over(node).await?;
        }
        Ok(())
    }

    /// Gives a node in Calico's datastore what it has in flannel's network.
    async fn take_over(&self, node: &Node) -> Result<(), Error> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let vtep = Vtep::of(node, &self.settings.annotation_prefix);
        let vtep = vtep.map_err(|reason| Error::Node {
            node: name.to_owned(),
            reason,
        })?;
        self.addresses.take_over(name, &vtep).await
    }

    /// One after the other. Nodes that come meanwhile are taken in at the end of each round.
    async fn move_nodes(&self) -> Result<(), Error> {
        loop {
            let nodes = self.kubernetes.nodes().await?;
            let left = to_move(&nodes, &self.settings.node);
            let Some(next) = left.first() else {
                return Ok(());
            };
            let name = next.metadata.name.clone().unwrap_or_default();
            tracing::info!(
                node = name,
                left = left.len(),
                "Start setting up Calico network for node"
            );
            if progress(next) == Progress::Flannel {
                self.take_over(next).await?;
            }
            match self.move_node(&name).await {
                Ok(()) => tracing::info!(node = name, "Calico networking is running"),
                Err(error) => {
                    if self.kubernetes.has_node(&name).await? {
                        return Err(error);
                    }
                    tracing::info!(
                        node = name,
                        "Node has been removed, continue on to next node"
                    );
                }
            }
        }
    }

    async fn move_node(&self, node: &str) -> Result<(), Error> {
        let (kubernetes, settings) = (&self.kubernetes, &self.settings);
        kubernetes
            .label(node, &NodeLabels::set(IN_PROGRESS_LABEL, "true"))
            .await?;
        kubernetes.drain(node).await?;
        // Only now: what was drained needed the network to end in order.
        kubernetes
            .label(node, &NodeLabels::set(NETWORK_LABEL, NEITHER))
            .await?;
        self.run(node, &self.removal()).await?;
        tokio::time::sleep(CNI_SETTLES).await;
        kubernetes.delete_networked_pods(node).await?;
        kubernetes
            .label(node, &NodeLabels::set(NETWORK_LABEL, CALICO))
            .await?;
        kubernetes
            .await_agent(node, &settings.calico_namespace)
            .await?;
        self.run(node, &check_of_tunnel(&settings.cni_folder))
            .await?;
        kubernetes.set_schedulable(node, true).await?;
        kubernetes
            .label(node, &NodeLabels::unset(IN_PROGRESS_LABEL))
            .await
    }

    async fn run(&self, node: &str, command: &Command) -> Result<(), Error> {
        let namespace = &self.settings.calico_namespace;
        self.kubernetes
            .run_on(node, namespace, &self.image, command)
            .await
            .map(drop)
    }

    /// Takes flannel's devices from a node, and with them its routes. A configuration that fails stands before flannel's
    /// until Calico's takes its place, so that no new pod is connected in between.
    fn removal(&self) -> Command {
        let Settings {
            cni_folder, vni, ..
        } = &self.settings;
        let stand_in =
            r#"{ "name": "dummy", "plugins": [{ "type": "flannel-migration-in-progress" }]}"#;
        let file = format!("/host{cni_folder}/{}", self.cni_file);
        let devices: &[(String, &str)] = &[
            (format!("flannel.{vni}"), ""),
            ("cni0".to_owned(), " type bridge"),
        ];
        // Canal has no bridge.
        let devices = if self.settings.is_canal() {
            &devices[..1]
        } else {
            devices
        };
        let is_there: Vec<String> = devices
            .iter()
            .map(|(device, _)| format!("ip link show {device}"))
            .collect();
        let delete = devices.iter().map(|(device, kind)| {
            format!("if ip link show {device}; then ip link delete {device}{kind}; fi")
        });
        let delete: Vec<String> = delete.collect();
        Command {
            name: "remove-flannel",
            what: "removing flannel's devices",
            // Without its devices flannel is gone already, and the file may be Calico's own.
            shell: format!(
                "if {}; then echo '{stand_in}' > {file} && {}; fi",
                is_there.join(" || "),
                delete.join(" && ")
            ),
            folder: cni_folder.clone(),
        }
    }

    async fn finish(&self) -> Result<(), Error> {
        let (kubernetes, settings) = (&self.kubernetes, &self.settings);
        kubernetes
            .delete_daemonset(&settings.flannel_namespace, &settings.flannel_daemonset)
            .await?;
        let selector = (NETWORK_LABEL, CALICO);
        kubernetes
            .select_nodes(
                &settings.calico_namespace,
                &settings.calico_daemonset,
                selector,
                false,
            )
            .await?;
        for node in kubernetes.nodes().await? {
            let name = node.metadata.name.unwrap_or_default();
            kubernetes
                .label(&name, &NodeLabels::unset(NETWORK_LABEL))
                .await?;
        }
        Ok(())
    }
}

fn check_of_tunnel(folder: &str) -> Command {
    Command {
        name: "check-calico",
        what: "waiting for Calico's tunnel",
        shell: format!(
            "for i in $(seq 1 10); do if ip link show {CALICO_DEVICE}; then exit 0; fi; sleep 1; done; exit 1"
        ),
        folder: folder.to_owned(),
    }
}
