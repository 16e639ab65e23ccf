//! `tortie cluster diags`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, LogParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tortie_client::connect::Connection;
use tortie_store::{Kind, Query};

use super::{Gatherer, commands, progress};
use crate::args::{ClusterDiags, Global};
use crate::commands::kubernetes::all;
use crate::config::open;
use crate::output::to_yaml;

/// Names with which pods of Calico and of Tortie begin.
const PODS: [&str; 4] = ["calico-", "tortie-", "tigera-operator", "typha-"];

/// Kinds that are many and say little to people.
const LARGE: [Kind; 1] = [Kind::IpamHandle];

pub(in crate::commands) async fn run(args: &ClusterDiags, global: &Global) -> Result<ExitCode> {
    let mut gatherer = Gatherer::new(&args.output_folder, "calico-diagnostics")?;
    let connection = open(global).await?;

    progress("resources")?;
    for kind in Kind::ALL
        .iter()
        .copied()
        .filter(|kind| !LARGE.contains(kind))
    {
        let file = format!("cluster/{}.yaml", kind.plural());
        gatherer.add(&file, resources(&connection, kind).await)?;
    }
    let program = std::env::current_exe().context("this program cannot be found")?;
    let program = program.to_string_lossy();
    for (file, arguments) in [
        ("cluster/status.json", ["status", "-o", "json"]),
        ("cluster/ipam.txt", ["ipam", "show", "--show-blocks"]),
        (
            "cluster/ipam-check.txt",
            ["ipam", "check", "--show-problem-ips"],
        ),
    ] {
        gatherer.add(file, commands::output(&program, &arguments).await)?;
    }
    if let Some(cluster) = &connection.cluster {
        of_kubernetes(args, cluster, &mut gatherer).await?;
    }
    gatherer.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// All of a kind, and what could not be read of it.
async fn resources(connection: &Connection, kind: Kind) -> Result<String> {
    let list = connection.client.list(&Query::all(kind)).await?;
    let mut text = String::new();
    for invalid in &list.invalid {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# {} cannot be read: {}", invalid.key, invalid.reason);
    }
    for item in &list.items {
        text.push_str("---\n");
        text.push_str(&to_yaml(&item.to_value())?);
    }
    Ok(text)
}

async fn of_kubernetes(
    args: &ClusterDiags,
    cluster: &kube::Client,
    gatherer: &mut Gatherer,
) -> Result<()> {
    progress("nodes and events of Kubernetes")?;
    gatherer.add("cluster/kubernetes-nodes.yaml", list::<Node>(cluster).await)?;
    gatherer.add("cluster/events.yaml", list::<Event>(cluster).await)?;
    let version = cluster.apiserver_version().await;
    let version = version
        .map_err(Into::into)
        .and_then(|version| to_yaml(&version));
    gatherer.add("cluster/kubernetes-version.yaml", version)?;

    progress("logs of pods")?;
    let pods = match all::<Pod>(cluster).await {
        Ok(pods) => pods,
        Err(error) => return gatherer.add("nodes", Err(error)),
    };
    let logs = wanted(&pods, args).into_iter().map(|log| async move {
        let text = log.read(cluster, args).await;
        (log, text)
    });
    let mut logs = futures::stream::iter(logs).buffered(args.max_parallelism.into());
    while let Some((log, text)) = logs.next().await {
        gatherer.add(&log.file(), text)?;
    }
    Ok(())
}

async fn list<K>(cluster: &kube::Client) -> Result<String>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    to_yaml(&all::<K>(cluster).await?)
}

/// The log of one container.
struct Log {
    node: String,
    namespace: String,
    pod: String,
    container: String,
}

impl Log {
    fn file(&self) -> String {
        let Self {
            node,
            namespace,
            pod,
            container,
        } = self;
        format!("nodes/{node}/{namespace}/{pod}/{container}.log")
    }

    async fn read(&self, cluster: &kube::Client, args: &ClusterDiags) -> Result<String> {
        let pods: Api<Pod> = Api::namespaced(cluster.clone(), &self.namespace);
        let parameters = LogParams {
            container: Some(self.container.clone()),
            timestamps: true,
            since_seconds: args.since.map(|since| since.as_secs().cast_signed()),
            ..LogParams::default()
        };
        Ok(pods.logs(&self.pod, &parameters).await?)
    }
}

/// The containers of our pods, of some nodes first, and of each kind of pod only so many.
fn wanted(pods: &[Pod], args: &ClusterDiags) -> Vec<Log> {
    let focus: BTreeSet<&str> = args.focus_nodes.iter().map(String::as_str).collect();
    let mut ours: Vec<&Pod> = pods.iter().filter(|pod| is_ours(pod)).collect();
    ours.sort_by_key(|pod| (!focus.contains(node_of(pod)), kind_of(pod).to_owned()));
    let mut taken: Vec<(&str, usize)> = Vec::new();
    let mut logs = Vec::new();
    for pod in ours {
        let kind = kind_of(pod);
        let is_in_focus = focus.contains(node_of(pod));
        let index = taken.iter().position(|(other, _)| *other == kind);
        let index = index.unwrap_or_else(|| {
            taken.push((kind, 0));
            taken.len() - 1
        });
        let count = &mut taken[index].1;
        if *count >= args.max_logs && !is_in_focus {
            continue;
        }
        *count += 1;
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        logs.extend(containers.map(|container| Log {
            node: node_of(pod).to_owned(),
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            pod: pod.metadata.name.clone().unwrap_or_default(),
            container: container.name.clone(),
        }));
    }
    logs
}

fn is_ours(pod: &Pod) -> bool {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    PODS.iter().any(|prefix| name.starts_with(prefix))
}

fn node_of(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or("unassigned")
}

/// What pods of one `DaemonSet` or `Deployment` have in common.
fn kind_of(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get("k8s-app").or_else(|| labels.get("app")));
    label.map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str, app: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": name, "namespace": "kube-system", "labels": {"k8s-app": app}},
            "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn so_many_logs_of_a_kind_are_taken_and_all_of_nodes_in_focus() {
        let pods: Vec<Pod> = (0..6)
            .map(|i| pod(&format!("calico-node-{i}"), &format!("n{i}"), "calico-node"))
            .chain([
                pod("web", "n0", "web"),
                pod("tortie-controllers-x", "n1", "tortie"),
            ])
            .collect();
        let args = ClusterDiags {
            max_logs: 2,
            focus_nodes: vec!["n4".to_owned(), "n5".to_owned(), "n3".to_owned()],
            ..ClusterDiags::default()
        };
        let files: Vec<String> = wanted(&pods, &args).iter().map(Log::file).collect();
        assert_eq!(
            files,
            [
                "nodes/n3/kube-system/calico-node-3/main.log",
                "nodes/n4/kube-system/calico-node-4/main.log",
                "nodes/n5/kube-system/calico-node-5/main.log",
                "nodes/n1/kube-system/tortie-controllers-x/main.log",
            ]
        );
    }
}
