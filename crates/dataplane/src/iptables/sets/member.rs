//! Members of sets: those that belong to an IP version, their text, and what identifies many at once.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_engine::message::{Member, PortProtocol};
use tortie_rules::IpVersion;

/// Stands for the members of a set, in no order: changes with each that comes or goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) count: usize,
    sum: u64,
}

/// Makes fingerprints; those of different ones cannot be compared.
#[derive(Debug, Clone, Default)]
pub(super) struct Fingerprinter {
    hasher: RandomState,
}

// === impl Fingerprint ===

impl Fingerprint {
    /// With these members more, and these less.
    #[must_use]
    pub(super) fn changed(self, added: Self, removed: Self) -> Self {
        Self {
            count: (self.count + added.count).saturating_sub(removed.count),
            sum: self.sum.wrapping_add(added.sum).wrapping_sub(removed.sum),
        }
    }
}

// === impl Fingerprinter ===

impl Fingerprinter {
    /// Of members that are all different.
    pub(super) fn of(&self, members: &[Member]) -> Fingerprint {
        let hashes = members.iter().map(|member| self.hasher.hash_one(member));
        Fingerprint {
            count: members.len(),
            sum: hashes.fold(0, u64::wrapping_add),
        }
    }
}

/// The members of this IP version, in order and once each, as a set can hold them.
pub(super) fn fitting(members: &[Member], ip_version: IpVersion) -> Vec<Member> {
    let fits = |member: &&Member| {
        let is_v4 = match member {
            Member::Net(net) => matches!(net, IpNet::V4(_)),
            Member::Port(address, ..) => address.is_ipv4(),
        };
        is_v4 == (ip_version == IpVersion::V4)
    };
    let mut fitting = Vec::with_capacity(members.len());
    for member in members.iter().filter(fits) {
        match member {
            Member::Net(net) if net.prefix_len() == 0 => fitting.extend(halves(*net)),
            Member::Net(net) => fitting.push(Member::Net(net.trunc())),
            Member::Port(..) => fitting.push(*member),
        }
    }
    fitting.sort_unstable();
    fitting.dedup();
    fitting
}

/// All addresses as two networks: the kernel has no place for one of them all.
fn halves(all: IpNet) -> impl Iterator<Item = Member> {
    let halves = all.subnets(1).ok();
    halves.into_iter().flatten().map(Member::Net)
}

/// Reads a member as `ipset save` writes it.
pub(super) fn parse(text: &str) -> Option<Member> {
    let Some((address, port)) = text.split_once(',') else {
        let net = if text.contains('/') {
            text.parse().ok()?
        } else {
            IpNet::from(text.parse::<IpAddr>().ok()?)
        };
        return Some(Member::Net(net));
    };
    let (protocol, port) = port.split_once(':')?;
    let protocol = match protocol {
        "tcp" => PortProtocol::Tcp,
        "udp" => PortProtocol::Udp,
        "sctp" => PortProtocol::Sctp,
        _ => return None,
    };
    Some(Member::Port(
        address.parse().ok()?,
        protocol,
        port.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(text: &str) -> Member {
        parse(text).unwrap()
    }

    #[test]
    fn members_are_read_as_they_are_written() {
        for text in [
            "10.0.0.1/32",
            "10.0.0.0/8",
            "fe80::/10",
            "10.0.0.1,tcp:80",
            "fe80::1,sctp:7",
        ] {
            assert_eq!(member(text).to_string(), text);
        }
        assert_eq!(member("10.0.0.1"), member("10.0.0.1/32"));
        for text in ["", "10.0.0.1/99", "10.0.0.1,icmp:0", "10.0.0.1,tcp", "0-80"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn members_of_the_other_version_are_left_out_and_all_addresses_are_two_halves() {
        let members = [
            "fe80::1",
            "10.0.0.2",
            "10.0.0.1",
            "10.0.0.2",
            "0.0.0.0/0",
            "fe80::1,tcp:80",
        ];
        let fitting = fitting(&members.map(member), IpVersion::V4);
        assert_eq!(
            fitting,
            ["0.0.0.0/1", "10.0.0.1", "10.0.0.2", "128.0.0.0/1"].map(member)
        );
    }

    #[test]
    fn a_fingerprint_depends_on_the_members_and_not_on_the_way() {
        let of = Fingerprinter::default();
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(member);
        let one = of.of(&[a]);
        let two = of.of(&[b, a]);
        let other = of.of(&[c, a]);
        assert_ne!(two, other);
        assert_eq!(one.changed(of.of(&[b]), Fingerprint::default()), two);
        assert_eq!(two.changed(of.of(&[c]), of.of(&[b])), other);
    }
}
