//! A node with two pods and a stranger.

use std::net::IpAddr;
use std::process::Command;

use tortie_testkit::net::{External, Namespace, Node, Packet, Pod, Ports, Probe, Prober, Site};

pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) a: Pod,
    pub(crate) b: Pod,
    pub(crate) stranger: External,
}

/// Who takes part in probes.
pub(crate) struct Sites {
    pub(crate) prober: Prober,
    pub(crate) node: Site,
    pub(crate) a: Site,
    pub(crate) b: Site,
    pub(crate) stranger: Site,
}

impl World {
    /// With routes to the pods, as if an agent ran.
    pub(crate) fn new() -> Self {
        let mut node = Node::new().unwrap();
        let a = node
            .add_pod("calia", &both("10.65.0.1", "fd00:65::1"))
            .unwrap();
        let b = node
            .add_pod("calib", &both("10.65.0.2", "fd00:65::2"))
            .unwrap();
        let near = ["192.0.2.1/24", "2001:db8::1/64"].map(|a| a.parse().unwrap());
        let far = ["192.0.2.9/24", "2001:db8::9/64"].map(|a| a.parse().unwrap());
        let stranger = node.add_external("eth0", &near, &far).unwrap();
        node.route_to(&a).unwrap();
        node.route_to(&b).unwrap();
        Self {
            node,
            a,
            b,
            stranger,
        }
    }

    pub(crate) fn sites(&self) -> Sites {
        let mut prober = Prober::new();
        Sites {
            node: prober.add_site(self.node.namespace()),
            a: prober.add_site(&self.a.namespace),
            b: prober.add_site(&self.b.namespace),
            stranger: prober.add_site(&self.stranger.namespace),
            prober,
        }
    }

    /// Gives the node a packet filter.
    pub(crate) fn filter(&self, hook: &str, rules: &str) {
        let chain = format!("type filter hook {hook} priority 0; {rules}");
        let ruleset = format!("table inet t {{ chain {hook} {{ {chain}; }}; }}");
        run(self.node.namespace(), "nft", &[&ruleset]);
    }
}

pub(crate) fn both(ipv4: &str, ipv6: &str) -> [IpAddr; 2] {
    [address(ipv4), address(ipv6)]
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn probe(from: (Site, &str), to: (Site, &str), packet: Packet) -> Probe {
    Probe {
        from: from.0,
        to: to.0,
        source: address(from.1),
        destination: address(to.1),
        packet,
    }
}

pub(crate) fn tcp(port: u16) -> Packet {
    Packet::Tcp(Ports::to(port))
}

pub(crate) fn udp(port: u16) -> Packet {
    Packet::Udp(Ports::to(port))
}

/// Runs a program in a namespace and gives what it prints.
#[track_caller]
pub(crate) fn run(namespace: &Namespace, program: &str, arguments: &[&str]) -> String {
    let output = namespace
        .run(|| Command::new(program).args(arguments).output())
        .unwrap()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
