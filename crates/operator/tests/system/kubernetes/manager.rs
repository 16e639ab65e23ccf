//! The manager: endpoints, order of starting, and a clean end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use tokio::sync::{Notify, oneshot};
use tortie_operator::{
    Action, CacheOptions, Controller, Error, Failure, Manager, ObjectKey, Reconciler,
};
use tortie_testkit::KubeApiServer;

use crate::kubernetes::support::{
    client, config_map, eventually, free_address, http_get, namespace,
};

/// Says when it begins, and waits until it may end.
struct Slow {
    begun: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    may_end: Arc<Notify>,
}

impl Reconciler for Slow {
    type Key = ObjectKey;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, Failure> {
        self.begun.store(true, Ordering::SeqCst);
        self.may_end.notified().await;
        self.ended.store(true, Ordering::SeqCst);
        Ok(Action::Done)
    }
}

#[tokio::test]
async fn endpoints_tell_how_it_is_and_a_shutdown_waits_for_work_under_way() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "manager-endpoints").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    maps.create(&PostParams::default(), &config_map(&ns, "a", "1"))
        .await
        .unwrap();
    let address = free_address();
    let manager = Manager::builder(client)
        .health(address)
        .metrics(address)
        .build();
    let is_well = Arc::new(AtomicBool::new(true));
    let check = Arc::clone(&is_well);
    manager.add_check("mood", move || {
        if check.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err("bad".to_owned())
        }
    });
    let [begun, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let may_end = Arc::new(Notify::new());
    let slow = Slow {
        begun: Arc::clone(&begun),
        ended: Arc::clone(&ended),
        may_end: Arc::clone(&may_end),
    };
    let options = CacheOptions::<ConfigMap> {
        namespace: Some(ns.clone()),
        ..CacheOptions::default()
    };
    manager.add(
        Controller::builder("slow", &manager)
            .for_with(options)
            .reconciler(slow),
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async {
        let _ = stopped.await;
    }));
    eventually(true, || begun.load(Ordering::SeqCst)).await;

    for path in ["/healthz", "/liveness", "/readyz", "/readiness"] {
        let answer = http_get(address, path).await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"),
            "{path}: {answer}"
        );
    }
    is_well.store(false, Ordering::SeqCst);
    let answer = http_get(address, "/healthz").await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.ends_with("mood: bad"),
        "{answer}"
    );
    let metrics = http_get(address, "/metrics").await;
    for line in [
        "workqueue_adds_total{name=\"slow\",controller=\"slow\"} 1",
        "workqueue_depth{name=\"slow\",controller=\"slow\"} 0",
        "controller_runtime_active_workers{controller=\"slow\"} 1",
        "controller_runtime_max_concurrent_reconciles{controller=\"slow\"} 1",
        "controller_runtime_reconcile_total{controller=\"slow\",result=\"success\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }

    drop(stop);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!running.is_finished() && !ended.load(Ordering::SeqCst));
    may_end.notify_one();
    running.await.unwrap().unwrap();
    assert!(
        ended.load(Ordering::SeqCst),
        "what was under way was finished"
    );
}

#[tokio::test]
async fn work_that_does_not_end_is_dropped_after_a_while() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "manager-patience").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    maps.create(&PostParams::default(), &config_map(&ns, "a", "1"))
        .await
        .unwrap();
    let manager = Manager::builder(client)
        .shutdown_patience(Duration::from_millis(200))
        .build();
    let begun = Arc::new(AtomicBool::new(false));
    let slow = Slow {
        begun: Arc::clone(&begun),
        ended: Arc::default(),
        may_end: Arc::default(),
    };
    let options = CacheOptions::<ConfigMap> {
        namespace: Some(ns),
        ..CacheOptions::default()
    };
    manager.add(
        Controller::builder("patience", &manager)
            .for_with(options)
            .reconciler(slow),
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async {
        let _ = stopped.await;
    }));
    eventually(true, || begun.load(Ordering::SeqCst)).await;
    drop(stop);
    tokio::time::timeout(Duration::from_mins(1), running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn what_runs_always_and_fails_ends_the_manager_with_its_name() {
    let manager = Manager::builder(client(KubeApiServer::shared()).await).build();
    manager.run_always("fragile", async { Err("broke".into()) });
    let error = manager.run(std::future::pending()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Runnable { name, .. } if name == "fragile"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let manager = Manager::builder(client(KubeApiServer::shared()).await)
        .health(address)
        .build();
    let error = manager.run(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn the_client_reads_from_caches_and_writes_to_the_server() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "manager-client").await;
    let manager = Manager::builder(client).build();
    let client = manager.client();
    let key = ObjectKey::new(ns.as_str(), "a");
    assert!(client.get::<ConfigMap>(&key).await.is_none());
    let made = client.create(&config_map(&ns, "a", "1")).await.unwrap();
    let cache = manager.cache::<ConfigMap>();
    eventually(true, || cache.get(&key).is_some()).await;
    let mut changed = made;
    changed.data = Some([("value".to_owned(), "2".to_owned())].into());
    let changed = client.update(&changed).await.unwrap();
    let mut stale = changed;
    stale.metadata.resource_version = Some("1".to_owned());
    let refused = client.update(&stale).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.is_conflict()));
    client
        .apply("test", &config_map(&ns, "b", "1"))
        .await
        .unwrap();
    eventually(2, || cache.in_namespace(&ns).len()).await;
    client.delete::<ConfigMap>(&key).await.unwrap();
    client.delete::<ConfigMap>(&key).await.unwrap();
    eventually(1, || cache.in_namespace(&ns).len()).await;
    assert_eq!(client.list_in::<ConfigMap>(&ns).await.len(), 1);
}
