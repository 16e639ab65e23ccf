//! BIRD and `tortie bgp` are killed again and again, and packets go on.

use tortie_testkit::net::Datagrams;

use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::member::Member;
use crate::multi_node::speaker::{Speaker, birdc, birds, kill_bird};

/// Two nodes with pods, and datagrams between these in both directions and IP versions.
struct World {
    cluster: Cluster,
    speakers: Vec<Option<Speaker>>,
    streams: Vec<Datagrams>,
}

/// What was counted.
struct Figures {
    sent: u64,
    lost: usize,
}

impl World {
    fn new() -> Self {
        let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
        let speakers = Speaker::everywhere(&cluster).into_iter().map(Some);
        let speakers = speakers.collect();
        let pods = cluster.pods_everywhere();
        cluster.all_reach_all(&pods);
        let mut streams = pods[0].datagrams(&pods[1]);
        streams.extend(pods[1].datagrams(&pods[0]));
        for stream in &streams {
            stream.await_arrivals();
        }
        let world = Self {
            cluster,
            speakers,
            streams,
        };
        world.await_recovery();
        world
    }

    /// Waits until sessions are up and nobody bridges a restart any more: a peer does that once at a time (RFC 4724).
    fn await_recovery(&self) {
        let has_recovered = |member: &Member| {
            let protocols = birdc(member, "show protocols all");
            let status = birdc(member, "show status");
            protocols.matches("BGP state:          Established").count() == 2
                && !protocols.contains("graceful restart active")
                && status.contains("Daemon is up and running")
                && !status.contains("recovery")
        };
        self.cluster.eventually("nobody recovers", || {
            self.cluster.members().iter().all(has_recovered)
        });
    }

    /// Nodes in turn, since each waits longer before it starts a BIRD that ended soon once more.
    fn kill_birds(&self, times: usize) {
        for time in 0..times {
            let member = &self.cluster.members()[time % 2];
            let before = birds(member);
            assert_eq!(before.len(), 1);
            kill_bird(member);
            self.cluster.eventually("another BIRD runs", || {
                let after = birds(member);
                !after.is_empty() && after != before
            });
            self.await_recovery();
        }
    }

    fn kill_speakers(&mut self, times: usize) {
        for time in 0..times {
            let node = time % 2;
            let member = &self.cluster.members()[node];
            let before = birds(member);
            self.speakers[node].take().unwrap().kill();
            self.streams[0].go_on();
            self.speakers[node] = Some(Speaker::start(member));
            self.streams[0].go_on();
            assert_eq!(birds(member), before, "BIRD has gone with it");
        }
        self.await_recovery();
    }

    fn count(self) -> Figures {
        let mut figures = Figures { sent: 0, lost: 0 };
        for stream in self.streams {
            figures.sent += stream.sent();
            figures.lost += stream.lost().len();
        }
        figures
    }
}

#[test]
fn no_packet_is_lost_when_bird_and_its_keeper_are_killed() {
    let mut world = World::new();
    world.kill_speakers(10);
    world.kill_birds(10);
    let Figures { sent, lost } = world.count();
    assert!(sent > 1000, "only {sent} datagrams were sent");
    assert_eq!(lost, 0, "lost of {sent}");
}

/// For `bench/bgp-kills`.
#[test]
#[ignore = "it takes many minutes"]
fn many_kills() {
    let kills = std::env::var("BGP_KILLS").map_or(50, |kills| kills.parse().unwrap());
    for what in ["bird", "keeper"] {
        let mut world = World::new();
        match what {
            "bird" => world.kill_birds(kills),
            _ => world.kill_speakers(kills),
        }
        let Figures { sent, lost } = world.count();
        println!("{what}_kills {kills} kills");
        println!("{what}_kills_sent {sent} packets");
        println!("{what}_kills_lost {lost} packets");
    }
}
