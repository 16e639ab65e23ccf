//! Packets with an authentication header (AH) in IPv6, for nftables.
//!
//! nftables takes AH for the protocol of such a packet, and what comes behind it cannot be compared; for legacy iptables it
//! is one of the headers that are looked through. (The iptables that is kept by nftables does not look through it, and its
//! rules are Calico's: there such a packet is one of protocol 51 and no other.) A rule that asks for another protocol, for ports or for a type of ICMP
//! can therefore not tell whether it applies. So that nobody gets past it with such a header, these packets go through a
//! chain of their own, in which such a rule counts as one for all protocols if it denies, denies if it passes on, and is
//! left out if it allows or logs. A rule that names protocol 51, or no protocol, is the same in both.

use std::borrow::Cow;

use tortie_api::rule::Action as RuleAction;
use tortie_api::scalar::Protocol;
use tortie_engine::message::{Rule as EngineRule, RuleSide};

use crate::IpVersion;
use crate::renderer::Renderer;

/// AH
pub(super) const AUTHENTICATION_HEADER: u8 = 51;

/// Follows the name of the chain whose place it takes. No name of a policy has a slash.
pub(super) const SUFFIX: &str = "/ah";

/// Rules with their numbers.
pub(super) type Numbered<'a> = Vec<(usize, Cow<'a, EngineRule>)>;

impl Renderer {
    /// The rules for such packets, if they differ from those for all others.
    pub(super) fn rules_behind_header<'a>(&self, rules: &'a [EngineRule]) -> Option<Numbered<'a>> {
        let is_concerned = self.is_nftables() && self.ip_version == IpVersion::V6;
        // One that allows a protocol does not apply to another anyway.
        let differs = |rule: &EngineRule| match rule.action {
            RuleAction::Log => false,
            RuleAction::Allow => looks_behind(rule) && rule.protocol.is_none(),
            RuleAction::Deny | RuleAction::Pass => looks_behind(rule),
        };
        if !is_concerned || !rules.iter().any(differs) {
            return None;
        }
        let rules = rules.iter().enumerate().filter_map(|(index, rule)| {
            if !looks_behind(rule) {
                return Some((index, Cow::Borrowed(rule)));
            }
            let denies = matches!(rule.action, RuleAction::Deny | RuleAction::Pass);
            denies.then(|| (index, Cow::Owned(for_all_protocols(rule))))
        });
        Some(rules.collect())
    }
}

/// Whether a rule must know what comes behind the header.
fn looks_behind(rule: &EngineRule) -> bool {
    let is_other = |protocol: &Option<Protocol>| {
        let number = protocol.as_ref().map(Protocol::number);
        number.is_some_and(|number| number != Some(AUTHENTICATION_HEADER))
    };
    let has_ports = |side: &RuleSide| {
        let sets = [
            &side.named_port_sets,
            &side.not_named_port_sets,
            &side.port_sets,
        ];
        let lists = [&side.ports, &side.not_ports];
        sets.iter().any(|sets| !sets.is_empty()) || lists.iter().any(|list| !list.is_empty())
    };
    is_other(&rule.protocol)
        || is_other(&rule.not_protocol)
        || rule.icmp.is_some()
        || rule.not_icmp.is_some()
        || has_ports(&rule.src)
        || has_ports(&rule.dst)
}

fn for_all_protocols(rule: &EngineRule) -> EngineRule {
    let side = |side: &RuleSide| RuleSide {
        nets: side.nets.clone(),
        not_nets: side.not_nets.clone(),
        sets: side.sets.clone(),
        not_sets: side.not_sets.clone(),
        ..RuleSide::default()
    };
    EngineRule {
        action: RuleAction::Deny,
        ip_version: rule.ip_version,
        src: side(&rule.src),
        dst: side(&rule.dst),
        metadata: rule.metadata.clone(),
        ..EngineRule::default()
    }
}
