//! Policies and profiles as chains.

mod alternatives;
mod authentication_header;
mod blocks;
mod steps;
mod verdict;

use std::borrow::Cow;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::rule::Action as RuleAction;
use tortie_api::scalar::Protocol;
use tortie_engine::message::{AUTHENTICATION_HEADER, Policy, Profile, Rule as EngineRule, SetId};

use crate::renderer::{Renderer, SetLayout};
use crate::rule::{Action, Chain, Match, PortRange, Rule, Side, Table};
use crate::{
    Direction, IpVersion, PolicyId, behind_header_chain_name, policy_chain_name, profile_chain_name,
};

use authentication_header::Numbered;
pub(crate) use blocks::split_ports;
use verdict::Owner;

/// The most rules that the chain of a policy or profile has in the kernel; one with more denies all.
///
/// It is far more than people write and far less than what keeps the kernel busy: a chain of this size is written in
/// about a second, and a packet that none of its rules matches passes it in one or two milliseconds. Whoever may write one
/// policy could otherwise stop the programming of all others on every node.
pub const MAX_POLICY_RULES: usize = 20_000;

/// Tells where nftables keeps the members of a set.
pub type Layouts<'a> = &'a dyn Fn(&SetId) -> SetLayout;

impl Renderer {
    /// The chains of a policy, ingress first; none for a staged one, which is not enforced.
    pub fn policy_chains(
        &self,
        table: Table,
        id: &PolicyId,
        policy: &Policy,
        layouts: Layouts<'_>,
    ) -> Vec<Chain> {
        if id.kind.is_staged() {
            return Vec::new();
        }
        let chains = |direction, rules| {
            let owner = Owner::Policy {
                id,
                tier: &policy.tier,
                untracked: policy.untracked,
                table,
            };
            let name = policy_chain_name(id, direction, self.dataplane);
            self.chains(table, name, rules, &owner, direction, layouts)
        };
        let ingress = chains(Direction::Ingress, &policy.inbound_rules);
        let egress = chains(Direction::Egress, &policy.outbound_rules);
        ingress.chain(egress).collect()
    }

    /// The chains of a profile, ingress first.
    pub fn profile_chains(
        &self,
        table: Table,
        name: &str,
        profile: &Profile,
        layouts: Layouts<'_>,
    ) -> Vec<Chain> {
        let chains = |direction, rules| {
            let owner = Owner::Profile { name, table };
            let chain = profile_chain_name(name, direction, self.dataplane);
            self.chains(table, chain, rules, &owner, direction, layouts)
        };
        let ingress = chains(Direction::Ingress, &profile.inbound_rules);
        let egress = chains(Direction::Egress, &profile.outbound_rules);
        ingress.chain(egress).collect()
    }

    /// The chain with these rules, and the one that takes its place for packets that these rules cannot look into.
    fn chains(
        &self,
        table: Table,
        name: String,
        rules: &[EngineRule],
        owner: &Owner<'_>,
        direction: Direction,
        layouts: Layouts<'_>,
    ) -> impl Iterator<Item = Chain> + use<> {
        let all = rules.iter().map(Cow::Borrowed).enumerate().collect();
        let mut rendered = self.rules(all, owner, direction, layouts);
        let behind_header = self.rules_behind_header(rules).map(|rules| {
            let name: Arc<str> = behind_header_chain_name(&name, self.dataplane).into();
            let header = Match::Protocol(Protocol::Number(AUTHENTICATION_HEADER));
            let rule = Rule::when([header], Action::Goto(Arc::clone(&name)));
            rendered.insert(0, rule);
            Chain::new(table, name, self.rules(rules, owner, direction, layouts))
        });
        [Chain::new(table, name, rendered)]
            .into_iter()
            .chain(behind_header)
    }

    fn rules(
        &self,
        rules: Numbered<'_>,
        owner: &Owner<'_>,
        direction: Direction,
        layouts: Layouts<'_>,
    ) -> Vec<Rule> {
        let mut out = Vec::with_capacity(rules.len());
        for (index, rule) in rules {
            let rule = &*rule;
            let Some(nets) = Nets::of_version(rule, self.ip_version) else {
                continue;
            };
            let from = out.len();
            if self.is_nftables() {
                self.alternatives(rule, &nets, owner, direction, index, layouts, &mut out);
            } else {
                self.blocks(rule, &nets, owner, direction, index, &mut out);
            }
            let notes = rule.metadata.iter().flat_map(|data| &data.annotations);
            for (key, value) in notes {
                let note = format!("{key}={value}");
                for rendered in &mut out[from..] {
                    rendered.comments.push(note.clone());
                }
            }
        }
        // At the end of a chain the packet returns anyway.
        while out.last().is_some_and(only_returns) {
            out.pop();
        }
        if out.is_empty() {
            out.push(Rule::default());
        }
        out[0].comments.push(format!("{owner} {direction}"));
        out
    }
}

fn only_returns(rule: &Rule) -> bool {
    matches!(rule.actions.as_slice(), [Action::Return])
}

/// The networks of a rule that are of the IP version at hand.
struct Nets {
    sides: [SideNets; 2],
}

struct SideNets {
    any: Vec<IpNet>,
    none: Vec<IpNet>,
}

impl Nets {
    /// `None` if the rule can match no packet of that version.
    fn of_version(rule: &EngineRule, version: IpVersion) -> Option<Self> {
        let number = match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        };
        if rule.ip_version.is_some_and(|wanted| wanted != number) {
            return None;
        }
        let is_ours = |net: &&IpNet| matches!(net, IpNet::V4(_)) == (version == IpVersion::V4);
        let filtered = |nets: &[IpNet]| {
            let ours: Vec<IpNet> = nets.iter().filter(is_ours).copied().collect();
            (nets.is_empty() || !ours.is_empty()).then_some(ours)
        };
        let side = |any: &[IpNet], none: &[IpNet]| {
            let (any, none) = (filtered(any)?, filtered(none)?);
            let excludes_all = none.iter().any(|net| net.prefix_len() == 0);
            (!excludes_all).then_some(SideNets { any, none })
        };
        Some(Self {
            sides: [
                side(&rule.src.nets, &rule.src.not_nets)?,
                side(&rule.dst.nets, &rule.dst.not_nets)?,
            ],
        })
    }

    fn side(&self, side: Side) -> &SideNets {
        &self.sides[side as usize]
    }
}

/// The conditions of a rule that neither data plane treats specially. `negated` ones come last.
impl Renderer {
    /// Conditions that must not hold, for one end.
    fn negated_side(&self, side: Side, rule: &EngineRule, out: &mut Vec<Match>) {
        let conditions = rule_side(rule, side);
        for set in &conditions.not_sets {
            out.push(Match::NotSet(side, self.set_of(set)));
        }
        for ports in self.port_lists(&conditions.not_ports) {
            out.push(Match::NotPorts(side, ports));
        }
        for set in &conditions.not_named_port_sets {
            out.push(Match::NotPortSet(side, self.set_of(set)));
        }
    }

    /// Ports in lists that are short enough for one condition.
    fn port_lists(&self, ports: &[PortRange]) -> Vec<Arc<[PortRange]>> {
        if self.is_nftables() {
            return Vec::from_iter((!ports.is_empty()).then(|| ports.into()));
        }
        split_ports(ports)
    }
}

fn rule_side(rule: &EngineRule, side: Side) -> &tortie_engine::message::RuleSide {
    match side {
        Side::Source => &rule.src,
        Side::Destination => &rule.dst,
    }
}

/// Whether a rule decides about the packet, rather than only noting it.
fn decides(action: RuleAction) -> bool {
    action != RuleAction::Log
}
