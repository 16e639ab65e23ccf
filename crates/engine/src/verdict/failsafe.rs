//! Ports of hosts that are never closed, so that no policy can lock anyone out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::scalar::Protocol;

use crate::input::Configuration;

const INBOUND: &str = "FailsafeInboundHostPorts";
const OUTBOUND: &str = "FailsafeOutboundHostPorts";
const DEFAULT_INBOUND: &str =
    "tcp:22,udp:68,tcp:179,tcp:2379,tcp:2380,tcp:5473,tcp:6443,tcp:6666,tcp:6667";
const DEFAULT_OUTBOUND: &str =
    "udp:53,udp:67,tcp:179,tcp:2379,tcp:2380,tcp:5473,tcp:6443,tcp:6666,tcp:6667";

/// The failsafe ports of all nodes.
#[derive(Default)]
pub(crate) struct Failsafes {
    /// By the name of the configuration: `default` or `node.NAME`.
    ports: BTreeMap<String, [Option<String>; 2]>,
}

impl Failsafes {
    pub(crate) fn update(&mut self, name: &str, configuration: Option<&Configuration>) {
        let get = |key| configuration.and_then(|c| c.parameters.get(key).cloned());
        match [get(INBOUND), get(OUTBOUND)] {
            [None, None] => self.ports.remove(name),
            ports => self.ports.insert(name.to_owned(), ports),
        };
    }

    /// The failsafe port of a node, as it is configured, that lets a packet pass.
    pub(crate) fn find(
        &self,
        node: &str,
        is_inbound: bool,
        (protocol, port): (Option<&Protocol>, u16),
        peer: IpAddr,
    ) -> Option<String> {
        let (direction, default) = if is_inbound {
            (0, DEFAULT_INBOUND)
        } else {
            (1, DEFAULT_OUTBOUND)
        };
        let of = |name: &str| self.ports.get(name)?[direction].as_deref();
        let configured = of(&format!("node.{node}"))
            .or_else(|| of("default"))
            .unwrap_or(default);
        configured
            .split(',')
            .map(str::trim)
            .find(|text| {
                parse(text).is_some_and(|(p, net, n)| {
                    protocol.and_then(Protocol::number) == Some(p)
                        && n == port
                        && net.is_none_or(|net| net.contains(&peer))
                })
            })
            .map(str::to_owned)
    }
}

/// `protocol:network:port`, `protocol:port`, or `port` for TCP; an IPv6 network is in brackets.
fn parse(text: &str) -> Option<(u8, Option<IpNet>, u16)> {
    let (rest, port) = text.rsplit_once(':').unwrap_or(("tcp", text));
    let (protocol, net) = match rest.split_once(':') {
        Some((protocol, net)) => (protocol, Some(net.trim_matches(['[', ']']).parse().ok()?)),
        None => (rest, None),
    };
    let protocol = match protocol.to_lowercase().as_str() {
        "tcp" => 6,
        "udp" => 17,
        "sctp" => 132,
        _ => return None,
    };
    Some((protocol, net, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_in_all_their_forms() {
        assert_eq!(parse("22"), Some((6, None, 22)));
        assert_eq!(parse("udp:53"), Some((17, None, 53)));
        assert_eq!(
            parse("tcp:10.0.0.0/8:22"),
            Some((6, "10.0.0.0/8".parse().ok(), 22))
        );
        assert_eq!(
            parse("tcp:[fd00::/8]:22"),
            Some((6, "fd00::/8".parse().ok(), 22))
        );
        assert_eq!(parse("none"), None);
    }
}
