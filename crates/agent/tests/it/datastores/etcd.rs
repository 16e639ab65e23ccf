//! On a real etcd that forgets its history, and one that dies.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Key, Kind, Precondition, Store};
use tortie_sync::Status;
use tortie_testkit::Etcd;

use crate::datastores::proxy::Proxy;
use crate::datastores::scenario;
use crate::datastores::world::{Consumer, World, config, set};

async fn store(endpoint: &str) -> Arc<dyn Store> {
    let config = EtcdConfig::new([endpoint]);
    Arc::new(EtcdStore::connect(&config).await.unwrap())
}

async fn remove(store: &dyn Store, name: &str) {
    let key = Key::global(Kind::GlobalNetworkSet, name);
    store.delete(&key, &Precondition::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consumer_is_told_all_there_is_and_every_change() {
    let etcd = Etcd::start().unwrap();
    scenario::follow(&store(etcd.endpoint()).await, &config()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_before_a_compaction_is_found_missing() {
    let etcd = Etcd::start().unwrap();
    let direct = store(etcd.endpoint()).await;
    for name in ["kept", "gone"] {
        direct.create(set(name, "192.0.2.0/24")).await.unwrap();
    }
    let proxy = Proxy::start(etcd.endpoint()).await;
    let followed = store(&format!("http://{}", proxy.address)).await;
    let config = config();
    let mut consumer = Consumer::start(&followed, &config);
    consumer.until_in_sync().await;
    consumer.until_like(&*direct, &config.kinds).await;
    let resyncs = consumer.syncer.counters().resyncs();

    proxy.close();
    remove(&*direct, "gone").await;
    let last = direct.create(set("new", "198.51.100.0/24")).await.unwrap();
    etcd.compact(last.metadata().resource_version.parse().unwrap())
        .unwrap();
    assert!(consumer.world.has("gone"));
    proxy.open();
    consumer.until_like(&*direct, &config.kinds).await;
    consumer.until_in_sync().await;
    assert!(consumer.syncer.counters().resyncs() > resyncs);
}

/// A server that goes with this value, and with the test's process.
struct Restarted {
    shell: Child,
}

impl Restarted {
    /// Kills etcd and starts it again, with the same data at the same address.
    fn restart(etcd: &Etcd) -> Self {
        let pid = etcd.pid().to_string();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        let words = line
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        let words: Vec<&str> = words.map(|word| str::from_utf8(word).unwrap()).collect();
        let killed = Command::new("kill").args(["-KILL", &pid]).status();
        assert!(killed.unwrap().success());
        // Nobody asks etcd to end before the consumer has felt its absence.
        std::thread::sleep(Duration::from_millis(300));
        let shell = Command::new("sh")
            .args([
                "-c",
                r#""$@" </dev/null & read -r _; kill -KILL $!; wait"#,
                "sh",
            ])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { shell }
    }
}

impl Drop for Restarted {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It ends when its standard input does.
        let _ = self.shell.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_dies_and_comes_back_is_followed_again() {
    let etcd = Etcd::start().unwrap();
    let followed = store(etcd.endpoint()).await;
    for name in ["kept", "gone"] {
        followed.create(set(name, "192.0.2.0/24")).await.unwrap();
    }
    let config = config();
    let mut consumer = Consumer::start(&followed, &config);
    consumer.until_in_sync().await;
    let before = World::of(&*followed, &config.kinds).await;
    consumer.world.assert_is(&before, "before");

    let restart = || Restarted::restart(&etcd);
    let _restarted = tokio::task::block_in_place(restart);
    while let Some(batch) = consumer.syncer.try_recv() {
        consumer.take(batch);
    }
    consumer.world.assert_is(&before, "while it is away");
    assert_ne!(consumer.status, Status::WaitForDatastore);
    while followed
        .list(&tortie_store::Query::all(Kind::Tier))
        .await
        .is_err()
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    remove(&*followed, "gone").await;
    followed
        .create(set("new", "198.51.100.0/24"))
        .await
        .unwrap();
    consumer.until_like(&*followed, &config.kinds).await;
    consumer.until_in_sync().await;
}
