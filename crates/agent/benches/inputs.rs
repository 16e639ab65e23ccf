//! Figures of following a local etcd, as lines of `name value unit`.
#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(clippy::unwrap_used, reason = "a figure that cannot be had ends it")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tortie_agent::inputs::{Config, Syncer};
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Kind, Resource, Store};
use tortie_sync::Status;
use tortie_testkit::Etcd;

const ENDPOINTS: usize = 10_000;
const POLICIES: usize = 1_000;
const STARTS: u32 = 10;
const CHANGES: usize = 1_000;

#[tokio::main]
async fn main() {
    let etcd = Etcd::start().unwrap();
    let config = EtcdConfig::new([etcd.endpoint()]);
    let store = EtcdStore::connect(&config).await.unwrap();
    fill(&store).await;
    let store: Arc<dyn Store> = Arc::new(store);

    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..STARTS {
        let (start, cpu_start) = (Instant::now(), cpu_time());
        let (_syncer, updates) = start_up(&store).await;
        wall += start.elapsed();
        cpu += cpu_time().saturating_sub(cpu_start);
        assert!(updates > ENDPOINTS + POLICIES);
    }
    let seconds = |total: Duration| (total / STARTS).as_secs_f64();
    println!(
        "sync_start_10k_endpoints_1k_policies {:.3} s",
        seconds(wall)
    );
    println!(
        "sync_start_10k_endpoints_1k_policies_cpu {:.3} s",
        seconds(cpu)
    );

    let (syncer, _) = start_up(&store).await;
    for (name, delay) in delays(&store, syncer).await {
        println!(
            "sync_etcd_put_to_consumer_{name} {:.3} ms",
            delay.as_secs_f64() * 1e3
        );
    }
}

async fn fill(store: &EtcdStore) {
    let endpoints = (0..ENDPOINTS).map(endpoint);
    let objects = endpoints.chain((0..POLICIES).map(policy));
    stream::iter(objects)
        .for_each_concurrent(64, async |object| drop(store.create(object).await.unwrap()))
        .await;
}

async fn start_up(store: &Arc<dyn Store>) -> (Syncer, usize) {
    let config = Config::for_agent(None);
    let mut syncer = Syncer::start(store, &config, &Handle::current());
    let mut updates = 0;
    loop {
        let batch = syncer.recv().await;
        updates += batch.updates.len();
        if batch.status == Status::InSync {
            return (syncer, updates);
        }
    }
}

/// The time from the answer to a write until a thread that waits has the change. It is negative, and counted as none,
/// where etcd tells of the change before it answers.
async fn delays(store: &Arc<dyn Store>, mut syncer: Syncer) -> [(&'static str, Duration); 2] {
    let (sender, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let thread = std::thread::spawn(move || {
        for _ in 0..CHANGES {
            let batch = syncer.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!(batch.updates.len(), 1);
            sender.send(Instant::now()).unwrap();
        }
    });
    let mut resource = policy(POLICIES);
    let mut delays = Vec::new();
    for change in 0..CHANGES {
        resource = match change {
            0 => store.create(resource).await.unwrap(),
            _ => store.update(resource).await.unwrap(),
        };
        let written = Instant::now();
        let arrived = arrivals.recv().await.unwrap();
        delays.push(arrived.saturating_duration_since(written));
    }
    thread.join().unwrap();
    delays.sort_unstable();
    [
        ("p50", delays[CHANGES / 2]),
        ("p99", delays[CHANGES * 99 / 100]),
    ]
}

fn endpoint(index: usize) -> Resource {
    let pod = format!("pod{index}");
    let name = format!("n{}-k8s-{pod}-eth0", index % 100);
    let spec = json!({
        "orchestrator": "k8s", "node": format!("n{}", index % 100), "pod": pod, "endpoint": "eth0",
        "interfaceName": format!("cali{index}"), "mac": "ee:ee:ee:ee:ee:ee",
        "profiles": ["kns.default", "ksa.default.default"],
        "ipNetworks": [format!("10.{}.{}.{}/32", index >> 16, index >> 8 & 255, index & 255)],
        "ports": [{ "name": "http", "protocol": "TCP", "port": 8080 }],
    });
    let labels = json!({
        "app": format!("app{}", index % 500), "tier": "backend", "pod-template-hash": "5d8c7f9b6",
        "projectcalico.org/namespace": "default", "projectcalico.org/orchestrator": "k8s",
        "projectcalico.org/serviceaccount": "default",
    });
    resource(Kind::WorkloadEndpoint, &name, &labels, &spec)
}

fn policy(index: usize) -> Resource {
    let rule = json!({
        "action": "Allow", "protocol": "TCP",
        "source": { "selector": format!("app == 'app{}'", (index + 1) % 500) },
        "destination": { "ports": [8080] },
    });
    let spec = json!({
        "selector": format!("app == 'app{}'", index % 500), "types": ["Ingress", "Egress"],
        "ingress": [rule], "egress": [{ "action": "Allow" }],
    });
    resource(
        Kind::NetworkPolicy,
        &format!("policy-{index}"),
        &json!({}),
        &spec,
    )
}

fn resource(kind: Kind, name: &str, labels: &Value, spec: &Value) -> Resource {
    let metadata = json!({ "name": name, "namespace": "default", "labels": labels });
    Resource::decode_stored(kind, &json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// What this process has used of the processors, in steps of 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
