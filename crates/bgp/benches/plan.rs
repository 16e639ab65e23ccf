//! From a change to the text for BIRD, at several sizes of cluster, as lines of `name value unit`.
//!
//! `cargo bench -p tortie-bgp --bench plan [-- NAME…]`. `feed` is the time until the inputs hold all objects, `bird2` and `bird1`
//! that from inputs to text, plan included. `heap` is what the inputs hold, `peak` the most that inputs, plan and text for BIRD
//! 2 held. `doctor` looks at all nodes, and `why` asks whether one learns another's block; from 5,000 nodes on only in a world with
//! reflectors. `NAME` picks the worlds whose names start so.

#[path = "../../engine/benches/workloads/heap.rs"]
mod heap;

use std::hint::black_box;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use tortie_api::kinds::bgp_configuration::BgpConfigurationSpec;
use tortie_api::kinds::bgp_peer::BgpPeerSpec;
use tortie_api::kinds::block_affinity::{BlockAffinitySpec, BlockAffinityState};
use tortie_api::kinds::ip_pool::IpPoolSpec;
use tortie_api::kinds::node::{NodeBgpSpec, NodeSpec};
use tortie_api::{BgpConfiguration, BgpPeer, BlockAffinity, IpPool, Node};
use tortie_bgp::doctor::examine;
use tortie_bgp::explain::{Question, explain};
use tortie_bgp::{Cluster, Identity, Inputs, Plan, Update, render};

#[global_allocator]
static HEAP: heap::Counting = heap::Counting::new();

/// How many times a world is planned and written.
const RUNS: usize = 15;

/// Blocks of the whole cluster.
const BLOCKS: usize = 20_000;

/// Nodes of a mesh all have sessions with all.
const MOST_IN_MESH: usize = 1_000;

/// How the nodes of a world speak with each other.
#[derive(Clone, Copy)]
enum Shape {
    Mesh,
    /// Two route reflectors, of which the node is a client.
    Client,
    /// Two route reflectors, of which the node is one.
    Reflector,
}

fn main() -> io::Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.starts_with(&**w));
    let shapes = [
        ("mesh", Shape::Mesh),
        ("client", Shape::Client),
        ("reflector", Shape::Reflector),
    ];
    for (shape_name, shape) in shapes {
        for nodes in [100, 1_000, 5_000] {
            let name = format!("{shape_name}({nodes})");
            if is_wanted(&name) {
                measure(&name, &world(shape, nodes, nodes), nodes)?;
            }
        }
    }
    if is_wanted("local-blocks") {
        measure("local-blocks(20000)", &world(Shape::Mesh, 2, 1), 2)?;
    }
    Ok(())
}

fn measure(name: &str, world: &[Update], nodes: usize) -> io::Result<()> {
    let before = HEAP.live();
    let mut inputs = Inputs::new(Identity {
        node: node_name(0),
        ..Identity::default()
    });
    let mut feed = Duration::ZERO;
    // Of what an update takes over, nothing is to count as freed.
    for update in world {
        let update = update.clone();
        let start = Instant::now();
        inputs.update(update);
        feed += start.elapsed();
    }
    let heap = HEAP.live() - before;
    HEAP.reset_peak();
    let base = HEAP.live();
    let text = render::bird2(&Plan::new(&inputs));
    let peak = HEAP.peak() - base + heap;
    let bird2 = fastest(|| render::bird2(&Plan::new(&inputs)).len());
    let bird1 = fastest(|| {
        let files = render::bird1(&Plan::new(&inputs));
        files.files().iter().map(|(_, text)| text.len()).sum()
    });
    let change = remote_change(&mut inputs, nodes);
    if nodes <= MOST_IN_MESH || !name.starts_with("mesh") {
        answers(name, world, nodes)?;
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{name}/feed {:.4} s", feed.as_secs_f64())?;
    writeln!(out, "{name}/bird2 {:.4} s", bird2.as_secs_f64())?;
    writeln!(out, "{name}/bird1 {:.4} s", bird1.as_secs_f64())?;
    writeln!(out, "{name}/heap {:.1} MB", megabytes(heap))?;
    writeln!(out, "{name}/peak {:.1} MB", megabytes(peak))?;
    writeln!(out, "{name}/text {:.2} MB", megabytes(text.len()))?;
    writeln!(
        out,
        "{name}/other-nodes-change {:.2} us",
        change.as_secs_f64() * 1e6
    )
}

fn answers(name: &str, world: &[Update], nodes: usize) -> io::Result<()> {
    let mut cluster = Cluster::new(Identity {
        node: node_name(0),
        ..Identity::default()
    });
    for update in world {
        cluster.put(update.clone());
    }
    let start = Instant::now();
    let found = examine(&mut cluster, None);
    let doctor = start.elapsed();
    assert!(found.is_empty(), "{:?}", found.first());
    let question = Question {
        target: "10.128.0.64/26".parse().expect("it is a network"),
        node: Some(node_name(nodes - 1)),
        peer: None,
    };
    let start = Instant::now();
    let answer = explain(&mut cluster, &question);
    let why = start.elapsed();
    assert!(answer.is_ok_and(|answer| answer.is_well));
    let mut out = io::stdout().lock();
    writeln!(out, "{name}/doctor {:.4} s", doctor.as_secs_f64())?;
    writeln!(out, "{name}/why {:.4} s", why.as_secs_f64())
}

fn fastest(mut run: impl FnMut() -> usize) -> Duration {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// A label of another node, and a block of one, change: neither is a new plan.
fn remote_change(inputs: &mut Inputs, nodes: usize) -> Duration {
    let other = nodes - 1;
    let mut relabelled = node(other, false);
    relabelled
        .metadata
        .labels
        .insert("x".to_owned(), "y".to_owned());
    let updates = [
        Update::Resource(relabelled.into()),
        Update::Resource(block(BLOCKS, other).into()),
    ];
    let start = Instant::now();
    let told = updates
        .into_iter()
        .filter(|update| inputs.update(update.clone()))
        .count();
    let time = start.elapsed() / 2;
    assert_eq!(told, 0, "a change of another node is a new plan");
    time
}

fn world(shape: Shape, nodes: usize, holders: usize) -> Vec<Update> {
    let reflectors = match shape {
        Shape::Mesh => 0..0,
        Shape::Client => 1..3,
        Shape::Reflector => 0..2,
    };
    let mut world: Vec<Update> = (0..nodes)
        .map(|index| Update::Resource(node(index, reflectors.contains(&index)).into()))
        .collect();
    let pool = IpPoolSpec {
        cidr: "10.128.0.0/9".to_owned(),
        ..IpPoolSpec::default()
    };
    world.push(Update::Resource(IpPool::new("", "pods", pool).into()));
    world.extend((0..BLOCKS).map(|index| Update::Resource(block(index, index % holders).into())));
    if !reflectors.is_empty() {
        let configuration = BgpConfigurationSpec {
            node_to_node_mesh_enabled: Some(false),
            ..BgpConfigurationSpec::default()
        };
        let configuration = BgpConfiguration::new("", "default", configuration);
        world.push(Update::Resource(configuration.into()));
        let peer = BgpPeerSpec {
            node_selector: "all()".to_owned(),
            peer_selector: "has(route-reflector)".to_owned(),
            ..BgpPeerSpec::default()
        };
        world.push(Update::Resource(
            BgpPeer::new("", "reflectors", peer).into(),
        ));
    }
    world
}

fn node_name(index: usize) -> String {
    format!("worker-{index:05}.example.org")
}

fn address(base: Ipv4Addr, index: usize) -> IpAddr {
    let index = u32::try_from(index).expect("few of them");
    Ipv4Addr::from_bits(base.to_bits() + index).into()
}

/// A node with labels as Kubernetes gives them.
fn node(index: usize, is_reflector: bool) -> Node {
    let name = node_name(index);
    let cluster = if is_reflector { "10.0.0.1" } else { "" };
    let bgp = NodeBgpSpec {
        ipv4_address: format!("{}/16", address(Ipv4Addr::new(172, 16, 0, 1), index)),
        route_reflector_cluster_id: cluster.to_owned(),
        ..NodeBgpSpec::default()
    };
    let spec = NodeSpec {
        bgp: Some(bgp),
        ..NodeSpec::default()
    };
    let mut node = Node::new("", &name, spec);
    let zone = format!("zone-{}", index % 3);
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
    node.metadata.labels.extend(labels);
    if is_reflector {
        node.metadata
            .labels
            .insert("route-reflector".to_owned(), String::new());
    }
    node
}

fn block(index: usize, holder: usize) -> BlockAffinity {
    let network = address(Ipv4Addr::new(10, 128, 0, 0), index * 64);
    let spec = BlockAffinitySpec {
        state: BlockAffinityState::Confirmed,
        node: node_name(holder),
        cidr: format!("{network}/26"),
        ..BlockAffinitySpec::default()
    };
    BlockAffinity::new("", &format!("affinity-{index}"), spec)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
