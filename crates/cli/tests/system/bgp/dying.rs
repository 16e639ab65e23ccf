//! A node that is gone: how an address that two nodes have moves to the other one.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use tortie_testkit::net::Datagrams;

use crate::bgp::peers::{configure, peer_with};
use crate::bgp::router::{Conf, Router};
use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::reach::STREAM_PORT;
use crate::multi_node::speaker::{Speaker, kill_bird, run_folder};

/// Of a service, which every node has and tells.
const SERVICE: &str = "198.51.100.1";

const OUTSIDE: u32 = 65000;

/// How long peers keep what a node told that is gone without a word, in seconds: as short as it can be and still bridge a
/// restart of BIRD.
const RESTART: u64 = 5;

/// How long a router waits for a sign of life, in seconds.
const HOLD: u64 = 3;

/// Two nodes with a service, and a router between them and its clients. Node 0 is the router's choice.
struct Service {
    cluster: Cluster,
    router: Router,
    speakers: Vec<Option<Speaker>>,
}

/// How a node is gone.
#[derive(Debug, Clone, Copy)]
enum Death {
    /// Everything of ours is killed.
    Killed,
    /// `tortie node shutdown`.
    ShutDown,
    /// `tortie bgp --withdraw` is ended.
    Withdrawn,
    /// No packet leaves or reaches it.
    Unplugged,
}

impl Service {
    fn new() -> Self {
        let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
        let mut router = Router::outside(&mut cluster, 0);
        let address = &router.place.addresses[..1];
        let restart = format!(", maxRestartTime: {RESTART}s");
        peer_with(&cluster, "outside", (address, OUTSIDE), &restart);
        configure(
            &cluster,
            "serviceLoadBalancerIPs: [{cidr: 198.51.100.0/24}]",
        );
        for member in cluster.members() {
            member.run("ip", &format!("address add {SERVICE}/32 dev lo"));
        }
        let speakers = Speaker::everywhere(&cluster).into_iter().map(Some);
        let speakers = speakers.collect();
        let mut conf = Conf::towards(&cluster, &[0, 1], (OUTSIDE, 64512));
        conf.sessions.retain(|session| session.neighbour.is_ipv4());
        router.run(&conf.saying(&format!("hold time {HOLD};")));
        let service = Self {
            cluster,
            router,
            speakers,
        };
        service.await_both();
        service
    }

    /// Waits until the router knows both ways.
    fn await_both(&self) {
        let members = self.cluster.members();
        self.cluster.eventually("the router knows both nodes", || {
            let found = self.router.birdc(&format!("show route for {SERVICE}"));
            let hops = members.iter().map(|member| member.addresses[0]);
            hops.into_iter()
                .all(|hop| found.contains(&format!("via {hop} ")))
                && members.iter().all(|member| {
                    let session = self.router.session(member.addresses[0]);
                    session.contains("Established") && !session.contains("graceful restart active")
                })
        });
        self.stream(0).await_arrivals();
    }

    /// Datagrams to the service of which those arrive that are sent to a node.
    fn stream(&self, node: usize) -> Datagrams {
        let to = self.cluster.members()[node].node.namespace();
        let service: IpAddr = SERVICE.parse().unwrap();
        let place = &self.router.place;
        Datagrams::start(
            &place.namespace,
            place.addresses[0],
            to,
            (service, STREAM_PORT).into(),
        )
        .unwrap()
    }

    /// Lets node 0 be gone, and says after how long packets arrived at the other one.
    fn moves(&mut self, death: Death) -> Duration {
        let stream = self.stream(1);
        let start = Instant::now();
        let dying = &self.cluster.members()[0];
        match death {
            Death::Killed => {
                self.speakers[0].take().unwrap().kill();
                kill_bird(dying);
            }
            Death::ShutDown => {
                let folder = run_folder(dying).display().to_string();
                dying.tortie(&["node", "shutdown", "--run-folder", &folder], "");
            }
            Death::Withdrawn => drop(self.speakers[0].take()),
            Death::Unplugged => {
                dying.run("ip", "link set eth0 down");
            }
        }
        stream.await_arrivals();
        // The last one that went to the node that is gone.
        let lost = stream.lost();
        lost.last()
            .map_or(Duration::ZERO, |last| last.saturating_duration_since(start))
    }

    /// Has node 0 be there again.
    fn bring_back(&mut self, from: Death) {
        let member = &self.cluster.members()[0];
        match from {
            Death::Killed | Death::Withdrawn => self.speakers[0] = Some(Speaker::start(member)),
            Death::ShutDown => {
                let folder = run_folder(member).display().to_string();
                member.tortie(&["node", "startup", "--run-folder", &folder], "");
            }
            Death::Unplugged => {
                member.run("ip", "link set eth0 up");
            }
        }
        self.await_both();
    }
}

#[test]
fn what_a_node_has_told_moves_to_another_when_it_is_gone() {
    let mut service = Service::new();
    for (death, most) in [
        (Death::ShutDown, 10),
        (Death::Withdrawn, 10),
        (Death::Killed, RESTART + 10),
        (Death::Unplugged, HOLD + 10),
    ] {
        let took = service.moves(death);
        println!("{death:?}: {} ms", took.as_millis());
        assert!(took < Duration::from_secs(most), "{death:?}: {took:?}");
        service.bring_back(death);
    }
}

/// For `bench/bgp-failover`.
#[test]
#[ignore = "it measures"]
fn how_long_it_takes() {
    let mut service = Service::new();
    for (death, name) in [
        (Death::ShutDown, "shutdown"),
        (Death::Withdrawn, "withdraw"),
        (Death::Killed, "killed_restart_5s"),
        (Death::Unplugged, "unplugged_hold_3s"),
    ] {
        let mut took: Vec<Duration> = (0..5)
            .map(|_| {
                let took = service.moves(death);
                service.bring_back(death);
                took
            })
            .collect();
        took.sort();
        println!("failover_{name}_median {} ms", took[2].as_millis());
        println!("failover_{name}_max {} ms", took[4].as_millis());
    }
}
