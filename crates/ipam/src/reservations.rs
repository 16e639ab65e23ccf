//! Addresses that are not given out by themselves.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::IpReservation;
use tortie_api::net::parse_cidr_or_ip;

use crate::nets;

/// The networks of all reservations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reservations {
    nets: Vec<IpNet>,
}

impl Reservations {
    /// What these resources reserve. Entries that are no networks reserve nothing.
    pub fn new<'a>(reservations: impl IntoIterator<Item = &'a IpReservation>) -> Self {
        let mut nets = Vec::new();
        for reservation in reservations {
            for text in &reservation.spec.reserved_cidrs {
                if let Some(cidr) = parse_cidr_or_ip(text.trim()) {
                    nets.push(cidr.network());
                } else {
                    let name = &reservation.metadata.name;
                    tracing::warn!(
                        reservation = name,
                        entry = text,
                        "Not a network: it reserves nothing"
                    );
                }
            }
        }
        Self { nets }
    }

    /// Whether the address is reserved.
    pub fn reserves(&self, address: IpAddr) -> bool {
        self.nets.iter().any(|net| net.contains(&address))
    }

    /// Whether one reservation covers the whole network.
    pub fn covers(&self, net: IpNet) -> bool {
        self.nets.iter().any(|reserved| reserved.contains(&net))
    }

    /// Whether some address of the network may be reserved.
    pub fn touches(&self, net: IpNet) -> bool {
        self.nets
            .iter()
            .any(|reserved| reserved.contains(&net) || net.contains(reserved))
    }

    /// How many addresses of the network are reserved.
    pub fn count_in(&self, net: IpNet) -> u128 {
        if self.covers(net) {
            return nets::size(net);
        }
        let inside: Vec<IpNet> = self
            .nets
            .iter()
            .copied()
            .filter(|reserved| net.contains(reserved))
            .collect();
        IpNet::aggregate(&inside).into_iter().map(nets::size).sum()
    }
}

#[cfg(test)]
mod tests {
    use tortie_api::ip_reservation::IpReservationSpec;

    use super::*;

    #[test]
    fn networks_and_addresses_are_reserved_and_nonsense_is_not() {
        let entries = [
            "10.0.0.0/30",
            " 10.0.0.9",
            "",
            "x",
            "10.0.0.2/31",
            "fd00::/64",
        ];
        let spec = IpReservationSpec {
            reserved_cidrs: entries.map(str::to_owned).to_vec(),
        };
        let reservations = Reservations::new([&IpReservation::new("", "r", spec)]);
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        assert!(reservations.reserves("10.0.0.3".parse().unwrap()));
        assert!(!reservations.reserves("10.0.0.4".parse().unwrap()));
        assert!(
            reservations.covers(net("10.0.0.0/31")) && !reservations.covers(net("10.0.0.0/29"))
        );
        assert!(
            reservations.touches(net("10.0.0.8/29")) && !reservations.touches(net("10.0.1.0/24"))
        );
        assert_eq!(reservations.count_in(net("10.0.0.0/24")), 5);
        assert_eq!(reservations.count_in(net("fd00::/122")), 64);
        assert_eq!(reservations.count_in(net("fd01::/122")), 0);
    }
}
