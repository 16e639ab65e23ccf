//! Figures of address management, as lines of `name value unit`.
//!
//! Writes to the embedded store are durable; `TMPDIR` says which disk is measured. etcd runs as tests run it.
//! `IPAM_ALLOCATIONS` says how many addresses each measurement assigns.
#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(clippy::cast_precision_loss, reason = "figures need few digits")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tortie_ipam::{AutoAssign, Ipam, Owner};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Kind, Resource, Store, Write};
use tortie_testkit::Etcd;

/// How many blocks the large pool has, all but some of them claimed.
const BLOCKS: u32 = 10_000;

/// A datastore, and what keeps it alive.
struct Place {
    store: Arc<dyn Store>,
    _folder: Option<TempDir>,
    _etcd: Option<Etcd>,
}

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|wanted| name.starts_with(wanted.as_str()))
    };
    let total = std::env::var("IPAM_ALLOCATIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5000);
    for kind in ["embedded", "etcd"] {
        for (callers, nodes) in [(1, 1), (1, 100), (8, 1), (8, 8), (64, 1), (64, 100)] {
            let name = format!("{kind}_{callers}_callers_{nodes}_nodes");
            if is_wanted(&name) {
                allocate_and_release(&name, &open(kind).await, callers, nodes, total).await;
            }
        }
        for callers in [1, 8, 64] {
            let name = format!("{kind}_raw_{callers}_callers");
            if is_wanted(&name) {
                write_only(&name, &open(kind).await, callers, total).await;
            }
        }
        let name = format!("{kind}_large_pool");
        if is_wanted(&name) {
            claim_in_large_pool(&name, &open(kind).await).await;
        }
    }
}

async fn open(kind: &str) -> Place {
    if kind == "etcd" {
        let etcd = Etcd::start().expect("etcd is installed");
        let config = EtcdConfig::new([etcd.endpoint()]);
        let store = EtcdStore::connect(&config).await.expect("etcd runs");
        return Place {
            store: Arc::new(store),
            _folder: None,
            _etcd: Some(etcd),
        };
    }
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let store = EmbeddedStore::open(folder.path().join("store")).expect("it is new");
    Place {
        store: Arc::new(store),
        _folder: Some(folder),
        _etcd: None,
    }
}

async fn allocate_and_release(
    name: &str,
    place: &Place,
    callers: usize,
    nodes: usize,
    total: usize,
) {
    set_up(&*place.store, nodes, "10.0.0.0/14").await;
    let ipam = Ipam::new(Arc::clone(&place.store));
    let delays = in_parallel(
        callers,
        total,
        move |number: usize, ipam: Ipam| async move {
            let node = format!("node-{}", number % nodes);
            let attributes = [
                ("node", node.as_str()),
                ("pod", "some-pod-name-0"),
                ("namespace", "some-namespace"),
            ];
            let request = AutoAssign {
                num4: 1,
                handle: Some(format!("k8s-pod-network.{number:064x}")),
                attributes: attributes
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                max_blocks_per_host: u32::MAX,
                ..AutoAssign::on(node)
            };
            let assigned = ipam
                .auto_assign(&request)
                .await
                .expect("there are addresses");
            assert_eq!(
                assigned.v4.addresses.len(),
                1,
                "{:?}",
                assigned.v4.shortfall
            );
        },
        &ipam,
    )
    .await;
    print(&format!("{name}_assign"), &delays);
    let delays = in_parallel(
        callers,
        total,
        move |number: usize, ipam: Ipam| async move {
            let handle = format!("k8s-pod-network.{number:064x}");
            ipam.release_by_handle(&handle)
                .await
                .expect("it was assigned");
        },
        &ipam,
    )
    .await;
    print(&format!("{name}_release"), &delays);
}

/// What the datastore takes for one small object per transaction: nothing that assigns addresses can be quicker than this
/// without doing several at once.
async fn write_only(name: &str, place: &Place, callers: usize, total: usize) {
    let ipam = Ipam::new(Arc::clone(&place.store));
    let store = Arc::clone(&place.store);
    let store: &'static Arc<dyn Store> = Box::leak(Box::new(store));
    let delays = in_parallel(
        callers,
        total,
        move |number: usize, _: Ipam| async move {
            let spec = json!({ "handleID": format!("h{number}"), "block": { "10.0.0.0/26": 1 } });
            let object = json!({ "metadata": { "name": format!("h{number}") }, "spec": spec });
            let handle = Resource::decode_stored(Kind::IpamHandle, &object);
            let handle = handle.expect("it is well-formed");
            let written = store.write_together(vec![Write::Create(handle)]).await;
            written.expect("it is new");
        },
        &ipam,
    )
    .await;
    print(name, &delays);
}

/// How long it takes a host to find a block among thousands that are taken.
async fn claim_in_large_pool(name: &str, place: &Place) {
    set_up(&*place.store, 1, "10.0.0.0/12").await;
    let ipam = Ipam::new(Arc::clone(&place.store));
    let numbers: Vec<u32> = (0..BLOCKS).collect();
    for numbers in numbers.chunks(64) {
        let claims = numbers.iter().map(async |number| {
            // Scattered over the 16,384 blocks of the pool, as hosts that start anywhere do it.
            let net = std::net::Ipv4Addr::from(0x0a00_0000 + number * 5077 % 16_384 * 64);
            let net = ipnet::IpNet::new(net.into(), 26).expect("26 is a prefix length");
            let owner = Owner::host(format!("other-{}", number % 1000));
            ipam.claim_affinity(net, &owner)
                .await
                .expect("nobody has it");
        });
        futures::future::join_all(claims).await;
    }
    let mut delays = Vec::new();
    for number in 0..20 {
        let request = AutoAssign {
            num4: 64,
            handle: Some(format!("h{number}")),
            ..AutoAssign::on("node-0")
        };
        let start = Instant::now();
        Ipam::new(Arc::clone(&place.store))
            .auto_assign(&request)
            .await
            .expect("there are addresses");
        delays.push(start.elapsed());
    }
    print(
        &format!("{name}_new_block_in_a_new_process"),
        &(delays.iter().sum(), delays),
    );
}

async fn set_up(store: &dyn Store, nodes: usize, cidr: &str) {
    let create = async |kind: Kind, name: &str, spec: Value| {
        let object = json!({ "metadata": { "name": name }, "spec": spec });
        let resource = Resource::decode_stored(kind, &object).expect("it is well-formed");
        store.create(resource).await.expect("it is new");
    };
    for node in 0..nodes {
        create(Kind::Node, &format!("node-{node}"), json!({})).await;
    }
    create(
        Kind::IpPool,
        "pool",
        json!({ "cidr": cidr, "blockSize": 26 }),
    )
    .await;
}

/// How long all took together, and each.
async fn in_parallel<F: Future<Output = ()> + Send + 'static>(
    callers: usize,
    total: usize,
    work: impl Fn(usize, Ipam) -> F + Copy + Send + Sync + 'static,
    ipam: &Ipam,
) -> (Duration, Vec<Duration>) {
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (next, ipam) = (Arc::clone(&next), ipam.clone());
        tasks.spawn(async move {
            let mut delays = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return delays;
                }
                let start = Instant::now();
                work(number, ipam.clone()).await;
                delays.push(start.elapsed());
            }
        });
    }
    let delays = tasks.join_all().await.into_iter().flatten().collect();
    (start.elapsed(), delays)
}

fn print(name: &str, (total, delays): &(Duration, Vec<Duration>)) {
    let mut delays = delays.clone();
    delays.sort_unstable();
    println!(
        "ipam_{name}_rate {:.0} per_second",
        delays.len() as f64 / total.as_secs_f64()
    );
    for (label, percent) in [("p50", 50), ("p99", 99)] {
        let at = (delays.len() * percent / 100).min(delays.len().saturating_sub(1));
        println!(
            "ipam_{name}_{label} {:.3} ms",
            delays[at].as_secs_f64() * 1e3
        );
    }
}
