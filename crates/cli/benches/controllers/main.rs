//! `tortie controllers` with a real kube-apiserver, and a real etcd of its own as the datastore: how long the first
//! comparison of everything takes, what memory is held, how soon a change is copied, and whether many changes leave
//! anything behind.
//!
//! Prints `name value unit` lines. Arguments: how many nodes, pods and policies, and after `soak` how many changes of pods.

#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing better to do than to say where"
)]

mod calico;
#[path = "../support/large_cluster.rs"]
mod large_cluster;
mod process;
#[path = "../support/usage.rs"]
mod usage;
mod world;

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tortie_store::{Change, Kind, Query, Store as _, Watch};

use process::Controllers;
use world::World;

/// How many policies are made and removed to see how soon that is copied.
const CHANGES: usize = 200;

/// How long the process is left alone before its memory is looked at for the last time.
const REST: Duration = Duration::from_secs(20);

/// How many changes of pods are on their way at once.
const WRITERS: usize = 32;

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let mut parts = given.split(|argument| argument == "soak");
    let sizes: Vec<usize> = numbers(parts.next().unwrap_or_default());
    let changes = parts
        .next()
        .map(|rest| numbers(rest).first().copied().unwrap_or(100_000));
    let size = |index: usize, usual: usize| sizes.get(index).copied().unwrap_or(usual);
    let (nodes, pods, policies) = match changes {
        None => (size(0, 5_000), size(1, 50_000), size(2, 10_000)),
        Some(_) => (size(0, 100), size(1, 1_000), size(2, 100)),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = World::new(nodes, pods, policies);
    let controllers = Controllers::start(&world);
    let start = Instant::now();
    runtime.block_on(world.await_copies());
    println!(
        "controllers_sync_time {:.2} s",
        start.elapsed().as_secs_f64()
    );
    println!(
        "controllers_sync_resident {:.0} MB",
        controllers.memory("VmRSS:")
    );
    println!(
        "controllers_sync_data {:.0} MB",
        controllers.memory("RssAnon:")
    );
    println!(
        "controllers_sync_peak {:.0} MB",
        controllers.memory("VmHWM:")
    );
    match changes {
        None => runtime.block_on(latency(&world)),
        Some(changes) => runtime.block_on(soak(&world, &controllers, changes)),
    }
    println!(
        "controllers_end_resident {:.0} MB",
        controllers.memory("VmRSS:")
    );
    std::thread::sleep(REST);
    println!(
        "controllers_rest_resident {:.0} MB",
        controllers.memory("VmRSS:")
    );
    println!(
        "controllers_rest_data {:.0} MB",
        controllers.memory("RssAnon:")
    );
    println!("controllers_cpu {:.1} s", controllers.cpu());
}

fn numbers(arguments: &[String]) -> Vec<usize> {
    arguments
        .iter()
        .map(|argument| argument.parse().unwrap())
        .collect()
}

/// From the API server's answer to the write in the datastore.
async fn latency(world: &World) {
    let api: Api<NetworkPolicy> =
        Api::namespaced(world.cluster().await, &large_cluster::namespace(0));
    let store = world.store().await;
    let query = Query::all(Kind::NetworkPolicy);
    let revision = store.list(&query).await.unwrap().revision;
    let mut watch = store.watch(&query, &revision).await.unwrap();
    let (mut made, mut removed) = (Vec::new(), Vec::new());
    for number in 0..CHANGES {
        let name = format!("change-{number}");
        let policy = serde_json::from_value(large_cluster::policy(0, &name)).unwrap();
        api.create(&PostParams::default(), &policy).await.unwrap();
        let start = Instant::now();
        await_change(&mut watch, &name, true).await;
        made.push(start.elapsed());
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        let start = Instant::now();
        await_change(&mut watch, &name, false).await;
        removed.push(start.elapsed());
    }
    tell("controllers_create", made);
    tell("controllers_delete", removed);
}

async fn await_change(watch: &mut Watch, name: &str, is_made: bool) {
    let copy = format!("knp.default.{name}");
    while let Some(event) = watch.next().await {
        let is_it = match event.unwrap().change {
            Change::Put(resource) => is_made && resource.metadata().name == copy,
            Change::Delete(key) => !is_made && key.name == copy,
            Change::Invalid(_) | Change::Bookmark => false,
        };
        if is_it {
            return;
        }
    }
}

fn tell(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    for (part, label) in [(50, "p50"), (99, "p99")] {
        let time = times[(times.len() * part / 100).min(times.len() - 1)];
        println!("{name}_{label} {:.1} ms", time.as_secs_f64() * 1000.0);
    }
}

/// Changes labels of pods, and looks at the memory meanwhile.
async fn soak(world: &World, controllers: &Controllers, changes: usize) {
    let cluster = world.cluster().await;
    let start = Instant::now();
    let tenth = (changes / 10).max(1);
    let work = futures::stream::iter(0..changes).map(|number| {
        let pod = number % world.pods;
        let round = (number / world.pods).to_string();
        let api: Api<Pod> = Api::namespaced(cluster.clone(), &large_cluster::namespace(pod));
        async move {
            let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round}}}));
            api.patch(
                &large_cluster::pod_name(pod),
                &PatchParams::default(),
                &patch,
            )
            .await
            .unwrap();
            number
        }
    });
    let mut work = work.buffer_unordered(WRITERS);
    let mut done = 0;
    while work.next().await.is_some() {
        done += 1;
        if done % tenth == 0 {
            println!(
                "controllers_soak_{done}_resident {:.0} MB",
                controllers.memory("VmRSS:")
            );
        }
    }
    let round = ((changes - 1) / world.pods).to_string();
    world.await_round((changes - 1) % world.pods, &round).await;
    let seconds = start.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let rate = changes as f64 / seconds;
    println!("controllers_soak_rate {rate:.0} changes/s");
}
