//! A node with pods, and an etcd on it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tortie_api::Resource;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Error, Key, Precondition, Store};
use tortie_testkit::Etcd;
use tortie_testkit::net::{Datagrams, Namespace, Node, Pod, open_passage};

use crate::killed::objects::{GUESTS, common, endpoint};

/// Where packets go from and to, and the datastore that says which of them arrive.
pub(crate) struct Site {
    pub(crate) datastore: Arc<Datastore>,
    pub(crate) etcd: Etcd,
    pub(crate) pods: Pods,
}

/// A node, and pods on it.
pub(crate) struct Pods {
    pub(crate) client: Pod,
    pub(crate) server: Pod,
    pub(crate) node: Node,
}

/// The datastore, as a user writes to it.
pub(crate) struct Datastore {
    store: Arc<dyn Store>,
    /// Its threads are in the node's namespace.
    runtime: Runtime,
}

/// A node on which no agent has been, and the datastore as it is seen from there.
pub(crate) struct FreshNode {
    pub(crate) node: Node,
    pub(crate) endpoint: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let pods = Pods::new();
        let namespace = pods.node.namespace();
        let etcd = namespace.run(Etcd::start).unwrap().unwrap();
        let config = EtcdConfig {
            endpoints: vec![etcd.endpoint().to_owned()],
            ..EtcdConfig::default()
        };
        let connect = async move { EtcdStore::connect(&config).await };
        let datastore = Datastore::new(namespace, connect);
        for resource in common().into_iter().chain(pods.endpoints()) {
            datastore.put(resource);
        }
        Self {
            datastore: Arc::new(datastore),
            etcd,
            pods,
        }
    }

    /// A node without pods, for which the datastore is the same.
    pub(crate) fn fresh_node(&self) -> FreshNode {
        let node = Node::new().unwrap();
        let endpoint = open_passage(
            node.namespace(),
            self.pods.node.namespace(),
            self.etcd.endpoint(),
        )
        .unwrap();
        FreshNode { node, endpoint }
    }
}

impl Pods {
    pub(crate) fn new() -> Self {
        let mut node = Node::new().unwrap();
        Self {
            client: add_pod(&mut node, "client", 1),
            server: add_pod(&mut node, "server", 2),
            node,
        }
    }

    /// What the datastore has of them.
    pub(crate) fn endpoints(&self) -> [Resource; 2] {
        [
            of_pod("client", &self.client, &[("list", GUESTS)]),
            of_pod("server", &self.server, &[("role", "server")]),
        ]
    }

    /// Datagrams from the client to the server, which go on.
    pub(crate) fn datagrams(&self, port: u16) -> Datagrams {
        let [client, server] = [&self.client, &self.server];
        let destination = SocketAddr::new(server.addresses[0], port);
        let source = client.addresses[0];
        Datagrams::start(&client.namespace, source, &server.namespace, destination).unwrap()
    }
}

impl Datastore {
    /// Connects from a namespace.
    pub(crate) fn new<S: Store + 'static>(
        namespace: &Namespace,
        connect: impl Future<Output = Result<S, Error>> + Send + 'static,
    ) -> Self {
        let runtime = namespace.run(Runtime::new).unwrap().unwrap();
        let connect = runtime.spawn(connect);
        let store = runtime.block_on(connect).unwrap().unwrap();
        Self {
            store: Arc::new(store),
            runtime,
        }
    }

    /// Writes a resource, in place of the one that is there.
    #[track_caller]
    pub(crate) fn put(&self, resource: Resource) {
        self.try_put(resource).unwrap();
    }

    /// The same, where the datastore may refuse.
    pub(crate) fn try_put(&self, mut resource: Resource) -> Result<(), Error> {
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

    /// Deletes a resource if it is there.
    #[track_caller]
    pub(crate) fn delete(&self, resource: &Resource) {
        let (store, key) = (Arc::clone(&self.store), Key::of(resource));
        self.wait_for(async move {
            match store.delete(&key, &Precondition::default()).await {
                Err(Error::NotFound(_)) => Ok(()),
                deleted => deleted.map(drop),
            }
        })
        .unwrap();
    }

    fn wait_for(
        &self,
        task: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let task = self.runtime.spawn(task);
        self.runtime.block_on(task).unwrap()
    }
}

fn add_pod(node: &mut Node, name: &str, number: u8) -> Pod {
    let addresses = [
        IpAddr::from([10, 65, 0, number]),
        IpAddr::from([0xfd00, 0x65, 0, 0, 0, 0, 0, u16::from(number)]),
    ];
    node.add_pod(&format!("cali{name}"), &addresses).unwrap()
}

fn of_pod(name: &str, pod: &Pod, labels: &[(&str, &str)]) -> Resource {
    let networks = pod.addresses.iter().map(|address| {
        let length = if address.is_ipv4() { 32 } else { 128 };
        format!("{address}/{length}")
    });
    let networks: Vec<String> = networks.collect();
    endpoint(name, &pod.interface, &networks, labels)
}
