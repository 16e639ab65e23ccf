//! A cluster in etcd, as Calico writes it.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Key, Store as _};

/// Blocks of the whole cluster.
const BLOCKS: usize = 20_000;

/// Writes that are on their way at once.
const WRITERS: usize = 32;

/// How the nodes speak with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Mesh,
    /// Two route reflectors, of which the node is a client.
    Reflectors,
}

pub(crate) struct World {
    runtime: tokio::runtime::Runtime,
    store: Arc<EtcdStore>,
    nodes: usize,
}

pub(crate) fn node_name(number: usize) -> String {
    format!("worker-{number:05}.example.org")
}

impl World {
    pub(crate) fn write(endpoint: &str, shape: Shape, nodes: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let config = EtcdConfig {
            endpoints: vec![endpoint.to_owned()],
            ..EtcdConfig::default()
        };
        let store = runtime.block_on(EtcdStore::connect(&config)).unwrap();
        let world = Self {
            runtime,
            store: Arc::new(store),
            nodes,
        };
        let is_reflector = |number| shape == Shape::Reflectors && (1..=2).contains(&number);
        let mut all = vec![resource(
            Kind::IpPool,
            "pods",
            &json!({"cidr": "10.128.0.0/9", "vxlanMode": "Never", "ipipMode": "Never"}),
        )];
        all.extend((0..nodes).map(|number| node(number, is_reflector(number))));
        all.extend((0..BLOCKS).map(|number| block(number, number % nodes)));
        if shape == Shape::Reflectors {
            let off = json!({"nodeToNodeMeshEnabled": false});
            all.push(resource(Kind::BgpConfiguration, "default", &off));
            let peer = json!({"nodeSelector": "all()", "peerSelector": "has(route-reflector)"});
            all.push(resource(Kind::BgpPeer, "reflectors", &peer));
        }
        world.runtime.block_on(async {
            let writes = stream::iter(all).map(|resource| world.store.create(resource));
            let writes = writes.buffer_unordered(WRITERS);
            writes
                .for_each(async |written| drop(written.unwrap()))
                .await;
        });
        world
    }

    /// One more block of the node.
    pub(crate) fn change(&self, number: u16) {
        let block = block(BLOCKS + usize::from(number), 0);
        self.runtime.block_on(self.store.create(block)).unwrap();
    }

    /// Labels of other nodes, time and again.
    pub(crate) fn change_elsewhere(&self, times: u16) {
        let others = (0..usize::from(times)).map(|time| (3 + time % (self.nodes - 3), time));
        self.runtime.block_on(async {
            for (other, time) in others {
                let key = Key::global(Kind::Node, node_name(other));
                let mut node = self.store.get(&key).await.unwrap();
                let labels = &mut node.metadata_mut().labels;
                labels.insert("time".to_owned(), time.to_string());
                self.store.update(node).await.unwrap();
            }
        });
    }
}

fn resource(kind: Kind, name: &str, spec: &Value) -> Resource {
    let value = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": kind.as_str(),
        "metadata": {"name": name},
        "spec": spec,
    });
    let mut resource = Resource::decode_strict(&value).unwrap();
    resource.set_defaults();
    resource
}

/// A node with labels as Kubernetes gives them.
fn node(number: usize, is_reflector: bool) -> Resource {
    let name = node_name(number);
    let mut bgp =
        json!({"ipv4Address": format!("172.16.{}.{}/16", number / 250, number % 250 + 1)});
    if is_reflector {
        bgp["routeReflectorClusterID"] = "10.0.0.1".into();
    }
    let mut node = resource(Kind::Node, &name, &json!({"bgp": bgp}));
    let zone = format!("zone-{}", number % 3);
    let labels = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", &name),
        ("kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", "large"),
        ("topology.kubernetes.io/region", "region-1"),
        ("topology.kubernetes.io/zone", &zone),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let all = &mut node.metadata_mut().labels;
    all.extend(labels);
    if is_reflector {
        all.insert("route-reflector".to_owned(), String::new());
    }
    node
}

fn block(number: usize, holder: usize) -> Resource {
    let base = number * 64;
    let cidr = format!(
        "10.{}.{}.{}/26",
        128 + base / 65_536,
        base / 256 % 256,
        base % 256
    );
    let node = node_name(holder);
    let name = format!("{node}-{}", cidr.replace(['.', '/'], "-"));
    let spec =
        json!({"cidr": cidr, "node": node, "state": "confirmed", "type": "host", "deleted": false});
    resource(Kind::BlockAffinity, &name, &spec)
}
