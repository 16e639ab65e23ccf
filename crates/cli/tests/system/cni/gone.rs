//! A DEL that comes again.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cni::site::{Container, Site};

/// Shorter than anything that waits for a datastore that is not there.
const AT_ONCE: Duration = Duration::from_secs(1);

#[test]
fn a_del_that_has_done_all_is_not_done_again() {
    let mut site = Site::new();
    let none = json!({});
    let (one, other) = (
        Container::of_pod("one", "shop", "web"),
        Container::of_pod("other", "shop", "db"),
    );
    for container in [&one, &other] {
        site.calico("ADD", container, &none).unwrap();
    }
    site.calico("DEL", &one, &none).unwrap();
    assert_eq!(site.allocations(), 1);

    site.etcd.kill().unwrap();
    let start = Instant::now();
    for _ in 0..3 {
        site.calico("DEL", &one, &none).unwrap();
    }
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    // One that could not do everything has not, however often it comes.
    for _ in 0..2 {
        site.calico("DEL", &other, &none).unwrap_err();
    }
    let start = site.node.namespace().run(|| site.etcd.start_again());
    start.unwrap().unwrap();
    assert_eq!(site.allocations(), 1);
    site.calico("DEL", &other, &none).unwrap();
    site.assert_nothing_left();
}

#[test]
fn a_container_that_comes_again_goes_again() {
    let mut site = Site::new();
    let none = json!({});
    let container = Container::of_pod("one", "shop", "web");
    for _ in 0..3 {
        site.calico("ADD", &container, &none).unwrap();
        assert_eq!(site.allocations(), 1);
        for _ in 0..2 {
            site.calico("DEL", &container, &none).unwrap();
            site.assert_nothing_left();
        }
    }
    // An address that only the address plugin gave out is not that plugin's to forget.
    site.plugin("calico-ipam", "ADD", &container, &none)
        .unwrap();
    site.plugin("calico-ipam", "DEL", &container, &none)
        .unwrap();
    site.assert_nothing_left();
    let records = site.folder.path().join("ipam.gone");
    assert_eq!(fs::read_dir(records).unwrap().count(), 2);
}
