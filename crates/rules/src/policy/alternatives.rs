//! Rules for nftables.
//!
//! A condition can hold a whole list, so that most rules become one rule of the kernel. What is left are alternatives of
//! different kinds, ports beside named ports, or the two parts of a [set](crate::renderer::SetLayout); each
//! combination of them becomes a rule, as long as these are not more than [steps](super::steps) need.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_engine::message::Rule as EngineRule;

use crate::Direction;
use crate::renderer::{Renderer, networks_set_name};
use crate::rule::{Match, Rule, Side};

use super::verdict::Owner;
use super::{Layouts, Nets, rule_side};

impl Renderer {
    #[expect(
        clippy::too_many_arguments,
        reason = "what a rule is, whose it is, and where it goes"
    )]
    pub(super) fn alternatives(
        &self,
        rule: &EngineRule,
        nets: &Nets,
        owner: &Owner<'_>,
        direction: Direction,
        index: usize,
        layouts: Layouts<'_>,
        out: &mut Vec<Rule>,
    ) {
        // Conditions in order; each is a list of alternatives.
        let mut conditions: Vec<Vec<Match>> = Vec::new();
        conditions.extend(
            rule.protocol
                .clone()
                .map(|protocol| vec![Match::Protocol(protocol)]),
        );
        for side in Side::BOTH {
            self.wanted(side, rule, nets, layouts, &mut conditions);
        }
        conditions.extend(
            rule.icmp
                .map(|icmp| vec![Match::Icmp(icmp.r#type, icmp.code)]),
        );
        let mut negated = Vec::new();
        negated.extend(rule.not_protocol.clone().map(Match::NotProtocol));
        for side in Side::BOTH {
            negated.extend(none_of(side, &nets.side(side).none));
            self.negated_side(side, rule, &mut negated);
            let networks = rule_side(rule, side).not_sets.iter();
            let networks = networks.filter(|set| layouts(set).networks);
            negated.extend(networks.map(|set| {
                let name = networks_set_name(&self.set_of(set));
                Match::NotSet(side, name.into())
            }));
        }
        negated.extend(
            rule.not_icmp
                .map(|icmp| Match::NotIcmp(icmp.r#type, icmp.code)),
        );

        let conditions = Conditions {
            wanted: conditions,
            negated,
        };
        let finish = |matches| self.fused(matches, rule, owner, direction, index);
        if conditions.combinations() <= conditions.steps() {
            out.extend(conditions.combined().map(finish));
        } else {
            conditions.in_steps(&self.config.marks, finish, out);
        }
    }

    fn wanted(
        &self,
        side: Side,
        rule: &EngineRule,
        nets: &Nets,
        layouts: Layouts<'_>,
        conditions: &mut Vec<Vec<Match>>,
    ) {
        let of_side = rule_side(rule, side);
        conditions.extend(any_of(side, &nets.side(side).any).map(|any| vec![any]));
        for set in &of_side.sets {
            let name = self.set_of(set);
            let mut parts = vec![Match::Set(side, Arc::clone(&name))];
            if layouts(set).networks {
                parts.push(Match::Set(side, networks_set_name(&name).into()));
            }
            conditions.push(parts);
        }
        let services = of_side.port_sets.iter();
        conditions.extend(services.map(|set| vec![Match::PortSet(side, self.set_of(set))]));
        let numbers = self.port_lists(&of_side.ports).into_iter();
        let numbers = numbers.map(|list| Match::Ports(side, list));
        let named = of_side.named_port_sets.iter();
        let named = named.map(|set| Match::PortSet(side, self.set_of(set)));
        let ports: Vec<Match> = numbers.chain(named).collect();
        if !ports.is_empty() {
            conditions.push(ports);
        }
    }
}

/// What a rule asks for.
pub(super) struct Conditions {
    /// All must hold; each is a list of which one must.
    pub(super) wanted: Vec<Vec<Match>>,
    /// All must hold.
    pub(super) negated: Vec<Match>,
}

impl Conditions {
    /// How many combinations of alternatives there are.
    fn combinations(&self) -> usize {
        let lengths = self.wanted.iter().map(Vec::len);
        lengths.fold(1, usize::saturating_mul)
    }

    /// The conditions of a rule for each combination.
    pub(super) fn combined(&self) -> impl Iterator<Item = Vec<Match>> {
        (0..self.combinations()).map(|combination| {
            let mut rest = combination;
            let chosen = self.wanted.iter().map(|alternatives| {
                let chosen = &alternatives[rest % alternatives.len()];
                rest /= alternatives.len();
                chosen.clone()
            });
            chosen.chain(self.negated.iter().cloned()).collect()
        })
    }
}

/// The address is in one of the networks.
fn any_of(side: Side, nets: &[IpNet]) -> Option<Match> {
    match nets {
        [] => None,
        [net] => Some(Match::Net(side, *net)),
        nets => Some(Match::AnyNet(side, disjoint(nets))),
    }
}

/// The address is in none of the networks.
fn none_of(side: Side, nets: &[IpNet]) -> Option<Match> {
    match nets {
        [] => None,
        [net] => Some(Match::NotNet(side, *net)),
        nets => Some(Match::NoNet(side, disjoint(nets))),
    }
}

/// The same addresses in networks that do not overlap, as the kernel wants them.
fn disjoint(nets: &[IpNet]) -> Arc<[IpNet]> {
    let mut nets = IpNet::aggregate(&nets.to_vec());
    nets.sort();
    nets.into()
}
