//! What any datastore must do: all there is, then changes, then deletions.

use std::sync::Arc;

use serde_json::json;
use tortie_agent::inputs::Config;
use tortie_store::{Key, Kind, Precondition, Store};

use crate::datastores::world::{Consumer, endpoint, resource, set};

pub(crate) async fn follow(store: &Arc<dyn Store>, config: &Config) {
    let tier = resource(Kind::Tier, "", "platform", &json!({ "order": 10.0 }));
    let pool = |name| resource(Kind::IpPool, "", name, &json!({ "cidr": "10.0.0.0/16" }));
    for resource in [
        tier,
        endpoint("a", "10.0.0.1"),
        set("kept", "192.0.2.0/24"),
        pool("pool-a"),
        pool("pool-b"),
    ] {
        store.create(resource).await.unwrap();
    }
    let mut consumer = Consumer::start(store, config);
    consumer.until_in_sync().await;
    consumer.until_like(&**store, &config.kinds).await;
    assert!(consumer.world.has("workloadEndpoint") && consumer.world.has("10.0.0.0/16"));

    let mut created = store.create(set("new", "198.51.100.0/24")).await.unwrap();
    consumer.until_like(&**store, &config.kinds).await;
    let labels = &mut created.metadata_mut().labels;
    labels.insert("a".to_owned(), "b".to_owned());
    store.update(created).await.unwrap();
    consumer.until_like(&**store, &config.kinds).await;

    let broken = json!({ "selector": "a ==", "types": ["Ingress"] });
    let policy = resource(Kind::GlobalNetworkPolicy, "", "broken", &broken);
    let policy = Key::of(&store.create(policy).await.unwrap());
    let is_named = |this: &Consumer| {
        let mut problems = this.problems.iter();
        problems.any(|problem| problem.problem.object.contains("broken"))
    };
    consumer.until("a problem with the policy", is_named).await;
    assert_eq!(consumer.problems.len(), 1, "{:?}", consumer.problems);

    // The pool that is left has the range now.
    for key in [
        policy,
        Key::global(Kind::IpPool, "pool-a"),
        Key::global(Kind::GlobalNetworkSet, "new"),
        Key::namespaced(Kind::WorkloadEndpoint, "default", "n1-k8s-a-eth0"),
    ] {
        store.delete(&key, &Precondition::default()).await.unwrap();
    }
    consumer.until_like(&**store, &config.kinds).await;
    assert!(!consumer.world.has("workloadEndpoint") && consumer.world.has("10.0.0.0/16"));
    assert_eq!(consumer.problems.len(), 1, "{:?}", consumer.problems);
    let counters = consumer.syncer.counters();
    assert_eq!((counters.errors(), counters.watch_restarts()), (0, 0));
    let followed = config.kinds.len();
    assert_eq!(counters.resyncs(), followed as u64);
}
