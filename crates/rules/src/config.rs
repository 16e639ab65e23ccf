//! What rendering depends on besides the messages.

use std::net::IpAddr;

use tortie_api::validate::NEEDED_MARK_BITS;
use tortie_config::{
    self as parameters, AllowAction, BackendConfig, DenyAction, EndpointToHostAction, FailsafePort,
    NatOutgoingExclusions, ServiceLoopPrevention,
};
use tortie_engine::message::Encapsulation;

use crate::Dataplane;
use crate::rule::{Action, PortRange, Rate, RateUnit};

/// The parameters of the renderer. The default is what follows where nothing is set, in iptables.
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
    pub filter_allow: AllowAction,
    /// What happens to accepted packets in the mangle table.
    pub mangle_allow: AllowAction,
    /// What happens to denied packets.
    pub deny: DenyAction,
    /// What happens to a workload's packets to its host, once its policy has let them through.
    pub endpoint_to_host: EndpointToHostAction,
    /// Ports of the host that stay open for others.
    pub failsafe_inbound: Vec<FailsafePort>,
    /// Ports of others that stay open for the host.
    pub failsafe_outbound: Vec<FailsafePort>,
    /// What happens to packets for services that nobody answers for; they would go round in circles.
    pub service_loop: Option<DenyAction>,
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
}

/// The mask for packet marks is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {mask:#010x} has {} bits, and rules need {NEEDED_MARK_BITS}", mask.count_ones())]
pub struct TooFewMarks {
    /// The parameter that has it.
    pub parameter: &'static str,
    mask: u32,
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
    pub port: u16,
}

/// The metadata service of `OpenStack`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenStack {
    /// Its address, if there is one.
    pub metadata_address: Option<IpAddr>,
    pub metadata_port: u16,
}

// === impl Config ===

impl Config {
    /// What follows from the parameters of a node, and from the tunnels that its cluster uses.
    pub fn new(
        parameters: &parameters::Config,
        dataplane: Dataplane,
        encapsulation: Encapsulation,
    ) -> Result<Self, TooFewMarks> {
        let is_nftables = dataplane == Dataplane::Nftables;
        let backend = parameters.tables.backend(is_nftables);
        let marks = Marks::from_mask(backend.mark_mask, false).ok_or(TooFewMarks {
            parameter: if is_nftables {
                "NftablesMarkMask"
            } else {
                "IptablesMarkMask"
            },
            mask: backend.mark_mask,
        })?;
        let tunnels = Tunnels::new(parameters, encapsulation);
        Ok(Self::with(parameters, backend, marks, tunnels))
    }

    fn with(
        parameters: &parameters::Config,
        backend: &BackendConfig,
        marks: Marks,
        tunnels: Tunnels,
    ) -> Self {
        let (policy, log, nat) = (&parameters.policy, &parameters.policy.log, &parameters.nat);
        let rate = log.rate_limit.as_deref().and_then(rate);
        Self {
            marks,
            workload_prefixes: parameters.interfaces.prefixes.clone(),
            filter_allow: backend.filter_allow,
            mangle_allow: backend.mangle_allow,
            deny: backend.filter_deny,
            endpoint_to_host: policy.endpoint_to_host,
            failsafe_inbound: parameters.failsafe.inbound.clone(),
            failsafe_outbound: parameters.failsafe.outbound.clone(),
            service_loop: match policy.service_loop_prevention {
                ServiceLoopPrevention::Drop => Some(DenyAction::Drop),
                ServiceLoopPrevention::Reject => Some(DenyAction::Reject),
                ServiceLoopPrevention::Disabled => None,
            },
            disable_conntrack_invalid: policy.allow_conntrack_invalid,
            log_prefix: log.prefix.clone(),
            log_rate: rate.map(|rate| (rate, log.rate_limit_burst)),
            flow_logs: false,
            nat_outgoing: NatOutgoing {
                exclude_hosts: nat.outgoing_exclusions == NatOutgoingExclusions::IpPoolsAndHostIps,
                ports: nat.ports,
                address: nat.outgoing_address.map(IpAddr::V4),
                interface: nat.outgoing_interface.clone(),
            },
            floating_addresses: nat.floating_ips || parameters.is_openstack(),
            tunnels,
            allow_vxlan_from_workloads: parameters.encap.allow_vxlan_from_workloads,
            allow_ipip_from_workloads: parameters.encap.allow_ipip_from_workloads,
            ipvs: false,
            node_ports: nat.node_ports.clone(),
            openstack: parameters.is_openstack().then(|| OpenStack {
                metadata_address: parameters
                    .metadata
                    .address
                    .as_ref()
                    .and_then(|address| address.parse().ok()),
                metadata_port: parameters.metadata.port,
            }),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let parameters = parameters::Config::default();
        let backend = &parameters.tables.iptables;
        Self::with(&parameters, backend, Marks::default(), Tunnels::default())
    }
}

/// A rate as the parameter gives it: `5/minute`.
fn rate(text: &str) -> Option<Rate> {
    let (count, unit) = text.split_once('/')?;
    Some(Rate {
        count: count.parse().ok()?,
        unit: match unit {
            "second" => RateUnit::Second,
            "minute" => RateUnit::Minute,
            "hour" => RateUnit::Hour,
            "day" => RateUnit::Day,
            _ => return None,
        },
    })
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

impl Tunnels {
    fn new(parameters: &parameters::Config, encapsulation: Encapsulation) -> Self {
        let encap = &parameters.encap;
        Self {
            ipip: encapsulation.ipip_enabled,
            ipip_address: encap.ipip_address.map(IpAddr::V4),
            vxlan: encapsulation.vxlan_enabled,
            vxlan_address: encap.vxlan_address.map(IpAddr::V4),
            vxlan_v6: encapsulation.vxlan_enabled_v6,
            vxlan_address_v6: encap.vxlan_address_v6.map(IpAddr::V6),
            vxlan_port: encap.vxlan_port,
            ..Self::default()
        }
    }
}

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

// === impl Action ===

impl From<AllowAction> for Action {
    fn from(action: AllowAction) -> Self {
        match action {
            AllowAction::Accept => Self::Accept,
            AllowAction::Return => Self::Return,
        }
    }
}

impl From<DenyAction> for Action {
    fn from(action: DenyAction) -> Self {
        match action {
            DenyAction::Drop => Self::Drop,
            DenyAction::Reject => Self::Reject,
        }
    }
}

impl From<EndpointToHostAction> for Action {
    fn from(action: EndpointToHostAction) -> Self {
        match action {
            EndpointToHostAction::Drop => Self::Drop,
            EndpointToHostAction::Return => Self::Return,
            EndpointToHostAction::Accept => Self::Accept,
        }
    }
}

/// How comments begin that say that packets are denied.
pub(crate) fn verb(deny: DenyAction) -> &'static str {
    match deny {
        DenyAction::Drop => "Drop",
        DenyAction::Reject => "Reject",
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
