//! Whichever call to the datastore fails, before or after it took effect: a failed ADD leaves nothing, and a failed DEL
//! can be repeated.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tortie_api::ip_pool::IpPoolSpec;
use tortie_api::node::NodeSpec;
use tortie_api::{IpPool, Node as NodeResource};
use tortie_client::Client;
use tortie_cni::{Arguments, Command, Context, Datastore, NetworkConfig, Request, add, check, del};
use tortie_error::Causes;
use tortie_kernel::route::Socket;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{
    Error, Key, Kind, List, Precondition, Query, Resource, Result, Revision, Store, Watch, Write,
};
use tortie_testkit::Etcd;
use tortie_testkit::cni::path;
use tortie_testkit::net::{Namespace, Node};

/// When a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// The datastore never hears of it.
    Request,
    /// It takes effect, and nobody hears of that.
    Answer,
}

/// A datastore of which one call fails.
struct Faulty {
    inner: Arc<dyn Store>,
    /// Calls until then.
    left: AtomicUsize,
    has_failed: AtomicBool,
    loss: Loss,
}

impl Faulty {
    async fn call<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let fails = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        if !fails {
            return work.await;
        }
        self.has_failed.store(true, Ordering::SeqCst);
        if self.loss == Loss::Answer {
            work.await?;
        }
        Err(Error::unavailable("injected", "a fault"))
    }
}

#[async_trait]
impl Store for Faulty {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.call(self.inner.get(key)).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.call(self.inner.list(query)).await
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        self.call(self.inner.create(resource)).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        self.call(self.inner.update(resource)).await
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.call(self.inner.delete(key, precondition)).await
    }

    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        self.call(self.inner.write_together(writes)).await
    }

    async fn list_affinities(&self, owner: &str) -> Result<List> {
        self.call(self.inner.list_affinities(owner)).await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        self.inner.watch(query, from).await
    }
}

struct World {
    config: NetworkConfig,
    raw: Vec<u8>,
    container: Namespace,
    store: Arc<dyn Store>,
}

impl World {
    async fn new(etcd: &Etcd, lock: PathBuf) -> Self {
        let store = EtcdStore::connect(&EtcdConfig::new([etcd.endpoint()])).await;
        let store: Arc<dyn Store> = Arc::new(store.unwrap());
        let client = Client::new(Arc::clone(&store));
        client.ensure_initialized("", "").await.unwrap();
        for (name, cidr) in [("four", "10.65.0.0/26"), ("six", "fd00:65::/116")] {
            let spec = IpPoolSpec {
                cidr: cidr.to_owned(),
                node_selector: "all()".to_owned(),
                ..IpPoolSpec::default()
            };
            client
                .create(IpPool::new("", name, spec).into())
                .await
                .unwrap();
        }
        let node = NodeResource::new("", "n1", NodeSpec::default());
        client.create(node.into()).await.unwrap();
        let raw = json!({
            "cniVersion": "1.0.0", "name": "net", "nodename": "n1", "nodename_file_optional": true,
            "require_agent": false,
            "ipam": {"type": "calico-ipam", "assign_ipv6": "true"}, "ipam_lock_file": lock,
        });
        let raw = raw.to_string().into_bytes();
        Self {
            config: NetworkConfig::parse(&raw).unwrap(),
            raw,
            container: Namespace::new().unwrap(),
            store,
        }
    }

    fn request(&self, command: Command) -> Request {
        Request {
            command,
            container_id: "c1".to_owned(),
            namespace: path(&self.container).into(),
            interface: "eth0".to_owned(),
            arguments: Arguments::parse("K8S_POD_NAME=web;K8S_POD_NAMESPACE=shop").unwrap(),
            path: Vec::new(),
        }
    }

    fn context<'a>(&'a self, request: &'a Request, store: Arc<dyn Store>) -> Context<'a> {
        let datastore = Datastore::of_store(store, "faults".to_owned());
        Context::new(request, &self.config, &self.raw, datastore, &|_| None).unwrap()
    }

    /// The same datastore, of which the call with this number fails.
    fn faulty(&self, number: usize, loss: Loss) -> Arc<Faulty> {
        Arc::new(Faulty {
            inner: Arc::clone(&self.store),
            left: AtomicUsize::new(number),
            has_failed: AtomicBool::new(false),
            loss,
        })
    }

    async fn list(&self, kind: Kind) -> Vec<Resource> {
        self.store.list(&Query::all(kind)).await.unwrap().items
    }

    async fn assert_nothing_left(&self, when: &str) {
        for kind in [Kind::WorkloadEndpoint, Kind::IpamHandle] {
            let left = self.list(kind).await;
            assert!(left.is_empty(), "{when}: {left:?}");
        }
        for block in self.list(Kind::IpamBlock).await {
            let Resource::IpamBlock(block) = block else {
                continue;
            };
            let held = block.spec.allocations.iter().flatten().count();
            assert_eq!(held, 0, "{when}: {}", block.spec.cidr);
        }
        let links = Socket::open().unwrap().links().unwrap();
        let is_left = links.iter().any(|link| link.name.starts_with("cali"));
        assert!(!is_left, "{when}: {links:?}");
    }
}

/// Runs a test in a node's network namespace, with an etcd.
fn on_node<F: Future<Output = ()>>(test: impl FnOnce(World) -> F + Send) {
    let node = Node::new().unwrap();
    let etcd = node.namespace().run(Etcd::start).unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            test(World::new(&etcd, folder.path().join("lock")).await).await;
        });
    };
    node.namespace().run(work).unwrap();
}

async fn every_add(world: World, loss: Loss) {
    let (adding, deleting) = (world.request(Command::Add), world.request(Command::Del));
    let mut failures = 0;
    for number in 1.. {
        let store = world.faulty(number, loss);
        let context = world.context(&adding, Arc::clone(&store) as Arc<dyn Store>);
        let added = add(&context).await;
        let has_failed = store.has_failed.load(Ordering::SeqCst);
        let when = format!("call {number} of ADD loses its {loss:?}");
        if let Err(error) = added {
            assert!(has_failed, "{when}: {}", Causes(&error));
            failures += 1;
        } else {
            // What is retried, or not needed, hinders nothing.
            let context = world.context(&adding, Arc::clone(&world.store));
            let checked = check(&context).await;
            checked.unwrap_or_else(|error| panic!("{when}: {}", Causes(&error)));
            let context = world.context(&deleting, Arc::clone(&world.store));
            del(&context).await.unwrap();
        }
        world.assert_nothing_left(&when).await;
        if !has_failed {
            break;
        }
    }
    // At least: ready, endpoint, pools, block, handle, profile, endpoint.
    assert!(failures >= 6, "{failures}");
}

#[test]
fn an_add_of_which_a_request_is_lost_leaves_nothing() {
    on_node(|world| every_add(world, Loss::Request));
}

#[test]
fn an_add_of_which_an_answer_is_lost_leaves_nothing() {
    on_node(|world| every_add(world, Loss::Answer));
}

#[test]
fn an_add_that_fails_for_a_connected_container_leaves_it_whole_or_not_at_all() {
    on_node(|world| async move {
        let (adding, deleting) = (world.request(Command::Add), world.request(Command::Del));
        let mut disconnected = 0;
        for (loss, number) in [Loss::Request, Loss::Answer]
            .into_iter()
            .flat_map(|loss| (1..30).map(move |number| (loss, number)))
        {
            let context = world.context(&adding, Arc::clone(&world.store));
            add(&context).await.unwrap();
            let store = world.faulty(number, loss);
            let again = world.context(&adding, Arc::clone(&store) as Arc<dyn Store>);
            let added = add(&again).await;
            if check(&context).await.is_err() {
                let when = format!("call {number} of a second ADD loses its {loss:?}");
                assert!(added.is_err(), "{when}");
                world.assert_nothing_left(&when).await;
                disconnected += 1;
            }
            let context = world.context(&deleting, Arc::clone(&world.store));
            del(&context).await.unwrap();
        }
        assert!(disconnected > 0);
    });
}

#[test]
fn a_del_that_failed_can_be_repeated() {
    on_node(|world| async move {
        let (adding, deleting) = (world.request(Command::Add), world.request(Command::Del));
        for loss in [Loss::Request, Loss::Answer] {
            for number in 1.. {
                let context = world.context(&adding, Arc::clone(&world.store));
                add(&context).await.unwrap();
                let store = world.faulty(number, loss);
                let context = world.context(&deleting, Arc::clone(&store) as Arc<dyn Store>);
                let _ = del(&context).await;
                let context = world.context(&deleting, Arc::clone(&world.store));
                del(&context).await.unwrap();
                let when = format!("call {number} of DEL loses its {loss:?}");
                world.assert_nothing_left(&when).await;
                if !store.has_failed.load(Ordering::SeqCst) {
                    assert!(number > 3);
                    break;
                }
            }
        }
    });
}
