//! The chains that are there whatever the policies: the ways from the kernel's chains to those of endpoints.

mod filter;
mod mangle;
mod nat;
mod raw;

use tortie_config::FailsafePort;

use crate::renderer::Renderer;
use crate::rule::{Action, Chain, Match, Rule, Side, Table};

pub use nat::masquerade_ports;

pub(crate) const INPUT: &str = "cali-INPUT";
pub(crate) const FORWARD: &str = "cali-FORWARD";
pub(crate) const OUTPUT: &str = "cali-OUTPUT";
pub(crate) const PREROUTING: &str = "cali-PREROUTING";
pub(crate) const POSTROUTING: &str = "cali-POSTROUTING";

/// Rules in the kernel's own chains that lead to ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub table: Table,
    /// The kernel's chain.
    pub chain: &'static str,
    /// Rules before all others, or where the user wants them.
    pub first: Vec<Rule>,
    /// Rules after all others.
    pub last: Vec<Rule>,
}

impl Renderer {
    /// The chains of all tables.
    pub fn fixed_chains(&self) -> Vec<Chain> {
        let mut chains = self.fixed_filter_chains();
        chains.extend(self.fixed_nat_chains());
        chains.extend(self.fixed_mangle_chains());
        chains.extend(self.fixed_raw_chains());
        chains
    }

    /// The rules in the kernel's chains.
    pub fn hooks(&self) -> Vec<Hook> {
        let jump = |target: &str| vec![Rule::always(Action::Jump(target.into()))];
        let first = |table, chain, target| Hook {
            table,
            chain,
            first: jump(target),
            last: Vec::new(),
        };
        vec![
            first(Table::Raw, "PREROUTING", PREROUTING),
            first(Table::Raw, "OUTPUT", OUTPUT),
            first(Table::Mangle, "PREROUTING", PREROUTING),
            first(Table::Mangle, "POSTROUTING", POSTROUTING),
            first(Table::Nat, "PREROUTING", PREROUTING),
            first(Table::Nat, "OUTPUT", OUTPUT),
            // Others translate addresses for good reasons; theirs come first.
            Hook {
                table: Table::Nat,
                chain: "POSTROUTING",
                first: Vec::new(),
                last: jump(POSTROUTING),
            },
            first(Table::Filter, "INPUT", INPUT),
            Hook {
                table: Table::Filter,
                chain: "FORWARD",
                first: jump(FORWARD),
                last: self.forward_end(),
            },
            first(Table::Filter, "OUTPUT", OUTPUT),
        ]
    }

    /// At the end of forwarding: what policy accepted is accepted, and the rest is known to be forwarded.
    fn forward_end(&self) -> Vec<Rule> {
        let accepted = Rule::when([self.accepted()], self.allow());
        vec![
            accepted.note("Policy explicitly accepted packet."),
            Rule::always(Action::SetMark(self.config.marks.accept)),
        ]
    }

    /// Packets that a host endpoint's policy let through in an earlier table.
    fn host_policy_accepted(&self, action: Action) -> Rule {
        Rule::when([self.accepted()], action).note("Host endpoint policy accepted packet.")
    }

    /// VXLAN packets are not tracked.
    fn untracked_vxlan(&self) -> Option<Rule> {
        let port = self.config.tunnels.vxlan_port;
        let matches = [
            Match::Protocol(tortie_api::scalar::Protocol::Udp),
            Match::Port(port),
        ];
        self.vxlan().then(|| Rule::when(matches, Action::NoTrack))
    }

    /// The ports of others and of the host that stay open, in both directions.
    fn failsafe_chains(&self, table: Table) -> [Chain; 2] {
        use crate::endpoint::{FAILSAFE_IN, FAILSAFE_OUT};
        let config = &self.config;
        let (inbound, outbound) = (&config.failsafe_inbound, &config.failsafe_outbound);
        let chain = |name, ports, answered, net_side| {
            let mut rules = self.failsafe_rules(ports, Side::Destination, net_side);
            // Before connection tracking, answers must be let through one by one.
            if table == Table::Raw {
                rules.extend(self.failsafe_rules(answered, Side::Source, net_side));
            }
            Chain::new(table, name, rules)
        };
        [
            chain(FAILSAFE_IN, inbound, outbound, Side::Source),
            chain(FAILSAFE_OUT, outbound, inbound, Side::Destination),
        ]
    }

    fn failsafe_rules(&self, ports: &[FailsafePort], port_side: Side, net_side: Side) -> Vec<Rule> {
        let ports = ports
            .iter()
            .filter(|port| port.network.as_ref().is_none_or(|net| self.is_ours(net)));
        let rules = ports.map(|port| {
            let mut matches = vec![
                Match::Protocol(port.protocol.into()),
                Match::Ports(port_side, crate::endpoint::one_port(port.port)),
            ];
            matches.extend(port.network.map(|net| Match::Net(net_side, net)));
            Rule::when(matches, Action::Accept)
        });
        rules.collect()
    }
}
