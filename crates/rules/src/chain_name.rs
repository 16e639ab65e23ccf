//! Names of the chains of policies, profiles and endpoints.
//!
//! Each is a prefix that says what the chain is for, then what it belongs to. What does not fit is
//! replaced by a hash, so the names of two policies remain different.

use std::fmt;

use tortie_selector::ids::length_limited_id;

use crate::PolicyId;

/// Stands for the interface in the chain names of a host endpoint that is about all interfaces.
///
/// It is longer than the 15 bytes that Linux allows for an interface, so it cannot be one's name.
pub const ANY_INTERFACE: &str = "any-interface-at-all";

/// What all chains of ours start with.
const PREFIX: &str = "cali-";

/// What filters the packets, and so how long names may be and how they are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dataplane {
    /// iptables, with sets from ipset.
    Iptables,
    Nftables,
}

/// The side of an endpoint's traffic that a policy or profile is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// What the endpoint receives.
    Ingress,
    /// What the endpoint sends.
    Egress,
}

/// The chains that an endpoint can have, each once for its interface.
///
/// "To" and "from" are seen from the host: what goes to a workload is the workload's ingress, but
/// what goes to a host endpoint leaves the host through it and is its egress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointChain {
    /// Ingress policy of a workload.
    ToWorkload,
    /// Egress policy of a workload.
    FromWorkload,
    /// Egress policy of a host endpoint.
    ToHost,
    /// Ingress policy of a host endpoint.
    FromHost,
    /// Egress policy of a host endpoint for forwarded traffic.
    ToHostForward,
    /// Ingress policy of a host endpoint for forwarded traffic.
    FromHostForward,
    /// Marks a packet with the endpoint it came from, where IPVS would hide it.
    SetEndpointMark,
    /// Drops ARP replies of the host in a workload's name; in nftables only.
    WorkloadArp,
}

// === impl Dataplane ===

impl Dataplane {
    /// The longest name for a chain, in bytes.
    fn max_chain_name(self) -> usize {
        match self {
            // The kernel's limit for a chain that rules jump to.
            Self::Iptables => 28,
            // Calico's choice. The kernel counts a final NUL, and the renderer puts the table's
            // layer in front and shortens what is then too long for it.
            Self::Nftables => 256,
        }
    }
}

impl fmt::Display for Dataplane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Iptables => "iptables",
            Self::Nftables => "nftables",
        })
    }
}

// === impl Direction ===

impl Direction {
    /// The word for it in the hash of a [`PolicyGroup`](crate::PolicyGroup).
    pub(crate) fn in_or_outbound(self) -> &'static str {
        match self {
            Self::Ingress => "inbound",
            Self::Egress => "outbound",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

// === impl EndpointChain ===

impl EndpointChain {
    fn prefix(self) -> &'static str {
        match self {
            Self::ToWorkload => "cali-tw-",
            Self::FromWorkload => "cali-fw-",
            Self::ToHost => "cali-th-",
            Self::FromHost => "cali-fh-",
            Self::ToHostForward => "cali-thfw-",
            Self::FromHostForward => "cali-fhfw-",
            Self::SetEndpointMark => "cali-sm-",
            Self::WorkloadArp => "cali-arp-",
        }
    }
}

/// The chain with the rules of a policy in one direction.
pub fn policy_chain_name(id: &PolicyId, direction: Direction, dataplane: Dataplane) -> String {
    let prefix = match direction {
        Direction::Ingress => "cali-pi-",
        Direction::Egress => "cali-po-",
    };
    length_limited_id(prefix, &id.to_string(), dataplane.max_chain_name())
}

/// The chain with the rules of a profile in one direction.
pub fn profile_chain_name(profile: &str, direction: Direction, dataplane: Dataplane) -> String {
    let prefix = match direction {
        Direction::Ingress => "cali-pri-",
        Direction::Egress => "cali-pro-",
    };
    length_limited_id(prefix, profile, dataplane.max_chain_name())
}

/// The chain that takes the place of another for packets whose authentication header hides what comes behind it. No name of
/// a policy or profile has a slash, so that it is no other's.
pub fn behind_header_chain_name(chain: &str, dataplane: Dataplane) -> String {
    let own = chain.strip_prefix(PREFIX).unwrap_or(chain);
    length_limited_id(PREFIX, &[own, "/ah"].concat(), dataplane.max_chain_name())
}

/// A chain of the endpoint with this interface, which may be [`ANY_INTERFACE`].
pub fn endpoint_chain_name(chain: EndpointChain, interface: &str, dataplane: Dataplane) -> String {
    length_limited_id(chain.prefix(), interface, dataplane.max_chain_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyKind;

    const BOTH: [Dataplane; 2] = [Dataplane::Iptables, Dataplane::Nftables];

    #[track_caller]
    fn check_policy(namespace: &str, name: &str, dataplane: Dataplane, expected: [&str; 2]) {
        let id = PolicyId {
            kind: PolicyKind::KubernetesNetworkPolicy,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let names = [Direction::Ingress, Direction::Egress]
            .map(|direction| policy_chain_name(&id, direction, dataplane));
        assert_eq!(names, expected);
    }

    #[track_caller]
    fn check_endpoint(chain: EndpointChain, interface: &str, expected: [&str; 2]) {
        let names = BOTH.map(|dataplane| endpoint_chain_name(chain, interface, dataplane));
        assert_eq!(names, expected);
    }

    #[test]
    fn a_policy_chain_is_named_by_the_short_identity_if_that_fits() {
        for dataplane in BOTH {
            check_policy(
                "fe7kqlbdq5e",
                "65z",
                dataplane,
                ["cali-pi-knp/fe7kqlbdq5e/65z", "cali-po-knp/fe7kqlbdq5e/65z"],
            );
        }
    }

    #[test]
    fn iptables_hashes_a_name_that_nftables_still_takes() {
        check_policy(
            "so4lsovi3pzvf",
            "r7w",
            Dataplane::Iptables,
            [
                "cali-pi-_KOjN2aX5JrLwVIC_SzY",
                "cali-po-_KOjN2aX5JrLwVIC_SzY",
            ],
        );
        check_policy(
            "so4lsovi3pzvf",
            "r7w",
            Dataplane::Nftables,
            [
                "cali-pi-knp/so4lsovi3pzvf/r7w",
                "cali-po-knp/so4lsovi3pzvf/r7w",
            ],
        );
    }

    #[test]
    fn nftables_hashes_beyond_256_bytes() {
        let name_of = |length: usize| {
            let profile = "p".repeat(length - "cali-pri-".len());
            profile_chain_name(&profile, Direction::Ingress, Dataplane::Nftables)
        };
        assert!(name_of(256).ends_with("ppp"));
        assert_eq!(name_of(257).len(), "cali-pri-_".len() + 43);
    }

    #[test]
    fn an_interface_name_always_fits() {
        let interface = "cali01234567890";
        for chain in [EndpointChain::ToHostForward, EndpointChain::WorkloadArp] {
            let name = [chain.prefix(), interface].concat();
            check_endpoint(chain, interface, [&name, &name]);
        }
    }

    #[test]
    fn the_name_for_any_interface_fits_except_in_the_forward_chains_of_iptables() {
        check_endpoint(
            EndpointChain::FromHost,
            ANY_INTERFACE,
            ["cali-fh-any-interface-at-all"; 2],
        );
        check_endpoint(
            EndpointChain::SetEndpointMark,
            ANY_INTERFACE,
            ["cali-sm-any-interface-at-all"; 2],
        );
        check_endpoint(
            EndpointChain::ToHostForward,
            ANY_INTERFACE,
            [
                "cali-thfw-_Nqh4HyA73udmyanQI",
                "cali-thfw-any-interface-at-all",
            ],
        );
    }
}
