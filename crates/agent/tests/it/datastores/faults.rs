//! Whatever a datastore does to its readers, they end up knowing what it holds.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tortie_agent::inputs::{Config, Consequence};
use tortie_store::{Key, Kind, Precondition, Resource, Store};
use tortie_sync::Status;

use crate::datastores::embedded;
use crate::datastores::faulty_store::{FaultyStore, Mood, UNREADABLE};
use crate::datastores::world::{Consumer, World, config, resource, set};
use tortie_testkit::Random;

const SEEDS: u64 = 32;
const AT_ONCE: u64 = 8;
const WRITERS: u64 = 3;
const WRITES: usize = 40;

/// An object that is written last.
const SENTINEL: u64 = 99;

const KINDS: [Kind; 10] = [
    Kind::GlobalNetworkPolicy,
    Kind::GlobalNetworkSet,
    Kind::HostEndpoint,
    Kind::IpPool,
    Kind::NetworkPolicy,
    Kind::NetworkSet,
    Kind::Node,
    Kind::Profile,
    Kind::Tier,
    Kind::WorkloadEndpoint,
];

/// One of a few objects of each kind, in one of a few variants, some of them invalid or unreadable.
fn object(kind: Kind, index: u64, variant: u64) -> Resource {
    let net = format!("10.{index}.{variant}.0/24");
    let mut name = format!("object-{index}");
    let selector = if variant == 3 { "a ==" } else { "all()" };
    let spec = match kind {
        Kind::GlobalNetworkPolicy | Kind::NetworkPolicy => {
            json!({ "order": variant, "selector": selector, "types": ["Ingress"] })
        }
        Kind::GlobalNetworkSet | Kind::NetworkSet => json!({ "nets": [net] }),
        Kind::HostEndpoint => {
            json!({ "node": format!("n{variant}"), "expectedIPs": [format!("10.{index}.0.1")] })
        }
        // Several pools claim one range.
        Kind::IpPool if index == SENTINEL => json!({ "cidr": "192.0.2.0/24" }),
        Kind::IpPool => json!({ "cidr": format!("10.{variant}.0.0/16") }),
        Kind::Node => json!({ "bgp": { "ipv4Address": format!("10.{index}.{variant}.1/24") } }),
        Kind::Profile => json!({ "labelsToApply": { "variant": variant.to_string() } }),
        Kind::Tier => json!({ "order": variant }),
        Kind::WorkloadEndpoint => {
            name = format!("n1-k8s-object--{index}-eth0");
            json!({
                "orchestrator": "k8s", "node": "n1", "pod": format!("object-{index}"),
                "endpoint": "eth0", "interfaceName": format!("cali{index}"),
                "ipNetworks": [format!("10.{index}.0.{variant}/32")],
            })
        }
        _ => Value::Null,
    };
    let mut object = resource(kind, "default", &name, &spec);
    if variant == 4 {
        let labels = &mut object.metadata_mut().labels;
        labels.insert(UNREADABLE.to_owned(), String::new());
    }
    object
}

/// Changes objects at random. Others do the same, so that any write may fail.
async fn write(store: &dyn Store, mut random: Random) {
    for _ in 0..WRITES {
        let kind = KINDS[usize::try_from(random.below(KINDS.len() as u64)).unwrap()];
        let mut new = object(kind, random.below(4), random.below(5));
        let key = Key::of(&new);
        match store.get(&key).await {
            Ok(_) if random.once_in(3) => {
                let _ = store.delete(&key, &Precondition::default()).await;
            }
            Ok(old) => {
                let revision = old.metadata().resource_version.clone();
                new.metadata_mut().resource_version = revision;
                let _ = store.update(new).await;
            }
            Err(_) => {
                let _ = store.create(new).await;
            }
        }
    }
}

/// Puts right what cannot be read: of such, what is known depends on what was there before.
async fn repair(store: &dyn Store) {
    for kind in KINDS {
        for index in 0..4 {
            let mut new = object(kind, index, 0);
            if let Ok(old) = store.get(&Key::of(&new)).await {
                let revision = old.metadata().resource_version.clone();
                new.metadata_mut().resource_version = revision;
                store.update(new).await.unwrap();
            }
        }
    }
}

async fn check(seed: u64) {
    let (store, _folder) = embedded::store();
    let faulty = FaultyStore::new(Arc::clone(&store), seed, Mood::Moody);
    let followed: Arc<dyn Store> = Arc::new(faulty.clone());
    let config = Config {
        kinds: KINDS.to_vec(),
        ..config()
    };
    let mut consumer = Consumer::start(&followed, &config);
    let writers = (0..WRITERS).map(|writer| write(&*store, Random::new(seed * WRITERS + writer)));
    let write_all = async {
        join_all(writers).await;
        repair(&*store).await;
        faulty.be(Mood::Calm);
        let sentinels = KINDS.map(|kind| object(kind, SENTINEL, 0));
        for sentinel in &sentinels {
            store.create(sentinel.clone()).await.unwrap();
        }
    };
    let slowness = Duration::from_millis(seed % 4);
    let read = async {
        loop {
            let batch = consumer.syncer.recv().await;
            consumer.take(batch);
            tokio::time::sleep(slowness).await;
        }
    };
    tokio::select! {
        () = write_all => {}
        () = read => {}
    }
    let expected = World::of(&followed_calmly(&store), &KINDS).await;
    // Changes of a kind come in order: where the last one is, all are.
    let mut sentinels = World::default();
    let mut converter = tortie_convert::Converter::new();
    for kind in KINDS {
        let mut sentinel = object(kind, SENTINEL, 0);
        sentinel.set_read_defaults();
        sentinels.apply(&converter.set(&sentinel).updates);
    }
    let is_done =
        |this: &Consumer| this.status == Status::InSync && this.world.includes(&sentinels);
    consumer
        .until(&format!("the end of seed {seed}"), is_done)
        .await;
    consumer.world.assert_is(&expected, &format!("seed {seed}"));
    let counters = consumer.syncer.counters();
    assert!(
        counters.errors() > 0 && counters.watch_restarts() > 0,
        "{counters:?}"
    );
}

/// The store as its readers should see it.
fn followed_calmly(store: &Arc<dyn Store>) -> FaultyStore {
    FaultyStore::new(Arc::clone(store), 0, Mood::Calm)
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_do_not_change_what_the_consumer_ends_up_with() {
    for first in (0..SEEDS).step_by(usize::try_from(AT_ONCE).unwrap()) {
        join_all((first..first + AT_ONCE).map(check)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_datastore_that_is_down_takes_nothing_away() {
    let (store, _folder) = embedded::store();
    let kept = store.create(set("kept", "192.0.2.0/24")).await.unwrap();
    let mut config = config();
    config.pace.contact_lost = Duration::from_millis(50);
    let faulty = FaultyStore::new(Arc::clone(&store), 0, Mood::Calm);
    let followed: Arc<dyn Store> = Arc::new(faulty.clone());
    let mut consumer = Consumer::start(&followed, &config);
    consumer.until_in_sync().await;
    let expected = World::of(&*store, &config.kinds).await;
    faulty.be(Mood::Down);
    let is_waiting = |this: &Consumer| this.status == Status::WaitForDatastore;
    consumer.until("contact is lost", is_waiting).await;
    consumer.world.assert_is(&expected, "without contact");

    let key = Key::of(&kept);
    store.delete(&key, &Precondition::default()).await.unwrap();
    store.create(set("new", "198.51.100.0/24")).await.unwrap();
    faulty.be(Mood::Calm);
    consumer.until_in_sync().await;
    let expected = World::of(&*store, &config.kinds).await;
    consumer.world.assert_is(&expected, "with contact again");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_cannot_be_read_the_last_good_version_stays_and_else_it_denies() {
    let (store, _folder) = embedded::store();
    let policy = |spec: &Value| resource(Kind::GlobalNetworkPolicy, "", "p", spec);
    let good =
        json!({"selector": "a == 'b'", "types": ["Ingress"], "ingress": [{"action": "Allow"}]});
    let bad_rule = json!({
        "selector": "a == 'b'", "types": ["Ingress"],
        "ingress": [{"action": "Allow", "source": {"selector": "a =="}}],
    });
    let bad_selector = json!({"selector": "a ==", "types": ["Ingress"]});
    let put = async |spec: &Value| {
        let mut new = policy(spec);
        let old = store.get(&Key::of(&new)).await.unwrap();
        let revision = old.metadata().resource_version.clone();
        new.metadata_mut().resource_version = revision;
        store.update(new).await.unwrap();
    };
    store.create(policy(&bad_rule)).await.unwrap();
    let mut consumer = Consumer::start(&store, &config());
    consumer.until_in_sync().await;
    let told = |this: &Consumer| {
        let mut policies = this.world.matching("policy ");
        policies
            .next()
            .map(|policy| policy["inbound"][0]["action"].clone())
    };
    assert_eq!(told(&consumer), Some(json!("Deny")), "nothing before it");
    assert_eq!(consumer.problems[0].consequence, Consequence::Denies);
    assert_eq!(consumer.unprotected, [""; 0]);
    let is_named = |this: &Consumer, consequence: &str| {
        let [invalid] = &this.invalid[..] else {
            return false;
        };
        (&*invalid.kind, &*invalid.name) == ("GlobalNetworkPolicy", "p")
            && invalid.text.ends_with(consequence)
    };
    assert!(is_named(&consumer, "; it denies what it decides about"));

    put(&bad_selector).await;
    let is_open = |this: &Consumer| !this.unprotected.is_empty();
    consumer
        .until("nobody knows whom it concerns", is_open)
        .await;
    assert_eq!(consumer.unprotected, ["GlobalNetworkPolicy(p)"]);
    put(&good).await;
    let is_good = |this: &Consumer| told(this) == Some(json!("Allow"));
    consumer.until("a good version", is_good).await;
    assert_eq!(consumer.unprotected, [""; 0]);
    assert_eq!(consumer.invalid, []);

    for bad in [&bad_rule, &bad_selector] {
        consumer.problems.clear();
        put(bad).await;
        let is_kept = |this: &Consumer| {
            let mut problems = this.problems.iter();
            problems.any(|problem| problem.consequence == Consequence::Kept)
        };
        consumer.until("a bad version", is_kept).await;
        assert_eq!(told(&consumer), Some(json!("Allow")));
        assert_eq!(consumer.unprotected, [""; 0]);
        assert!(is_named(
            &consumer,
            "; its last version that could be read stays in force"
        ));
    }
    let gone = Key::of(&policy(&good));
    store.delete(&gone, &Precondition::default()).await.unwrap();
    consumer.until("deleted", |this| told(this).is_none()).await;
    assert_eq!(consumer.invalid, []);
}
