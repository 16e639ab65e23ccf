//! A node with a datastore, and who is around it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tortie_api::{Kind, Resource};
use tortie_client::Client;
use tortie_kernel::route::{Route, Scope};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Error, Key, Precondition, Store};
use tortie_testkit::net::{Namespace, Node, Pod, Prober};

use crate::e2e::agent::{RunningAgent, Start};
use crate::e2e::flow::{Flow, Machine, differences, eventually};
use crate::e2e::objects::{OPEN, labelled, open_profile};
use crate::e2e::planes::Plane;

/// The node's name.
pub(crate) const NODE: &str = "node1";

/// A node, its datastore, and packets between all that are joined to it.
pub(crate) struct Setting {
    pub(crate) node: Node,
    pub(crate) store: Arc<dyn Store>,
    prober: Prober,
    runtime: Runtime,
    folder: TempDir,
}

impl Setting {
    /// A node with a datastore in a file, which holds what every datastore does and a profile that allows everything.
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
        let node = Node::new().unwrap();
        let runtime = runtime(node.namespace());
        Self::with_store(node, Arc::new(store), runtime, folder)
    }

    /// The same with another datastore, which is talked to on this runtime.
    pub(crate) fn with_store(
        node: Node,
        store: Arc<dyn Store>,
        runtime: Runtime,
        folder: TempDir,
    ) -> Self {
        let setting = Self {
            node,
            store,
            prober: Prober::new(),
            runtime,
            folder,
        };
        let client = Client::new(Arc::clone(&setting.store));
        setting.wait_for(async move { client.ensure_initialized("", "").await.unwrap() });
        setting.put(open_profile());
        setting
    }

    /// Starts an agent and waits until everything is in force.
    pub(crate) fn start_agent(&self, plane: Plane, parameters: &[(&str, &str)]) -> RunningAgent {
        RunningAgent::start(plane, &self.start(parameters))
    }

    /// Starts an agent that reads another store, and waits until everything is in force.
    pub(crate) fn start_agent_on(
        &self,
        store: Arc<dyn Store>,
        plane: Plane,
        parameters: &[(&str, &str)],
    ) -> RunningAgent {
        let start = Start {
            store,
            ..self.start(parameters)
        };
        RunningAgent::start(plane, &start)
    }

    /// Starts an agent, and waits for nothing.
    pub(crate) fn begin_agent(&self, plane: Plane, parameters: &[(&str, &str)]) -> RunningAgent {
        RunningAgent::begin(plane, &self.start(parameters)).0
    }

    fn start<'a>(&'a self, parameters: &'a [(&'a str, &'a str)]) -> Start<'a> {
        Start {
            namespace: self.node.namespace(),
            store: Arc::clone(&self.store),
            runtime: self.runtime.handle().clone(),
            status_folder: self.folder.path().join("status"),
            parameters,
            takes_over: false,
        }
    }

    /// Starts an agent that takes the kernel from another one.
    pub(crate) fn take_over(&self, plane: Plane) -> RunningAgent {
        let start = Start {
            takes_over: true,
            ..self.start(&[])
        };
        RunningAgent::start(plane, &start)
    }

    /// Whether CNI plugins are told that policy is in force.
    pub(crate) fn is_said_to_be_ready(&self) -> bool {
        self.ready_file().exists()
    }

    /// As after a start of the machine.
    pub(crate) fn forget_ready(&self) {
        std::fs::remove_file(self.ready_file()).unwrap();
    }

    /// The path of a file that is removed in the end.
    pub(crate) fn new_file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ready_file(&self) -> PathBuf {
        self.folder.path().join("status").join("ready")
    }

    /// Writes a resource, in place of the one that is there.
    #[track_caller]
    pub(crate) fn put(&self, resource: Resource) {
        self.write(resource).unwrap();
    }

    /// Writes a resource if the datastore answers.
    pub(crate) fn try_put(&self, resource: Resource) -> bool {
        self.write(resource).is_ok()
    }

    fn write(&self, mut resource: Resource) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        self.wait_for(async move {
            match store.create(resource.clone()).await {
                Err(Error::AlreadyExists(_)) => {
                    let there = store.get(&Key::of(&resource)).await?;
                    let revision = there.metadata().resource_version.clone();
                    resource.metadata_mut().resource_version = revision;
                    store.update(resource).await.map(drop)
                }
                created => created.map(drop),
            }
        })
    }

    /// Deletes a resource, which must be there.
    pub(crate) fn delete(&self, resource: &Resource) {
        let (store, key) = (Arc::clone(&self.store), Key::of(resource));
        self.wait_for(async move {
            store.delete(&key, &Precondition::default()).await.unwrap();
        });
    }

    /// Adds a pod with the open profile, to the node and to the datastore.
    pub(crate) fn add_pod(&mut self, name: &str, number: u8, labels: &Value) -> Machine {
        let (machine, endpoint) = self.prepare_pod(name, number, labels);
        self.put(endpoint);
        machine
    }

    /// Adds a pod to the node; its endpoint is still to be written.
    pub(crate) fn prepare_pod(
        &mut self,
        name: &str,
        number: u8,
        labels: &Value,
    ) -> (Machine, Resource) {
        let addresses = [
            IpAddr::from([10, 65, 0, number]),
            IpAddr::from([0xfd00, 0x65, 0, 0, 0, 0, 0, u16::from(number)]),
        ];
        let pod = self
            .node
            .add_pod(&format!("cali{name}"), &addresses)
            .unwrap();
        let networks = addresses.map(|address| IpNet::from(address).to_string());
        let spec = json!({
            "node": NODE,
            "orchestrator": "k8s",
            "pod": name,
            "endpoint": "eth0",
            "interfaceName": pod.interface,
            "ipNetworks": networks,
            "mac": pod.mac.to_string(),
            "profiles": [OPEN],
            "ports": [{"name": "http", "protocol": "TCP", "port": 8000 + u16::from(number)}],
        });
        let full_name = format!("{NODE}-k8s-{name}-eth0");
        let endpoint = labelled(Kind::WorkloadEndpoint, "default", &full_name, labels, &spec);
        (self.machine_of(name, &pod), endpoint)
    }

    /// A pod as a machine to send from and to.
    pub(crate) fn machine_of(&mut self, name: &str, pod: &Pod) -> Machine {
        self.machine(name, &pod.namespace, &pod.addresses)
    }

    /// A namespace as a machine to send from and to.
    pub(crate) fn machine(
        &mut self,
        name: &str,
        namespace: &Namespace,
        addresses: &[IpAddr],
    ) -> Machine {
        Machine {
            name: name.to_owned(),
            namespace: namespace.clone(),
            site: self.prober.add_site(namespace),
            addresses: addresses.to_vec(),
        }
    }

    /// Adds a machine on a link of its own, and gives it and the node as it is seen from there.
    pub(crate) fn add_external(&mut self, interface: &str, number: u8) -> (Machine, Machine) {
        let [node, machine] = [1, 2].map(|host| {
            let v6 = IpAddr::from([0xfd00, 0x99, u16::from(number), 0, 0, 0, 0, u16::from(host)]);
            [(IpAddr::from([192, 168, number, host]), 24), (v6, 64)]
                .map(|(address, length)| IpNet::new(address, length).unwrap())
        });
        let external = self.node.add_external(interface, &node, &machine).unwrap();
        let namespace = self.node.namespace().clone();
        for (namespace, interface) in [(&namespace, interface), (&external.namespace, "eth0")] {
            keep_neighbours(namespace, interface);
        }
        let name = format!("the node at {interface}");
        let node = self.machine(&name, &namespace, &node.map(|net| net.addr()));
        let name = format!("the machine at {interface}");
        let machine = machine.map(|net| net.addr());
        let machine = self.machine(&name, &external.namespace, &machine);
        (machine, node)
    }

    /// Lets the node send what is for a network out of an interface.
    pub(crate) fn route(&mut self, network: IpNet, interface: &str) {
        let socket = self.node.socket();
        let device = socket.link(interface).unwrap().map(|link| link.index);
        let route = Route {
            device,
            scope: Scope::LINK,
            ..Route::to(network)
        };
        socket.execute(|batch| batch.add_route(&route)).unwrap();
    }

    /// Waits until packets arrive, or do not, as expected: all of them in one round.
    #[track_caller]
    pub(crate) fn await_flows(&mut self, expected: &[(Flow<'_>, bool)]) {
        let none: Vec<String> = Vec::new();
        let prober = &mut self.prober;
        eventually("flows", &none, || differences(prober, expected));
    }

    /// Asserts that packets arrive, or do not, as expected.
    #[track_caller]
    pub(crate) fn check_flows(&mut self, expected: &[(Flow<'_>, bool)]) {
        let differences = self.flow_differences(expected);
        assert!(differences.is_empty(), "{differences:#?}");
    }

    /// Which packets arrive or not contrary to what is expected.
    pub(crate) fn flow_differences(&mut self, expected: &[(Flow<'_>, bool)]) -> Vec<String> {
        differences(&mut self.prober, expected)
    }

    /// Runs a program on the node, which must succeed, and gives its output.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, arguments: &str) -> String {
        let mut command = std::process::Command::new(program);
        command.args(arguments.split_whitespace());
        let output = self.node.namespace().run(|| command.output());
        let output = output.unwrap().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a task on the runtime, whose threads are in the node's namespace, and waits for it.
    fn wait_for<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.runtime.spawn(task);
        self.runtime.block_on(task).unwrap()
    }
}

/// Lets neighbours that were found once be known for the whole test: policy for the node, which is asked about the search
/// for neighbours too, may deny it.
fn keep_neighbours(namespace: &Namespace, interface: &str) {
    let file = format!("/proc/sys/net/ipv6/neigh/{interface}/base_reachable_time_ms");
    let write = || std::fs::write(file, "3600000");
    namespace.run(write).unwrap().unwrap();
}

/// A runtime whose threads are in a namespace.
pub(crate) fn runtime(namespace: &Namespace) -> Runtime {
    namespace.run(Runtime::new).unwrap().unwrap()
}
