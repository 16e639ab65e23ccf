//! The largest packets: what the host's interfaces can carry, less what tunnels add.

use tortie_engine::message::Encapsulation;

/// Where nothing is known of the host's interfaces.
const UNKNOWN: u32 = 1460;

/// What each kind of tunnel adds to a packet.
const IPIP_HEADERS: u32 = 20;
const VXLAN_HEADERS: u32 = 50;
const VXLAN_V6_HEADERS: u32 = 70;

/// The largest packets that were asked for; none: what the host can carry decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MtuOptions {
    /// Through VXLAN.
    pub vxlan: Option<u32>,
    /// Through VXLAN between IPv6 nodes.
    pub vxlan_v6: Option<u32>,
    /// Through IPIP.
    pub ipip: Option<u32>,
}

/// The largest packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mtus {
    /// Through VXLAN.
    pub vxlan: u32,
    /// Through VXLAN between IPv6 nodes.
    pub vxlan_v6: u32,
    /// Through IPIP.
    pub ipip: u32,
    /// From pods, wherever they go.
    pub pod: u32,
}

impl Mtus {
    /// For a host whose interfaces carry packets of at least this size.
    pub fn new(host: Option<u32>, options: &MtuOptions, encapsulation: Encapsulation) -> Self {
        let host = host.unwrap_or(UNKNOWN);
        let less = |headers| host.saturating_sub(headers);
        let vxlan = options.vxlan.unwrap_or(less(VXLAN_HEADERS));
        let vxlan_v6 = options.vxlan_v6.unwrap_or(less(VXLAN_V6_HEADERS));
        let ipip = options.ipip.unwrap_or(less(IPIP_HEADERS));
        let in_use = [
            (encapsulation.vxlan_enabled, vxlan),
            (encapsulation.vxlan_enabled_v6, vxlan_v6),
            (encapsulation.ipip_enabled, ipip),
        ];
        let in_use = in_use.iter().filter(|(is_used, _)| *is_used);
        Self {
            vxlan,
            vxlan_v6,
            ipip,
            pod: in_use.map(|(_, mtu)| *mtu).min().unwrap_or(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Encapsulation, MtuOptions, Mtus};

    #[test]
    fn pods_get_what_every_tunnel_in_use_can_carry() {
        let vxlan = Encapsulation {
            vxlan_enabled: true,
            ..Encapsulation::default()
        };
        let both = Encapsulation {
            vxlan_enabled_v6: true,
            ..vxlan
        };
        let options = MtuOptions::default();
        let pod = |host, options, encapsulation| Mtus::new(host, &options, encapsulation).pod;
        assert_eq!(pod(Some(1500), options, Encapsulation::default()), 1500);
        assert_eq!(pod(Some(1500), options, vxlan), 1450);
        assert_eq!(pod(Some(9000), options, both), 8930);
        assert_eq!(pod(None, options, vxlan), 1410);
        let asked = MtuOptions {
            vxlan: Some(1300),
            ..options
        };
        assert_eq!(pod(Some(1500), asked, vxlan), 1300);
        assert_eq!(pod(Some(1500), asked, Encapsulation::default()), 1500);
    }
}
