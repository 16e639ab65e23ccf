//! How often the datastore is asked.

use std::sync::Arc;

use tortie_ipam::{AutoAssign, Ipam};
use tortie_store::Store;

use crate::gate::Gate;
use crate::memory::MemoryStore;
use crate::script::{HOSTS, set_up};

async fn assign(ipam: &Ipam, handle: &str) {
    let request = AutoAssign {
        num4: 1,
        handle: Some(handle.to_owned()),
        ..AutoAssign::on(HOSTS[0])
    };
    let assigned = ipam.auto_assign(&request).await.unwrap();
    assert_eq!(assigned.v4.addresses.len(), 1);
}

/// An allocation and a release by a process that has done so before are one write each; a new process reads six objects
/// and lists, the first five of them at once, and writes once.
#[tokio::test]
async fn a_warm_process_asks_once_and_a_new_one_seven_times() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    set_up(&*store, true).await;
    let gate = Arc::new(Gate::new(Arc::clone(&store), true, usize::MAX));
    let ipam = Ipam::new(Arc::<Gate>::clone(&gate));
    assign(&ipam, "first").await;
    for (handle, expected) in [("a", 1), ("b", 1)] {
        let before = gate.passed();
        assign(&ipam, handle).await;
        assert_eq!(gate.passed() - before, expected, "assign {handle}");
    }
    let before = gate.passed();
    ipam.release_by_handle("a").await.unwrap();
    assert_eq!(gate.passed() - before, 1, "release");

    let gate = Arc::new(Gate::new(store, true, usize::MAX));
    let ipam = Ipam::new(Arc::<Gate>::clone(&gate));
    assign(&ipam, "c").await;
    assert_eq!(gate.passed(), 7, "a new process");
}
