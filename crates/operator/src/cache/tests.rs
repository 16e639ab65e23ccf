use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

use super::*;

fn object(name: &str, version: u32) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.namespace = Some("ns".to_owned());
    object.metadata.resource_version = Some(version.to_string());
    object
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

async fn told(subscription: &mut Subscription<ConfigMap>) -> Vec<String> {
    let mut told = Vec::new();
    let wait = std::time::Duration::from_millis(1);
    while let Ok(Some(event)) = tokio::time::timeout(wait, subscription.next()).await {
        let what = event.after().map_or("gone", |object| object.version());
        told.push(format!("{} {what}", event.key.name));
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_second_list_tells_only_differences_and_what_is_gone() {
    let cache = Cache::<ConfigMap>::empty();
    let list = |objects: &[(&str, u32)]| {
        let mut state = cache.shared.write();
        state.begin_list();
        for (name, version) in objects {
            state.apply(object(name, *version));
        }
        state.end_list();
    };
    list(&[("a", 1), ("b", 1), ("c", 1)]);
    let mut subscription = cache.subscribe();
    assert_eq!(told(&mut subscription).await, ["a 1", "b 1", "c 1"]);
    list(&[("a", 1), ("c", 2), ("d", 3)]);
    assert_eq!(told(&mut subscription).await, ["c 2", "d 3", "b gone"]);
    assert_eq!(cache.get(&key("b")), None);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_broke_off_removes_nothing() {
    let cache = Cache::<ConfigMap>::empty();
    let mut state = cache.shared.write();
    state.begin_list();
    state.apply(object("a", 1));
    state.apply(object("b", 1));
    state.end_list();
    state.begin_list();
    state.apply(object("a", 1));
    state.begin_list();
    state.apply(object("b", 1));
    state.apply(object("a", 1));
    state.end_list();
    drop(state);
    assert_eq!(cache.len(), 2);
}

#[tokio::test]
async fn objects_of_a_namespace_are_found_among_others() {
    let cache = Cache::<ConfigMap>::empty();
    for namespace in ["a", "ns", "ns-2", "z"] {
        let mut object = object(namespace, 1);
        object.metadata.namespace = Some(namespace.to_owned());
        cache.shared.write().apply(object);
    }
    let found = cache.in_namespace("ns");
    assert_eq!(found.iter().map(|o| o.name()).collect::<Vec<_>>(), ["ns"]);
    assert!(cache.in_namespace("n").is_empty());
}

#[tokio::test]
async fn the_end_of_the_cache_is_the_end_of_its_subscriptions() {
    let cache = Cache::<ConfigMap>::empty();
    let mut subscription = cache.subscribe();
    cache.shared.write().apply(object("a", 1));
    drop(cache);
    assert!(subscription.next().await.is_some());
    assert!(subscription.next().await.is_none());
}

proptest! {
    /// A subscriber that reads now and then, and puts together what it is told, has in the end what the cache has.
    #[test]
    fn what_is_told_adds_up_to_the_cache(
        steps in prop::collection::vec((0..6_u8, 0..4_u8, any::<bool>()), 1..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let cache = Cache::<ConfigMap>::empty();
            let mut subscription = cache.subscribe();
            let mut known: BTreeMap<ObjectKey, String> = BTreeMap::new();
            for (version, (name, what, reads)) in (1..).zip(steps) {
                let name = format!("o{name}");
                {
                    let mut state = cache.shared.write();
                    match what {
                        0 | 1 => state.apply(object(&name, version)),
                        2 => state.delete(&key(&name)),
                        _ => {
                            // A list in which one object is missing.
                            let there: Vec<_> = state.objects.iter().map(|k| k.object.as_ref().clone()).collect();
                            state.begin_list();
                            for object in there.into_iter().filter(|o| o.name() != name) {
                                state.apply(object);
                            }
                            state.end_list();
                        }
                    }
                }
                if reads && let Some(event) = subscription.try_next() {
                    prop_assert_eq!(event.before.as_ref().map(|o| o.version()), known.get(&event.key).map(String::as_str));
                    match event.after() {
                        Some(object) => known.insert(event.key.clone(), object.version().to_owned()),
                        None => known.remove(&event.key),
                    };
                }
            }
            while let Some(event) = subscription.try_next() {
                match event.after() {
                    Some(object) => known.insert(event.key.clone(), object.version().to_owned()),
                    None => known.remove(&event.key),
                };
            }
            let there: BTreeMap<_, _> = cache.list().iter()
                .map(|object| (ObjectKey::of(object.as_ref()), object.version().to_owned())).collect();
            prop_assert_eq!(known, there);
            Ok(())
        })?;
    }
}
