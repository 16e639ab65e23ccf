//! The nat table.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tortie_api::scalar::Protocol;

use crate::IpVersion;
use crate::endpoint::{UDP, one_port};
use crate::renderer::{Renderer, fixed_set, local};
use crate::rule::{Action, Chain, Interface, Match, PortRange, Rule, Side, Table};

use super::{OUTPUT, POSTROUTING, PREROUTING};

const FLOATING_DNAT: &str = "cali-fip-dnat";
const FLOATING_SNAT: &str = "cali-fip-snat";
const OUTGOING: &str = "cali-nat-outgoing";

/// Where the machines of `OpenStack` look for their metadata.
const METADATA: &str = "169.254.169.254/32";

/// Ports for translated packets that cannot be mistaken for a tunnel's: the larger part of those on either side of it.
pub fn masquerade_ports(tunnel: u16) -> PortRange {
    const FIRST: u16 = 1024;
    if tunnel.saturating_sub(FIRST) >= u16::MAX - tunnel {
        PortRange {
            first: FIRST,
            last: tunnel - 1,
        }
    } else {
        PortRange {
            first: tunnel + 1,
            last: u16::MAX,
        }
    }
}

impl Renderer {
    pub(super) fn fixed_nat_chains(&self) -> Vec<Chain> {
        let chain = |name, rules| Chain::new(Table::Nat, name, rules);
        let to_floating = || Rule::always(Action::Jump(FLOATING_DNAT.into()));
        let mut prerouting = vec![to_floating()];
        prerouting.extend(self.metadata());
        vec![
            chain(PREROUTING, prerouting),
            chain(POSTROUTING, self.postrouting()),
            chain(OUTPUT, vec![to_floating()]),
        ]
    }

    /// Translates the source of packets that leave the cluster, if any pool asks for it.
    pub fn nat_outgoing_chain(&self, is_wanted: bool) -> Chain {
        let nat = &self.config.nat_outgoing;
        let translate = |ports| match nat.address {
            Some(address) => Action::Snat(address, ports),
            None => Action::Masquerade(ports),
        };
        let mut rules = Vec::new();
        if is_wanted {
            if let Some(ports) = nat.ports {
                for protocol in [Protocol::Tcp, Protocol::Udp] {
                    for action in [translate(Some(ports)), Action::Return] {
                        rules.push(self.outgoing(Some(protocol.clone()), action));
                    }
                }
            }
            rules.push(self.outgoing(None, translate(None)));
        }
        Chain::new(Table::Nat, OUTGOING, rules)
    }

    /// Translates floating addresses to those of their endpoints.
    pub fn floating_dnat_chain(&self, addresses: &BTreeMap<IpAddr, IpAddr>) -> Chain {
        let rules = by_text(addresses).map(|(external, internal)| {
            Rule::when(
                [Match::Address(Side::Destination, external)],
                Action::Dnat(internal, None),
            )
        });
        Chain::new(Table::Nat, FLOATING_DNAT, rules.collect())
    }

    /// Translates the source of an endpoint that reaches itself by its floating address.
    pub fn floating_snat_chain(&self, addresses: &BTreeMap<IpAddr, IpAddr>) -> Chain {
        let rules = by_text(addresses).map(|(internal, external)| {
            let matches = [
                Match::Address(Side::Destination, internal),
                Match::Address(Side::Source, internal),
            ];
            Rule::when(matches, Action::Snat(external, None))
        });
        Chain::new(Table::Nat, FLOATING_SNAT, rules.collect())
    }

    fn outgoing(&self, protocol: Option<Protocol>, action: Action) -> Rule {
        let nat = &self.config.nat_outgoing;
        let set = |id| self.set_name(id);
        let mut matches = vec![
            Match::Set(Side::Source, set(fixed_set::MASQUERADED_POOLS)),
            Match::NotSet(Side::Destination, set(fixed_set::POOLS)),
        ];
        if nat.exclude_hosts {
            matches.push(Match::NotSet(Side::Destination, set(fixed_set::ALL_HOSTS)));
        }
        matches.extend(protocol.map(Match::Protocol));
        let interface = nat.interface.as_deref();
        matches.extend(interface.map(|name| Match::Out(Interface::from_pattern(name))));
        Rule::when(matches, action)
    }

    fn metadata(&self) -> Option<Rule> {
        let openstack = self.config.openstack.as_ref()?;
        let address = openstack.metadata_address?;
        if self.ip_version != IpVersion::V4 {
            return None;
        }
        let matches = [
            Match::Protocol(Protocol::Tcp),
            Match::Ports(Side::Destination, one_port(80)),
            Match::Net(Side::Destination, METADATA.parse().ok()?),
        ];
        Some(Rule::when(
            matches,
            Action::Dnat(address, Some(openstack.metadata_port)),
        ))
    }

    fn postrouting(&self) -> Vec<Rule> {
        let mut rules = vec![
            Rule::always(Action::Jump(FLOATING_SNAT.into())),
            Rule::always(Action::Jump(OUTGOING.into())),
        ];
        for device in self.tunnel_devices() {
            // The host's own packets into the tunnel must come from the tunnel's address.
            let matches = [
                Match::Out(Interface::named(device)),
                Match::Local {
                    side: Side::Source,
                    negated: true,
                    of_out_interface: true,
                },
                local(Side::Source),
            ];
            if self.vxlan() {
                let ports = masquerade_ports(self.config.tunnels.vxlan_port);
                let udp = [Match::Protocol(UDP)].into_iter().chain(matches.clone());
                rules.push(Rule::when(udp, Action::Masquerade(Some(ports))));
            }
            rules.push(Rule::when(matches, Action::Masquerade(None)));
        }
        rules
    }

    fn tunnel_devices(&self) -> Vec<&str> {
        let tunnels = &self.config.tunnels;
        let mut devices = Vec::new();
        if self.ipip() && tunnels.ipip_address.is_some() {
            devices.push("tunl0");
        }
        let (vxlan, address) = match self.ip_version {
            IpVersion::V4 => ("vxlan.calico", tunnels.vxlan_address),
            IpVersion::V6 => ("vxlan-v6.calico", tunnels.vxlan_address_v6),
        };
        if self.vxlan() && address.is_some() {
            devices.push(vxlan);
        }
        let wireguard = self.wireguard();
        devices.extend(wireguard.map(|wireguard| wireguard.interface.as_str()));
        devices
    }
}

/// In the order of the text, which the rules have been in ever since.
fn by_text(addresses: &BTreeMap<IpAddr, IpAddr>) -> impl Iterator<Item = (IpAddr, IpAddr)> {
    let mut sorted: Vec<_> = addresses.iter().map(|(from, to)| (*from, *to)).collect();
    sorted.sort_by_cached_key(|(from, _)| from.to_string());
    sorted.into_iter()
}
