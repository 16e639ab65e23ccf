//! What rendering depends on besides the messages.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::scalar::Protocol;

use crate::rule::{Action, PortRange, Rate};

/// The parameters of the renderer. The default is that of Calico's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent parameters, each of which is on or off"
)]
pub struct Config {
    /// The bits of the packet mark that rules use.
    pub marks: Marks,
    /// What the names of workloads' interfaces begin with.
    pub workload_prefixes: Vec<String>,
    /// What happens to accepted packets in the filter table.
    pub filter_allow: Allow,
    /// What happens to accepted packets in the mangle table.
    pub mangle_allow: Allow,
    /// What happens to denied packets.
    pub deny: Deny,
    /// What happens to a workload's packets to its host, once its policy has let them through.
    pub endpoint_to_host: EndpointToHost,
    /// Ports of the host that stay open for others.
    pub failsafe_inbound: Vec<FailsafePort>,
    /// Ports of others that stay open for the host.
    pub failsafe_outbound: Vec<FailsafePort>,
    /// What happens to packets for services that nobody answers for; they would go round in circles.
    pub service_loop: Option<Deny>,
    /// Packets that connection tracking finds invalid are let through to policy.
    pub disable_conntrack_invalid: bool,
    /// How notes in the kernel's log begin.
    pub log_prefix: String,
    /// How often a `Log` rule may write at most.
    pub log_rate: Option<(Rate, u32)>,
    /// Rules report the packets that they decide on.
    pub flow_logs: bool,
    /// Address translation for packets that leave the cluster.
    pub nat_outgoing: NatOutgoing,
    /// Workloads can have floating addresses.
    pub floating_addresses: bool,
    /// Tunnels.
    pub tunnels: Tunnels,
    /// Workloads may send VXLAN packets.
    pub allow_vxlan_from_workloads: bool,
    /// Workloads may send IP-in-IP packets.
    pub allow_ipip_from_workloads: bool,
    /// Services are done by IPVS; in iptables only.
    pub ipvs: bool,
    /// Ports of the nodes that services are reached by.
    pub node_ports: Vec<PortRange>,
    /// Extra rules for `OpenStack`: the metadata service.
    pub openstack: Option<OpenStack>,
    /// Mark connections inside the ambient mesh with this class of service.
    pub istio_dscp: Option<u8>,
}

/// Bits of the packet mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// A policy or profile has accepted the packet.
    pub accept: u32,
    /// A policy has passed the packet to the next tier.
    pub pass: u32,
    /// A rule drops the packet.
    pub drop: u32,
    /// For the time of one rule.
    pub scratch0: u32,
    /// For the time of one rule.
    pub scratch1: u32,
    /// The packet came through WireGuard; zero if that is off.
    pub wireguard: u32,
    /// Which endpoint the packet came from; for IPVS.
    pub endpoint: u32,
}

/// How packets are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allow {
    /// At once.
    #[default]
    Accept,
    /// Other rules may still have a say.
    Return,
}

/// How packets are denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deny {
    /// Without an answer.
    #[default]
    Drop,
    /// With one.
    Reject,
}

/// What happens to a workload's packets to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointToHost {
    /// They disappear.
    #[default]
    Drop,
    /// They are refused.
    Reject,
    /// They are accepted.
    Accept,
    /// The host's own rules decide.
    Return,
}

/// A port that no host policy can close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailsafePort {
    /// The protocol.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
    /// Only for others in this network.
    pub net: Option<IpNet>,
}

/// Address translation for packets that leave the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatOutgoing {
    /// Not for packets to other nodes either.
    pub exclude_hosts: bool,
    /// The ports to use.
    pub ports: Option<PortRange>,
    /// The address to use instead of the interface's.
    pub address: Option<IpAddr>,
    /// Only for packets that leave by this interface, as iptables writes it.
    pub interface: Option<String>,
}

/// Tunnels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent parameters, each of which is on or off"
)]
pub struct Tunnels {
    /// IP-in-IP is in use.
    pub ipip: bool,
    /// The address of the IP-in-IP device.
    pub ipip_address: Option<IpAddr>,
    /// VXLAN is in use for IPv4.
    pub vxlan: bool,
    /// The address of the VXLAN device.
    pub vxlan_address: Option<IpAddr>,
    /// VXLAN is in use for IPv6.
    pub vxlan_v6: bool,
    /// The address of the VXLAN device for IPv6.
    pub vxlan_address_v6: Option<IpAddr>,
    /// The port of VXLAN.
    pub vxlan_port: u16,
    /// WireGuard for IPv4.
    pub wireguard: Wireguard,
    /// WireGuard for IPv6.
    pub wireguard_v6: Wireguard,
    /// The hosts' own traffic goes through WireGuard too.
    pub wireguard_host_encryption: bool,
}

/// WireGuard for one IP version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wireguard {
    /// It is in use.
    pub enabled: bool,
    /// The device.
    pub interface: String,
    /// The port.
    pub port: u16,
}

/// The metadata service of `OpenStack`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenStack {
    /// Its address, if there is one.
    pub metadata_address: Option<IpAddr>,
    /// Its port.
    pub metadata_port: u16,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        let tcp = |port| FailsafePort::new(Protocol::Tcp, port);
        let udp = |port| FailsafePort::new(Protocol::Udp, port);
        let both = [179, 2379, 2380, 5473, 6443, 6666, 6667].map(tcp);
        let with = |first: [FailsafePort; 2]| first.into_iter().chain(both.clone()).collect();
        Self {
            marks: Marks::default(),
            workload_prefixes: vec!["cali".to_owned()],
            filter_allow: Allow::Accept,
            mangle_allow: Allow::Accept,
            deny: Deny::Drop,
            endpoint_to_host: EndpointToHost::Drop,
            failsafe_inbound: with([tcp(22), udp(68)]),
            failsafe_outbound: with([udp(53), udp(67)]),
            service_loop: Some(Deny::Drop),
            disable_conntrack_invalid: false,
            log_prefix: "calico-packet".to_owned(),
            log_rate: None,
            flow_logs: false,
            nat_outgoing: NatOutgoing::default(),
            floating_addresses: false,
            tunnels: Tunnels::default(),
            allow_vxlan_from_workloads: false,
            allow_ipip_from_workloads: false,
            ipvs: false,
            node_ports: vec![PortRange {
                first: 30_000,
                last: 32_767,
            }],
            openstack: None,
            istio_dscp: None,
        }
    }
}

// === impl FailsafePort ===

impl FailsafePort {
    /// Open for everybody.
    pub fn new(protocol: Protocol, port: u16) -> Self {
        Self {
            protocol,
            port,
            net: None,
        }
    }
}

// === impl Marks ===

impl Marks {
    /// Takes the bits from a mask, the lowest first; `None` if it has too few.
    pub fn from_mask(mask: u32, wireguard: bool) -> Option<Self> {
        let mut rest = mask;
        let mut next = || {
            let lowest = rest & rest.wrapping_neg();
            rest &= !lowest;
            (lowest != 0).then_some(lowest)
        };
        let (accept, pass, drop) = (next()?, next()?, next()?);
        let (scratch0, scratch1) = (next()?, next()?);
        let wireguard = if wireguard { next()? } else { 0 };
        Some(Self {
            accept,
            pass,
            drop,
            scratch0,
            scratch1,
            wireguard,
            endpoint: rest,
        })
    }

    /// The bits that static chains clear.
    pub(crate) fn cleared(self) -> u32 {
        self.accept | self.pass | self.scratch0 | self.scratch1
    }

    /// Marks packets of no endpoint of ours; for IPVS.
    pub(crate) fn no_endpoint(self) -> u32 {
        self.endpoint & self.endpoint.wrapping_neg()
    }
}

impl Default for Marks {
    fn default() -> Self {
        Self::from_mask(0xffff_0000, false).expect("sixteen bits are enough")
    }
}

// === impl Tunnels ===

impl Default for Tunnels {
    fn default() -> Self {
        Self {
            ipip: false,
            ipip_address: None,
            vxlan: false,
            vxlan_address: None,
            vxlan_v6: false,
            vxlan_address_v6: None,
            vxlan_port: 4789,
            wireguard: Wireguard {
                enabled: false,
                interface: "wireguard.cali".to_owned(),
                port: 51_820,
            },
            wireguard_v6: Wireguard {
                enabled: false,
                interface: "wg-v6.cali".to_owned(),
                port: 51_821,
            },
            wireguard_host_encryption: false,
        }
    }
}

// === impl Allow ===

impl Allow {
    pub(crate) fn action(self) -> Action {
        match self {
            Self::Accept => Action::Accept,
            Self::Return => Action::Return,
        }
    }
}

// === impl Deny ===

impl Deny {
    pub(crate) fn action(self) -> Action {
        match self {
            Self::Drop => Action::Drop,
            Self::Reject => Action::Reject,
        }
    }

    /// How comments begin that say so.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Drop => "Drop",
            Self::Reject => "Reject",
        }
    }
}

// === impl EndpointToHost ===

impl EndpointToHost {
    pub(crate) fn action(self) -> Action {
        match self {
            Self::Drop => Action::Drop,
            Self::Reject => Action::Reject,
            Self::Accept => Action::Accept,
            Self::Return => Action::Return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn bits_are_taken_from_the_mask_from_the_lowest_on() {
        let marks = Marks::default();
        assert_eq!(
            [
                marks.accept,
                marks.pass,
                marks.drop,
                marks.scratch0,
                marks.scratch1
            ],
            [0x10000, 0x20000, 0x40000, 0x80000, 0x10_0000]
        );
        assert_eq!((marks.wireguard, marks.endpoint), (0, 0xffe0_0000));
        assert_eq!(marks.no_endpoint(), 0x20_0000);
        let marks = Marks::from_mask(0xffff_0000, true).expect("enough bits");
        assert_eq!((marks.wireguard, marks.endpoint), (0x20_0000, 0xffc0_0000));
        assert_eq!(Marks::from_mask(0xf000_0000, false), None);
        assert_eq!(Marks::from_mask(0xf800_0000, true), None);
    }
}
