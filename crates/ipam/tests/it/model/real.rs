//! The same on real datastores, where the order is what it happens to be.

use std::sync::Arc;

use tortie_store::Store;
use tortie_store::embedded::EmbeddedStore;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_testkit::Etcd;

use crate::model::crowd::run;
use crate::model::script::set_up;

async fn runs_on_etcd(seeds: std::ops::Range<u64>, together: bool) {
    let etcd = Etcd::start().unwrap();
    for seed in seeds {
        etcd.etcdctl(&["del", "--prefix", "/calico/"]).unwrap();
        let store = EtcdStore::connect(&EtcdConfig::new([etcd.endpoint()]))
            .await
            .unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        set_up(&*store, true).await;
        run(&store, seed, together, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_breaks_on_etcd() {
    runs_on_etcd(0..150, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_breaks_on_etcd_with_one_write_at_a_time() {
    runs_on_etcd(150..200, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_breaks_on_the_embedded_datastore() {
    for seed in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(EmbeddedStore::open(folder.path().join("store")).unwrap());
        set_up(&*store, true).await;
        run(&store, seed, true, 2).await;
    }
}
