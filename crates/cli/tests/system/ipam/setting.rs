//! A datastore with a node, and what is done to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_api::ipam_handle::IpamHandleSpec;
use tortie_api::{IpamHandle, Resource};
use tortie_client::Client;
use tortie_ipam::{AutoAssign, Ipam, Use, attribute};
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Key, Kind, Precondition, Query, Store};
use tortie_testkit::Etcd;

const NODE: &str = "node-1";

/// A datastore.
pub(crate) struct Setting {
    etcd: Etcd,
    folder: TempDir,
    runtime: Runtime,
    store: Arc<dyn Store>,
}

/// Whoever gets an address.
pub(crate) struct Holder {
    handle: String,
    attributes: BTreeMap<String, String>,
    used_for: Use,
}

/// A pod.
pub(crate) fn pod(name: &str) -> Holder {
    holder(
        format!("net.{name}"),
        &[
            (attribute::POD, name),
            (attribute::NAMESPACE, "default"),
            (attribute::NODE, NODE),
        ],
        Use::Workload,
    )
}

/// A container that is no pod.
pub(crate) fn container(id: &str) -> Holder {
    holder(
        format!("net.{id}"),
        &[(attribute::NODE, NODE)],
        Use::Workload,
    )
}

/// The tunnel of a node.
pub(crate) fn tunnel(node: &str) -> Holder {
    holder(
        format!("vxlan-tunnel-addr-{node}"),
        &[
            (attribute::TYPE, attribute::VXLAN_TUNNEL),
            (attribute::NODE, node),
        ],
        Use::Tunnel,
    )
}

fn holder(handle: String, attributes: &[(&str, &str)], used_for: Use) -> Holder {
    let owned = |text: &str| text.to_owned();
    Holder {
        handle,
        attributes: attributes
            .iter()
            .map(|(name, value)| (owned(name), owned(value)))
            .collect(),
        used_for,
    }
}

impl Setting {
    pub(crate) fn new() -> Self {
        let etcd = Etcd::start().unwrap();
        let runtime = Runtime::new().unwrap();
        let config = EtcdConfig {
            endpoints: vec![etcd.endpoint().to_owned()],
            ..EtcdConfig::default()
        };
        let store = runtime.block_on(EtcdStore::connect(&config)).unwrap();
        let setting = Self {
            etcd,
            folder: TempDir::new().unwrap(),
            runtime,
            store: Arc::new(store),
        };
        setting.apply(&format!(
            "apiVersion: projectcalico.org/v3\nkind: Node\nmetadata: {{name: {NODE}}}\n\
             spec: {{bgp: {{ipv4Address: 192.0.2.1/24}}}}\n"
        ));
        setting
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command and gives what it printed.
    #[track_caller]
    pub(crate) fn tortie(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail, and gives why it did.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs a command and gives its exit code and what it printed.
    pub(crate) fn run(&self, arguments: &str) -> (i32, String) {
        let output = self.output(arguments);
        let printed = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), printed)
    }

    fn output(&self, arguments: &str) -> Output {
        self.command().args(arguments.split(' ')).output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .env_clear()
            .env("DATASTORE_TYPE", "etcdv3")
            .env("ETCD_ENDPOINTS", self.etcd.endpoint());
        command
    }

    pub(crate) fn apply(&self, yaml: &str) {
        let file = self.folder().join("resource.yaml");
        std::fs::write(&file, yaml).unwrap();
        self.tortie(&format!("apply -f {}", file.display()));
    }

    pub(crate) fn pool(&self, name: &str, cidr: &str, block_size: u8) {
        self.apply(&format!(
            "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {{name: {name}}}\n\
             spec: {{cidr: {cidr}, blockSize: {block_size}}}\n"
        ));
    }

    /// The endpoint of a pod that has an address.
    pub(crate) fn endpoint(&self, pod: &str, address: &str) {
        self.apply(&format!(
            "apiVersion: projectcalico.org/v3\nkind: WorkloadEndpoint\n\
             metadata: {{name: node--1-k8s-{pod}-eth0, namespace: default}}\n\
             spec: {{orchestrator: k8s, node: {NODE}, pod: {pod}, endpoint: eth0, interfaceName: cali{pod}, \
             ipNetworks: [{address}/32]}}\n"
        ));
    }

    pub(crate) fn delete_endpoint(&self, pod: &str) {
        self.tortie(&format!(
            "delete workloadendpoint node--1-k8s-{pod}-eth0 -n default"
        ));
    }

    fn ipam(&self) -> Ipam {
        Ipam::new(Arc::clone(&self.store))
    }

    /// Gives somebody an IPv4 address.
    pub(crate) fn assign(&self, holder: &Holder) -> String {
        let request = AutoAssign {
            num4: 1,
            handle: Some(holder.handle.clone()),
            attributes: holder.attributes.clone(),
            used_for: holder.used_for,
            ..AutoAssign::on(NODE)
        };
        let assigned = self.runtime.block_on(self.ipam().auto_assign(&request));
        assigned.unwrap().v4.addresses[0].addr().to_string()
    }

    pub(crate) fn release(&self, handle: &str) {
        let released = self.runtime.block_on(self.ipam().release_by_handle(handle));
        released.unwrap();
    }

    /// The one block that there is.
    pub(crate) fn block(&self) -> String {
        let query = Query::all(Kind::IpamBlock);
        let list = self.runtime.block_on(self.store.list(&query)).unwrap();
        match &list.items[..] {
            [Resource::IpamBlock(block)] => block.spec.cidr.clone(),
            others => panic!("{others:?}"),
        }
    }

    /// A handle of a holder who stopped before it got an address.
    pub(crate) fn empty_handle(&self, id: &str) {
        let spec = IpamHandleSpec {
            handle_id: id.to_owned(),
            ..IpamHandleSpec::default()
        };
        let handle = IpamHandle::new("", id, spec);
        self.runtime
            .block_on(self.store.create(handle.into()))
            .unwrap();
    }

    pub(crate) fn delete_handle(&self, id: &str) {
        let key = Key::global(Kind::IpamHandle, id);
        let any = Precondition::default();
        let deleted = self.store.delete(&key, &any);
        self.runtime.block_on(deleted).unwrap();
    }

    /// The node stopped between claiming a block and confirming that.
    pub(crate) fn unconfirm_affinity(&self) {
        let client = Client::new(Arc::clone(&self.store));
        self.runtime.block_on(async {
            let list = client.list(&Query::all(Kind::BlockAffinity)).await.unwrap();
            for item in list.items {
                if let Resource::BlockAffinity(mut affinity) = item {
                    affinity.spec.state = BlockAffinityState::Pending;
                    self.store.update((*affinity).into()).await.unwrap();
                }
            }
        });
    }

    /// The keys of the datastore that begin so.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let arguments = ["get", "--prefix", "--keys-only", prefix];
        let printed = self.etcd.etcdctl(&arguments).unwrap();
        let keys = printed.lines().filter(|line| !line.is_empty());
        keys.map(str::to_owned).collect()
    }
}
