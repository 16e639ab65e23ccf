//! The filter table.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::scalar::Protocol;

use crate::IpVersion;
use crate::config::verb;
use crate::dispatch::{
    FROM_HOST, FROM_HOST_FORWARD, FROM_WORKLOAD, TO_HOST, TO_HOST_FORWARD, TO_WORKLOAD,
};
use crate::endpoint::{IPIP, one_port, udp_to};
use crate::endpoint_mark::{FROM_MARK, SET_MARK};
use crate::renderer::{Renderer, fixed_set, local};
use crate::rule::{Action, Chain, Match, Rule, Side, State, Table};

use super::{FORWARD, INPUT, OUTPUT};

const WORKLOAD_TO_HOST: &str = "cali-wl-to-host";
const BLOCKED_CIDRS: &str = "cali-cidr-block";
const FORWARD_CHECK: &str = "cali-forward-check";
const FORWARD_ENDPOINT_MARK: &str = "cali-forward-endpoint-mark";

/// What an IPv6 router must hear: multicast listeners, router solicitation, neighbours.
const NEEDED_ICMPV6: [u8; 6] = [130, 131, 132, 133, 135, 136];

impl Renderer {
    pub(super) fn fixed_filter_chains(&self) -> Vec<Chain> {
        let [failsafe_in, failsafe_out] = self.failsafe_chains(Table::Filter);
        let chain = |name, rules| Chain::new(Table::Filter, name, rules);
        let mut chains = vec![
            chain(FORWARD, self.forward()),
            chain(INPUT, self.input()),
            chain(WORKLOAD_TO_HOST, self.workload_to_host()),
            failsafe_in,
            chain(OUTPUT, self.output()),
            failsafe_out,
        ];
        if self.config.ipvs {
            chains.push(chain(FORWARD_CHECK, self.forward_check()));
            chains.push(chain(FORWARD_ENDPOINT_MARK, self.forward_by_mark()));
        }
        chains
    }

    /// Packets to services that nobody answers for.
    pub fn blocked_cidrs_chain(&self, cidrs: &[IpNet]) -> Chain {
        let mut texts: Vec<(String, IpNet)> = cidrs
            .iter()
            .filter(|cidr| self.is_ours(cidr))
            .map(|cidr| (cidr.to_string(), *cidr))
            .collect();
        texts.sort();
        texts.dedup();
        let rules = self.config.service_loop.iter().flat_map(|deny| {
            let cidrs = texts.iter().map(|(_, cidr)| *cidr);
            cidrs.map(|cidr| Rule::when([Match::Net(Side::Destination, cidr)], Action::from(*deny)))
        });
        Chain::new(Table::Filter, BLOCKED_CIDRS, rules.collect())
    }

    fn input(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        self.input_of_tunnels(&mut rules);
        if self.config.ipvs {
            let endpoint = self.config.marks.endpoint;
            rules.push(Rule::always(Action::ClearMark(endpoint)));
            rules.push(Rule::always(Action::Jump(FORWARD_CHECK.into())));
            rules.push(Rule::when([Match::NotMark(0, endpoint)], Action::Return));
        }
        rules.extend(self.workload_interfaces().map(|interface| {
            let to_host = Action::Goto(WORKLOAD_TO_HOST.into());
            Rule::when([Match::In(interface)], to_host)
        }));
        rules.push(Rule::when([self.accepted()], self.allow()));
        rules.push(self.clear_marks());
        rules.push(Rule::always(Action::Jump(FROM_HOST.into())));
        rules.push(self.host_policy_accepted(self.allow()));
        rules
    }

    fn input_of_tunnels(&self, rules: &mut Vec<Rule>) {
        let tunnels = &self.config.tunnels;
        let verb = verb(self.config.deny);
        if self.ipip() {
            let hosts = Match::Set(Side::Source, self.set_name(fixed_set::ALL_HOSTS));
            let from_hosts = [Match::Protocol(IPIP), hosts, local(Side::Destination)];
            rules.push(
                Rule::when(from_hosts, self.allow()).note("Allow IPIP packets from Calico hosts"),
            );
            rules.push(
                Rule::when([Match::Protocol(IPIP)], self.deny())
                    .note(format!("{verb} IPIP packets from non-Calico hosts")),
            );
        }
        if self.vxlan() {
            let ip = self.ip_name();
            let hosts = Match::Set(Side::Source, self.set_name(fixed_set::ALL_VXLAN));
            let to_port = udp_to(tunnels.vxlan_port);
            let from_hosts = to_port.clone().into_iter();
            let from_hosts = from_hosts.chain([hosts, local(Side::Destination)]);
            rules.push(
                Rule::when(from_hosts, self.allow())
                    .note(format!("Allow {ip} VXLAN packets from allowed hosts")),
            );
            // Calico drops for IPv4 whatever is configured.
            let (deny, verb) = match self.ip_version {
                IpVersion::V4 => (Action::Drop, "Drop"),
                IpVersion::V6 => (self.deny(), verb),
            };
            let others = to_port.into_iter().chain([local(Side::Destination)]);
            rules.push(
                Rule::when(others, deny)
                    .note(format!("{verb} {ip} VXLAN packets from non-allowed hosts")),
            );
        }
        if let Some(wireguard) = self.wireguard() {
            let matches = udp_to(wireguard.port).into_iter();
            let matches = matches.chain([local(Side::Destination)]);
            rules.push(Rule::when(matches, self.allow()).note(format!(
                "Allow incoming {} Wireguard packets",
                self.ip_name()
            )));
        }
    }

    fn workload_to_host(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        if self.ip_version == IpVersion::V6 {
            rules.extend(NEEDED_ICMPV6.map(|kind| {
                let matches = [
                    Match::Protocol(Protocol::Number(58)),
                    Match::Icmp(kind, None),
                ];
                Rule::when(matches, self.allow())
            }));
        }
        self.openstack_to_host(&mut rules);
        rules.push(Rule::always(Action::Jump(FROM_WORKLOAD.into())));
        rules.push(
            Rule::always(self.config.endpoint_to_host.into())
                .note("Configured DefaultEndpointToHostAction"),
        );
        rules
    }

    fn openstack_to_host(&self, rules: &mut Vec<Rule>) {
        let Some(openstack) = &self.config.openstack else {
            return;
        };
        let to = |port| Match::Ports(Side::Destination, one_port(port));
        if self.ip_version == IpVersion::V4
            && let Some(address) = openstack.metadata_address
        {
            let matches = [
                Match::Protocol(Protocol::Tcp),
                Match::Address(Side::Destination, address),
                to(openstack.metadata_port),
            ];
            rules.push(Rule::when(matches, self.allow()));
        }
        let (client, server) = match self.ip_version {
            IpVersion::V4 => (68, 67),
            IpVersion::V6 => (546, 547),
        };
        let dhcp = [
            Match::Protocol(Protocol::Udp),
            Match::Ports(Side::Source, one_port(client)),
            to(server),
        ];
        rules.push(Rule::when(dhcp, self.allow()));
        let dns = [Match::Protocol(Protocol::Udp), to(53)];
        rules.push(Rule::when(dns, self.allow()));
    }

    fn forward(&self) -> Vec<Rule> {
        let marks = self.config.marks;
        // Acceptance is left from the tables before.
        let mut rules = vec![
            Rule::always(Action::ClearMark(marks.cleared() & !marks.accept)),
            Rule::when(
                [Match::Mark(0, marks.accept)],
                Action::Jump(FROM_HOST_FORWARD.into()),
            ),
        ];
        for interface in self.workload_interfaces() {
            rules.push(Rule::when(
                [Match::In(interface.clone())],
                Action::Jump(FROM_WORKLOAD.into()),
            ));
            rules.push(Rule::when(
                [Match::Out(interface)],
                Action::Jump(TO_WORKLOAD.into()),
            ));
        }
        rules.push(Rule::always(Action::Jump(TO_HOST_FORWARD.into())));
        rules.push(Rule::always(Action::Jump(BLOCKED_CIDRS.into())));
        rules
    }

    fn output(&self) -> Vec<Rule> {
        let mut rules = vec![Rule::when([self.accepted()], self.allow())];
        if self.config.ipvs {
            let marked = [Match::NotMark(0, self.config.marks.endpoint)];
            rules.push(Rule::when(
                marked,
                Action::Goto(FORWARD_ENDPOINT_MARK.into()),
            ));
        }
        // The host may reach its own workloads.
        rules.extend(
            self.workload_interfaces()
                .map(|interface| Rule::when([Match::Out(interface)], Action::Return)),
        );
        self.output_of_tunnels(&mut rules);
        rules.push(self.clear_marks());
        rules.push(Rule::when(
            [Match::Translated(false)],
            Action::Jump(TO_HOST.into()),
        ));
        rules.push(self.host_policy_accepted(self.allow()));
        rules
    }

    fn output_of_tunnels(&self, rules: &mut Vec<Rule>) {
        let ip = self.ip_name();
        if self.ipip() {
            let hosts = Match::Set(Side::Destination, self.set_name(fixed_set::ALL_HOSTS));
            let matches = [Match::Protocol(IPIP), hosts, local(Side::Source)];
            rules.push(
                Rule::when(matches, self.allow()).note("Allow IPIP packets to other Calico hosts"),
            );
        }
        if self.vxlan() {
            let hosts = Match::Set(Side::Destination, self.set_name(fixed_set::ALL_VXLAN));
            let matches = udp_to(self.config.tunnels.vxlan_port).into_iter();
            let matches = matches.chain([local(Side::Source), hosts]);
            rules.push(
                Rule::when(matches, self.allow())
                    .note(format!("Allow {ip} VXLAN packets to other allowed hosts")),
            );
        }
        if let Some(wireguard) = self.wireguard() {
            let matches = udp_to(wireguard.port).into_iter();
            let matches = matches.chain([local(Side::Source)]);
            rules.push(
                Rule::when(matches, self.allow())
                    .note(format!("Allow outgoing {ip} Wireguard packets")),
            );
        }
    }

    /// Whether IPVS will forward the packet, and if so, which endpoint it came from.
    fn forward_check(&self) -> Vec<Rule> {
        let this_host = self.set_name(fixed_set::THIS_HOST);
        let mut rules = vec![Rule::when(
            [Match::State(State::Established)],
            Action::Return,
        )];
        for ports in crate::policy::split_ports(&self.config.node_ports) {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let matches = [
                    Match::Protocol(protocol),
                    Match::Ports(Side::Destination, Arc::clone(&ports)),
                    Match::Set(Side::Destination, Arc::clone(&this_host)),
                ];
                rules.push(
                    Rule::when(matches, Action::Goto(SET_MARK.into()))
                        .note("To kubernetes NodePort service"),
                );
            }
        }
        rules.push(
            Rule::when(
                [Match::NotSet(Side::Destination, this_host)],
                Action::Jump(SET_MARK.into()),
            )
            .note("To kubernetes service"),
        );
        rules
    }

    /// Packets that IPVS forwards, as the FORWARD chain would treat them.
    fn forward_by_mark(&self) -> Vec<Rule> {
        let marks = self.config.marks;
        let ours = Match::NotMark(marks.no_endpoint(), marks.endpoint);
        let mut rules = vec![Rule::when([ours], Action::Jump(FROM_MARK.into()))];
        rules.extend(self.workload_interfaces().map(|interface| {
            Rule::when([Match::Out(interface)], Action::Jump(TO_WORKLOAD.into()))
        }));
        rules.push(Rule::always(Action::Jump(TO_HOST_FORWARD.into())));
        // A packet inside a tunnel's would carry it on.
        rules.push(Rule::always(Action::ClearMark(marks.endpoint)));
        rules.push(
            Rule::when([self.accepted()], self.allow()).note("Policy explicitly accepted packet."),
        );
        rules
    }
}
