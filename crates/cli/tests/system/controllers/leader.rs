//! Several processes, of which one acts.

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually};

const KILLS: usize = 20;

/// An election with a lease and a deadline to renew it, in seconds.
const fn election(lease: &'static str, renew_deadline: &'static str) -> [&'static str; 9] {
    [
        "--leader-elect",
        "--leader-elect-namespace",
        "default",
        "--leader-elect-lease",
        lease,
        "--leader-elect-renew-deadline",
        renew_deadline,
        "--leader-elect-retry",
        "0.3",
    ]
}

const SHORT: [&str; 9] = election("2", "1.5");

/// Nobody would wait until this lease runs out.
const LONG: [&str; 9] = election("3600", "1800");

/// What a process says as soon as one of its controllers may write.
const ACTS: &str = "Controller starts";

#[test]
fn one_of_two_acts_however_often_the_leader_is_killed() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    let start = |election| Program::start(&site, election, &[("ENABLED_CONTROLLERS", "policy")]);
    let mut leader = start(&SHORT);
    leader.await_words(ACTS);
    let mut other = start(&SHORT);
    for number in 0..KILLS {
        // Its caches are filled, so that it waits for nothing but the lease.
        other.await_words("Caches are filled");
        assert_eq!(other.said(ACTS), 0, "both act");
        site.policy("shop", &format!("p{number}"), "client");
        let copy = format!("networkpolicies/shop/knp.default.p{number}");
        site.await_stored(&copy, |_| true);
        assert_eq!(other.said(ACTS), 0, "both act");
        leader.kill();
        assert!(
            eventually(|| other.said(ACTS) > 0),
            "nobody acts: {}",
            other.log()
        );
        leader = std::mem::replace(&mut other, start(&SHORT));
    }
    assert_eq!(site.paths("networkpolicies/shop/").len(), KILLS);
    // A leader that ends in order hands over at once, however long its lease.
    other.kill();
    leader.kill();
    let leader = start(&LONG);
    leader.await_words(ACTS);
    let other = start(&LONG);
    other.await_words("Caches are filled");
    assert_eq!(other.said(ACTS), 0, "both act");
    assert!(leader.terminate().success());
    other.await_words(ACTS);
}
