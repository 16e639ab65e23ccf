//! The kernel against the engine: random worlds are brought into a node of namespaces, and what becomes of real packets
//! must be what the engine's verdict for their whole way says.
//!
//! Only the local node enforces anything, so of a connection with somebody elsewhere its side alone counts. By design
//! the kernel does some things that no verdict is about; they are part of what is expected, or are not tried:
//! - A node always reaches its own pods.
//! - What pods send to their node is treated as the world's configuration says once their own policy has let it out.
//! - A host endpoint for all interfaces also concerns those of pods, but not before connection tracking.
//! - Failsafe ports follow the world's configuration. What comes from such a port could be an answer, which policy before
//!   connection tracking lets pass.
//! - Packets to oneself, from foreign addresses, of tunnels, errors of ICMP, neighbour discovery, and packets that no
//!   connection can begin with.
//! - Connections that were seen before: the kernel is told to forget them at once.
//!
//! `DIFFERENTIAL_PROBES` asks for so many packets in new worlds; `DIFFERENTIAL_SEED` for certain worlds.

mod machine;
mod packets;
mod places;
mod stages;
mod trial;

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use tortie_dataplane::iptables::Variant;

use crate::verdict::{evaluate, random, world};

use machine::Plane;
use trial::Trial;

/// How many packets are sent if nobody says.
const PROBES: usize = 20_000;

#[test]
fn nftables_does_what_the_verdict_says() {
    check(Plane::Nftables, 1);
}

#[test]
fn iptables_of_nftables_does_what_the_verdict_says() {
    check(Plane::Iptables(Variant::Nft), 2);
}

#[test]
fn legacy_iptables_does_what_the_verdict_says() {
    check(Plane::Iptables(Variant::Legacy), 3);
}

#[expect(clippy::print_stdout, reason = "the result of a long run")]
fn check(plane: Plane, fixed_seed: u64) {
    let number = |name: &str| -> Option<u64> {
        let text = env::var(name).ok()?;
        Some(text.parse().expect("a number"))
    };
    let probes = number("DIFFERENTIAL_PROBES");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let fresh_seed = now.map_or(0, |now| now.as_secs());
    let usual_seed = probes.map_or(fixed_seed, |_| fresh_seed);
    let seed = number("DIFFERENTIAL_SEED").unwrap_or(usual_seed);
    let probes = probes.map_or(PROBES, |probes| usize::try_from(probes).expect("a number"));
    let tally = Trial::new(plane, seed).run(probes);
    let (worlds, probes, mismatches) = (tally.worlds, tally.probes, tally.mismatches);
    println!(
        "{}: worlds {worlds} probes {probes} mismatches {mismatches} (allowed {}, seed {seed})",
        plane.name(),
        tally.allowed
    );
    assert_eq!(mismatches, 0, "see {:#?}", tally.reports);
    // Whether the random worlds are worth anything: everything that can decide must have decided both ways.
    for stage in stages::STAGES {
        for is_allowed in [true, false] {
            let times = tally.decided.get(&(stage, is_allowed)).copied();
            assert!(times > Some(0), "{stage} {is_allowed}: {tally:#?}");
        }
    }
}
