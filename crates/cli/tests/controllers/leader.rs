//! Several processes, of which one acts.

use std::time::{Duration, Instant};

use crate::program::Program;
use crate::site::{Site, eventually};

const KILLS: usize = 20;
const LEASE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(300);

/// How much later than promised a process may say that it acts, on a machine with much else to do.
const SLACK: Duration = Duration::from_millis(700);

const ELECTION: [&str; 9] = [
    "--leader-elect",
    "--leader-elect-namespace",
    "default",
    "--leader-elect-lease",
    "2",
    "--leader-elect-renew-deadline",
    "1.5",
    "--leader-elect-retry",
    "0.3",
];

/// What a process says as soon as one of its controllers may write.
const ACTS: &str = "Controller starts";

#[test]
fn one_of_two_acts_however_often_the_leader_is_killed() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    let start = || Program::start(&site, &ELECTION, &[("ENABLED_CONTROLLERS", "policy")]);
    let mut leader = start();
    leader.await_words(ACTS);
    let mut other = start();
    let mut takeovers = Vec::new();
    for number in 0..KILLS {
        // Its caches are filled, so that it waits for nothing but the lease.
        other.await_words("Caches are filled");
        assert_eq!(other.said(ACTS), 0, "both act");
        site.policy("shop", &format!("p{number}"), "client");
        let copy = format!("networkpolicies/shop/knp.default.p{number}");
        site.await_stored(&copy, |_| true);
        assert_eq!(other.said(ACTS), 0, "both act");
        leader.kill();
        let killed = Instant::now();
        assert!(
            eventually(|| other.said(ACTS) > 0),
            "nobody acts: {}",
            other.log()
        );
        takeovers.push(killed.elapsed());
        leader = std::mem::replace(&mut other, start());
    }
    takeovers.sort_unstable();
    let promised = LEASE + RETRY;
    assert!(takeovers[KILLS / 2] < promised, "{takeovers:?}");
    assert!(takeovers[KILLS - 1] < promised + SLACK, "{takeovers:?}");
    assert_eq!(site.paths("networkpolicies/shop/").len(), KILLS);
    // A leader that ends in order hands over at once.
    other.await_words("Caches are filled");
    let ended = Instant::now();
    assert!(leader.terminate().success());
    assert!(eventually(|| other.said(ACTS) > 0));
    assert!(ended.elapsed() < 2 * LEASE, "{:?}", ended.elapsed());
}
