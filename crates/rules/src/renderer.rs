//! What all parts of the renderer share.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_config::DenyAction;
use tortie_engine::message::SetId;

use crate::config::{Config, Wireguard};
use crate::rule::{Action, Chain, Interface, Match, Rule, Side, Table};
use crate::{Dataplane, EndpointChain, IpVersion, endpoint_chain_name, ip_set_name};

/// Turns messages into chains, for one data plane and one IP version.
#[derive(Debug, Clone)]
pub struct Renderer {
    pub(crate) config: Arc<Config>,
    pub(crate) dataplane: Dataplane,
    pub(crate) ip_version: IpVersion,
    /// Whether the kernel takes an authentication header of IPv6 for the protocol.
    pub(crate) hides_behind_header: bool,
}

/// Sets that do not come from policies.
pub mod fixed_set {
    /// Addresses and networks of all nodes.
    pub const ALL_HOSTS: &str = "all-hosts-net";
    /// Where VXLAN packets may come from.
    pub const ALL_VXLAN: &str = "all-vxlan-net";
    /// The addresses of this host.
    pub const THIS_HOST: &str = "this-host";
    pub const POOLS: &str = "network-ip-pools";
    /// Pools whose addresses are hidden from the outside.
    pub const MASQUERADED_POOLS: &str = "masq-ipam-pools";
    /// Endpoints whose packets get a class of service.
    pub const DSCP: &str = "dscp-src-net";
}

/// Where nftables keeps the members of a set of networks.
///
/// Single addresses go into a hash, in which a lookup or a change costs the same at any size. Only real networks need
/// the ordered structure, in which both cost more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetLayout {
    /// Some members are networks, and they are in [`networks_set_name`].
    pub networks: bool,
}

/// The second part of a set in nftables, for members that are not single addresses.
pub fn networks_set_name(name: &str) -> String {
    [name, "-nets"].concat()
}

impl Renderer {
    /// A renderer.
    pub fn new(config: Arc<Config>, dataplane: Dataplane, ip_version: IpVersion) -> Self {
        Self {
            config,
            dataplane,
            ip_version,
            hides_behind_header: dataplane == Dataplane::Nftables,
        }
    }

    /// The kernel takes an authentication header of IPv6 for the protocol, as nftables always does.
    pub fn hide_behind_header(&mut self) {
        self.hides_behind_header = true;
    }

    /// Depends on this from now on.
    pub fn set_config(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// The IP version that it renders for.
    pub fn ip_version(&self) -> IpVersion {
        self.ip_version
    }

    /// What it depends on.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether a network is of the IP version that is rendered.
    pub(crate) fn is_ours(&self, net: &IpNet) -> bool {
        matches!(net, IpNet::V4(_)) == (self.ip_version == IpVersion::V4)
    }

    /// The name of a set in the kernel.
    pub fn set_name(&self, id: &str) -> Arc<str> {
        ip_set_name(id, self.ip_version, self.dataplane).into()
    }

    pub(crate) fn set_of(&self, id: &SetId) -> Arc<str> {
        self.set_name(id.as_str())
    }

    pub(crate) fn is_nftables(&self) -> bool {
        self.dataplane == Dataplane::Nftables
    }

    /// What denies a packet in the filter table.
    pub(crate) fn deny(&self) -> Action {
        self.deny_in(Table::Filter).into()
    }

    /// How packets are denied in a table. The kernel answers the sender in the filter table alone.
    pub(crate) fn deny_in(&self, table: Table) -> DenyAction {
        match table {
            Table::Filter => self.config.deny,
            _ => DenyAction::Drop,
        }
    }

    pub(crate) fn allow(&self) -> Action {
        self.config.filter_allow.into()
    }

    /// Takes the place of a chain that cannot be in the kernel. What should decide about the packet is missing, so it is
    /// dropped; but addresses are then not translated, since the kernel's tools take no drop in that table.
    pub fn stand_in(table: Table, name: Arc<str>, note: &str) -> Chain {
        let rule = match table {
            Table::Nat => Rule::default(),
            Table::Raw | Table::Mangle | Table::Filter => Rule::always(Action::Drop),
        };
        Chain::new(table, name, vec![rule.note(note)])
    }

    /// The packet is accepted already.
    pub(crate) fn accepted(&self) -> Match {
        let bit = self.config.marks.accept;
        Match::Mark(bit, bit)
    }

    pub(crate) fn clear_marks(&self) -> Rule {
        Rule::always(Action::ClearMark(self.config.marks.cleared()))
    }

    pub(crate) fn workload_interfaces(&self) -> impl Iterator<Item = Interface> {
        let prefixes = self.config.workload_prefixes.iter();
        prefixes.map(|prefix| Interface::starting_with(prefix))
    }

    pub(crate) fn endpoint_chain(&self, chain: EndpointChain, interface: &str) -> Arc<str> {
        endpoint_chain_name(chain, interface, self.dataplane).into()
    }

    /// Whether VXLAN is in use for this IP version.
    pub(crate) fn vxlan(&self) -> bool {
        match self.ip_version {
            IpVersion::V4 => self.config.tunnels.vxlan,
            IpVersion::V6 => self.config.tunnels.vxlan_v6,
        }
    }

    /// Whether IP-in-IP is in use for this IP version.
    pub(crate) fn ipip(&self) -> bool {
        self.ip_version == IpVersion::V4 && self.config.tunnels.ipip
    }

    /// WireGuard for this IP version, if it is in use.
    pub(crate) fn wireguard(&self) -> Option<&Wireguard> {
        let wireguard = match self.ip_version {
            IpVersion::V4 => &self.config.tunnels.wireguard,
            IpVersion::V6 => &self.config.tunnels.wireguard_v6,
        };
        wireguard.enabled.then_some(wireguard)
    }

    /// `IPv4` or `IPv6`, as comments say it.
    pub(crate) fn ip_name(&self) -> &'static str {
        match self.ip_version {
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        }
    }
}

/// The address is one of this host's.
pub(crate) fn local(side: Side) -> Match {
    Match::Local {
        side,
        negated: false,
        of_out_interface: false,
    }
}
