//! Routes to other nodes change hands between the agent and BIRD, in both directions and orders, while packets go on.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::reach::Pod;
use crate::multi_node::speaker::{Speaker, run_folder};

/// Who programs routes: both settings, in the order in which they are written.
fn set(cluster: &Cluster, settings: &[(&str, &str)]) {
    let documents = settings.iter().map(|(kind, value)| {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: {kind}\nmetadata: {{name: default}}\n\
             spec: {{programClusterRoutes: {value}}}\n---\n"
        )
    });
    cluster.apply(&documents.collect::<String>());
}

const FELIX: &str = "FelixConfiguration";
const BGP: &str = "BGPConfiguration";

/// Waits until all of a pod's addresses have routes of the one and none of the other.
#[track_caller]
fn await_routes(cluster: &Cluster, to: &Pod, proto: &str, not: &str) {
    let has = |routes: &[String], proto: &str| {
        let word = format!("proto {proto} ");
        routes
            .iter()
            .filter(|route| (String::clone(route) + " ").contains(&word))
            .count()
    };
    cluster.eventually(&format!("routes of {proto} and not of {not}"), || {
        let routes = cluster.routes_to_block_of(0, to);
        has(&routes, proto) == to.addresses.len() && has(&routes, not) == 0
    });
}

fn problems(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("bgp-status.json")).unwrap_or_default()
}

#[test]
fn routes_change_hands_without_the_loss_of_a_packet() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    let mut speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    await_routes(&cluster, &pods[1], "bird", "80");
    let mut streams = pods[0].datagrams(&pods[1]);
    streams.extend(pods[1].datagrams(&pods[0]));
    for stream in &streams {
        stream.await_arrivals();
    }

    let to_agent = [(FELIX, "Enabled"), (BGP, "Disabled")];
    let to_bird = [(FELIX, "Disabled"), (BGP, "Enabled")];
    for round in 0..3 {
        for (settings, proto, not) in [(to_agent, "80", "bird"), (to_bird, "bird", "80")] {
            match round {
                0 => set(&cluster, &settings),
                1 => settings.iter().rev().for_each(|one| {
                    set(&cluster, &[*one]);
                    // Nobody is responsible for a while, or both are.
                    streams
                        .iter()
                        .for_each(tortie_testkit::net::Datagrams::go_on);
                }),
                // Whoever is in the middle of it is started anew.
                _ => {
                    set(&cluster, &settings[..1]);
                    cluster.restart_agent(0);
                    set(&cluster, &settings[1..]);
                    for node in [0, 1] {
                        let new = Speaker::start(&cluster.members()[node]);
                        std::mem::replace(&mut speakers[node], new).kill();
                    }
                    cluster.restart_agent(1);
                }
            }
            await_routes(&cluster, &pods[1], proto, not);
        }
    }

    // BIRD goes on where both say that they are not responsible, and it is said.
    set(&cluster, &[(BGP, "Disabled")]);
    let run = run_folder(&cluster.members()[0]);
    cluster.eventually("it is said who has the routes", || {
        let said = problems(&run);
        [
            "goes on programming",
            "nobody programs",
            "Disabled is set here",
            "says Disabled",
        ]
        .iter()
        .all(|part| said.contains(part))
    });
    await_routes(&cluster, &pods[1], "bird", "80");
    set(&cluster, &[(FELIX, "Enabled")]);
    await_routes(&cluster, &pods[1], "80", "bird");
    cluster.eventually("nothing is wrong any more", || {
        !problems(&run).contains("programming")
    });
    // And so does the agent.
    set(&cluster, &[(FELIX, "Disabled")]);
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        await_routes(&cluster, &pods[1], "80", "bird");
    }
    cluster.restart_agent(0);
    await_routes(&cluster, &pods[1], "80", "bird");

    for stream in streams {
        let (sent, lost) = (stream.sent(), stream.lost());
        assert!(sent > 1000, "only {sent} datagrams were sent");
        assert_eq!(lost.len(), 0, "lost of {sent}");
    }
}
