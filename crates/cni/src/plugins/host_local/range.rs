//! Ranges of addresses, and in which order their addresses are tried.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::result::Address;

/// A range of addresses, in a network whose other addresses are no concern of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) subnet: IpNet,
    pub(super) first: IpAddr,
    pub(super) last: IpAddr,
    /// Never given out.
    pub(super) gateway: IpAddr,
}

impl Range {
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let is_inside =
            number(self.first) <= number(address) && number(address) <= number(self.last);
        self.subnet.contains(&address) && is_inside
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let ends = [other.first, other.last].map(|end| self.contains(end));
        ends.contains(&true)
            || [self.first, self.last]
                .map(|end| other.contains(end))
                .contains(&true)
    }

    /// One of its addresses, as results have them.
    pub(super) fn address(&self, address: IpAddr) -> Address {
        Address {
            interface: None,
            address: IpNet::new(address, self.subnet.prefix_len())
                .unwrap_or_else(|_| address.into()),
            gateway: Some(self.gateway),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// All addresses of a set that may be given out, each once, beginning behind the one that was given out last.
pub(super) fn candidates(
    set: &[Range],
    last: Option<IpAddr>,
) -> impl Iterator<Item = (IpAddr, &Range)> {
    let begin = last.and_then(|last| {
        let place = set.iter().position(|range| range.contains(last))?;
        Some((place, last))
    });
    let mut parts = Vec::new();
    let whole = |range: &Range| (number(range.first), number(range.last));
    if let Some((place, last)) = begin {
        let (first, end) = whole(&set[place]);
        let middle = number(last);
        // Behind the end of all addresses there is nothing.
        let behind = middle.checked_add(1);
        parts.extend(behind.map(|behind| (&set[place], behind, end)));
        let others = set[place + 1..].iter().chain(&set[..place]);
        parts.extend(others.map(|range| (range, whole(range).0, whole(range).1)));
        parts.push((&set[place], first, middle));
    } else {
        parts.extend(
            set.iter()
                .map(|range| (range, whole(range).0, whole(range).1)),
        );
    }
    parts.into_iter().flat_map(|(range, first, last)| {
        let all = (first..=last).map(|number| address(number, range.first.is_ipv4()));
        let free = all.filter(|address| *address != range.gateway);
        free.map(move |address| (address, range))
    })
}

pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

pub(super) fn address(number: u128, is_ipv4: bool) -> IpAddr {
    if is_ipv4 {
        return IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into());
    }
    IpAddr::V6(number.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(subnet: &str, first: &str, last: &str, gateway: &str) -> Range {
        let parse = |text: &str| text.parse().expect("an address");
        Range {
            subnet: subnet.parse().expect("a network"),
            first: parse(first),
            last: parse(last),
            gateway: parse(gateway),
        }
    }

    #[track_caller]
    fn check(set: &[Range], last: Option<&str>, expected: &[&str]) {
        let last = last.map(|last| last.parse().expect("an address"));
        let found: Vec<String> = candidates(set, last)
            .map(|(address, _)| address.to_string())
            .collect();
        assert_eq!(found, expected, "{last:?}");
    }

    #[test]
    fn addresses_go_round() {
        let set = [
            range("10.0.0.0/29", "10.0.0.1", "10.0.0.4", "10.0.0.1"),
            range("10.0.1.0/29", "10.0.1.5", "10.0.1.6", "10.0.1.1"),
        ];
        check(
            &set,
            None,
            &["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.1.5", "10.0.1.6"],
        );
        check(
            &set,
            Some("10.0.0.3"),
            &["10.0.0.4", "10.0.1.5", "10.0.1.6", "10.0.0.2", "10.0.0.3"],
        );
        check(
            &set,
            Some("10.0.1.6"),
            &["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.1.5", "10.0.1.6"],
        );
        check(
            &set,
            Some("192.0.2.1"),
            &["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.1.5", "10.0.1.6"],
        );
    }

    #[test]
    fn the_end_of_all_addresses_is_no_problem() {
        let last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let first = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe";
        let set = [range(
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc/126",
            first,
            last,
            "::1",
        )];
        assert_eq!(
            candidates(&set, Some(last.parse().expect("an address"))).count(),
            2
        );
        assert!(set[0].overlaps(&set[0]));
    }
}
