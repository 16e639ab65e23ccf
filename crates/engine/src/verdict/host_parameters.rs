//! What the configuration of nodes says about packets to and from the nodes themselves: ports that are never closed, so
//! that no policy can lock anyone out, and what becomes of packets from workloads.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::Serialize;
use tortie_api::scalar::Protocol;

use crate::input::Configuration;

const INBOUND: &str = "FailsafeInboundHostPorts";
const OUTBOUND: &str = "FailsafeOutboundHostPorts";
const DEFAULT_INBOUND: &str =
    "tcp:22,udp:68,tcp:179,tcp:2379,tcp:2380,tcp:5473,tcp:6443,tcp:6666,tcp:6667";
const DEFAULT_OUTBOUND: &str =
    "udp:53,udp:67,tcp:179,tcp:2379,tcp:2380,tcp:5473,tcp:6443,tcp:6666,tcp:6667";

const TO_HOST: &str = "DefaultEndpointToHostAction";

/// The parameters of all nodes.
#[derive(Default)]
pub(crate) struct HostParameters {
    /// By the name of the configuration: `default` or `node.NAME`.
    by_name: BTreeMap<String, Parameters>,
}

#[derive(Default, PartialEq)]
struct Parameters {
    inbound: Option<String>,
    outbound: Option<String>,
    to_host: Option<EndpointToHost>,
}

/// What becomes of packets from workloads to their own node that their policies let out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum EndpointToHost {
    /// They are dropped.
    #[default]
    Drop,
    /// Rules of others decide; where there are none, they pass.
    Return,
    /// They pass.
    Accept,
}

impl fmt::Display for EndpointToHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for EndpointToHost {
    type Err = ();

    /// As configurations have it, in any case of letters.
    fn from_str(text: &str) -> Result<Self, ()> {
        match &*text.to_ascii_lowercase() {
            "drop" => Ok(Self::Drop),
            "return" => Ok(Self::Return),
            "accept" => Ok(Self::Accept),
            _ => Err(()),
        }
    }
}

impl HostParameters {
    pub(crate) fn update(&mut self, name: &str, configuration: Option<&Configuration>) {
        let get = |key| configuration.and_then(|c| c.parameters.get(key));
        let parameters = Parameters {
            inbound: get(INBOUND).cloned(),
            outbound: get(OUTBOUND).cloned(),
            to_host: get(TO_HOST).and_then(|text| text.parse().ok()),
        };
        if parameters == Parameters::default() {
            self.by_name.remove(name);
        } else {
            self.by_name.insert(name.to_owned(), parameters);
        }
    }

    /// What a node does with packets from its workloads to itself, and whether that is set.
    pub(crate) fn endpoint_to_host(&self, node: &str) -> (EndpointToHost, bool) {
        let set = self.of(node, |parameters| parameters.to_host);
        (set.unwrap_or_default(), set.is_some())
    }

    /// The failsafe port of a node, as it is configured, that lets a packet pass.
    pub(crate) fn failsafe(
        &self,
        node: &str,
        is_inbound: bool,
        (protocol, port): (Option<&Protocol>, u16),
        peer: IpAddr,
    ) -> Option<String> {
        let mut ports = self.failsafes(node, is_inbound);
        let is_open = |text: &&str| {
            parse(text).is_some_and(|(p, net, n)| {
                protocol.and_then(Protocol::number) == Some(p)
                    && n == port
                    && net.is_none_or(|net| net.contains(&peer))
            })
        };
        ports.find(is_open).map(str::to_owned)
    }

    /// The ports of a node that are never closed, with their protocols.
    pub(crate) fn failsafe_ports(
        &self,
        node: &str,
        is_inbound: bool,
    ) -> impl Iterator<Item = (u8, u16)> {
        let ports = self.failsafes(node, is_inbound).filter_map(parse);
        ports.map(|(protocol, _, port)| (protocol, port))
    }

    fn failsafes(&self, node: &str, is_inbound: bool) -> impl Iterator<Item = &str> {
        let configured = self.of(node, |parameters| {
            if is_inbound {
                parameters.inbound.as_deref()
            } else {
                parameters.outbound.as_deref()
            }
        });
        let default = if is_inbound {
            DEFAULT_INBOUND
        } else {
            DEFAULT_OUTBOUND
        };
        configured.unwrap_or(default).split(',').map(str::trim)
    }

    /// What is set for a node, or else for all.
    fn of<'a, T>(&'a self, node: &str, get: impl Fn(&'a Parameters) -> Option<T>) -> Option<T> {
        let named = |name: &str| self.by_name.get(name).and_then(&get);
        named(&format!("node.{node}")).or_else(|| named("default"))
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
