//! The mangle table.

use std::net::IpAddr;

use crate::dispatch::{FROM_HOST, TO_HOST};
use crate::renderer::{Renderer, fixed_set};
use crate::rule::{Action, Chain, Match, Rule, Side, State, Table};

use super::{POSTROUTING, PREROUTING};

const EGRESS_DSCP: &str = "cali-egress-dscp";

impl Renderer {
    pub(super) fn fixed_mangle_chains(&self) -> Vec<Chain> {
        let mut chains = Vec::from(self.failsafe_chains(Table::Mangle));
        chains.push(Chain::new(Table::Mangle, PREROUTING, self.before_routing()));
        chains.push(Chain::new(Table::Mangle, POSTROUTING, self.after_routing()));
        chains
    }

    /// Gives packets of endpoints their class of service.
    pub fn dscp_chain(&self, endpoints: impl IntoIterator<Item = (IpAddr, u8)>) -> Chain {
        let rules = endpoints.into_iter().map(|(address, value)| {
            Rule::when([Match::Address(Side::Source, address)], Action::Dscp(value))
        });
        Chain::new(Table::Mangle, EGRESS_DSCP, rules.collect())
    }

    fn before_routing(&self) -> Vec<Rule> {
        let allow = || Action::from(self.config.mangle_allow);
        vec![
            Rule::when([Match::State(State::Established)], allow()),
            Rule::when([self.accepted()], allow()),
            Rule::always(Action::Jump(FROM_HOST.into())),
            self.host_policy_accepted(allow()),
        ]
    }

    fn after_routing(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        let leaves_cluster = [
            Match::Set(Side::Source, self.set_name(fixed_set::DSCP)),
            Match::NotSet(Side::Destination, self.set_name(fixed_set::POOLS)),
            Match::NotSet(Side::Destination, self.set_name(fixed_set::THIS_HOST)),
        ];
        rules.push(
            Rule::when(leaves_cluster, Action::Jump(EGRESS_DSCP.into()))
                .note("set dscp for traffic leaving cluster."),
        );
        rules.push(Rule::when([self.accepted()], Action::Return));
        if self.config.ipvs {
            let marked = [Match::NotMark(0, self.config.marks.endpoint)];
            rules.push(Rule::when(marked, Action::Return));
        }
        rules.push(self.clear_marks());
        rules.push(Rule::when(
            [Match::Translated(true)],
            Action::Jump(TO_HOST.into()),
        ));
        rules.push(self.host_policy_accepted(Action::Return));
        rules
    }
}
