//! The raw table.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use tortie_api::scalar::Protocol;

use crate::IpVersion;
use crate::dispatch::{FROM_HOST, TO_HOST};
use crate::endpoint::one_port;
use crate::renderer::Renderer;
use crate::rule::{Action, Chain, Interface, Match, Rule, Side, Table};

use super::{OUTPUT, PREROUTING};

const SPOOFING_ALLOWED: &str = "cali-rpf-skip";
const WIREGUARD_MARK: &str = "cali-wireguard-incoming-mark";

impl Renderer {
    pub(super) fn fixed_raw_chains(&self) -> Vec<Chain> {
        let mut chains = Vec::from(self.failsafe_chains(Table::Raw));
        let chain = |name, rules| Chain::new(Table::Raw, name, rules);
        chains.push(chain(PREROUTING, self.raw_prerouting()));
        chains.push(chain(WIREGUARD_MARK, self.wireguard_mark()));
        chains.push(chain(OUTPUT, self.raw_output()));
        chains
    }

    /// Lets workloads send from addresses that are not theirs.
    pub fn spoofing_chain<'a>(&self, allowed: impl IntoIterator<Item = (&'a str, IpNet)>) -> Chain {
        let allowed = allowed.into_iter().filter(|(_, net)| self.is_ours(net));
        let rules = allowed.map(|(interface, net)| {
            let matches = [
                Match::In(Interface::named(interface)),
                Match::Net(Side::Source, net),
            ];
            Rule::when(matches, Action::Accept)
        });
        Chain::new(Table::Raw, SPOOFING_ALLOWED, rules.collect())
    }

    fn raw_prerouting(&self) -> Vec<Rule> {
        let marks = self.config.marks;
        let tunnels = &self.config.tunnels;
        let mut rules = vec![self.clear_marks()];
        let is_encrypted = tunnels.wireguard.enabled || tunnels.wireguard_v6.enabled;
        if is_encrypted && tunnels.wireguard_host_encryption {
            rules.push(Rule::always(Action::Jump(WIREGUARD_MARK.into())));
        }
        rules.extend(self.untracked_vxlan());
        let from_workload = marks.scratch0;
        rules.extend(
            self.workload_interfaces().map(|interface| {
                Rule::when([Match::In(interface)], Action::SetMark(from_workload))
            }),
        );
        let is_from_workload = Match::Mark(from_workload, from_workload);
        rules.push(Rule::when(
            [is_from_workload.clone()],
            Action::Jump(SPOOFING_ALLOWED.into()),
        ));
        if self.config.openstack.is_some() && self.ip_version == IpVersion::V4 {
            // A machine that asks for an address has none yet.
            let dhcp = [
                Match::Protocol(Protocol::Udp),
                Match::Address(Side::Source, IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                Match::Ports(Side::Source, one_port(68)),
                Match::Ports(Side::Destination, one_port(67)),
            ];
            rules.push(Rule::when(dhcp, Action::Accept));
        }
        rules.push(Rule::when(
            [is_from_workload, Match::ReversePathFails],
            self.deny_in(Table::Raw).into(),
        ));
        rules.push(Rule::when(
            [Match::Mark(0, from_workload)],
            Action::Jump(FROM_HOST.into()),
        ));
        rules.push(Rule::when([self.accepted()], Action::Accept));
        rules
    }

    fn raw_output(&self) -> Vec<Rule> {
        let mut rules = vec![
            self.clear_marks(),
            Rule::always(Action::Jump(TO_HOST.into())),
        ];
        rules.extend(self.untracked_vxlan());
        rules.push(Rule::when([self.accepted()], Action::Accept));
        rules
    }

    fn wireguard_mark(&self) -> Vec<Rule> {
        let tunnels = &self.config.tunnels;
        let devices = [
            "lo",
            &tunnels.wireguard.interface,
            &tunnels.wireguard_v6.interface,
        ];
        let devices = devices.into_iter().map(Interface::named);
        let inside = devices.chain(self.workload_interfaces());
        let mut rules: Vec<Rule> = inside
            .map(|interface| Rule::when([Match::In(interface)], Action::Return))
            .collect();
        rules.push(Rule::always(Action::SetMark(self.config.marks.wireguard)));
        rules
    }
}
