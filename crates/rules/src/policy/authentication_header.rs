//! Packets with an authentication header (AH) in IPv6.
//!
//! nftables takes AH for the protocol of such a packet, and what comes behind it cannot be compared; so does the iptables
//! that is kept by nftables. For legacy iptables it is one of the headers that are looked through. Where it is not, such
//! packets go through a chain of their own, in which rules are what [`EngineRule::behind_header`] says.

use std::borrow::Cow;

use tortie_api::rule::Action as RuleAction;
use tortie_engine::message::Rule as EngineRule;

use crate::IpVersion;
use crate::renderer::Renderer;

/// Rules with their numbers.
pub(super) type Numbered<'a> = Vec<(usize, Cow<'a, EngineRule>)>;

impl Renderer {
    /// The rules for such packets, if they differ from those for all others.
    pub(super) fn rules_behind_header<'a>(&self, rules: &'a [EngineRule]) -> Option<Numbered<'a>> {
        let is_concerned = self.hides_behind_header && self.ip_version == IpVersion::V6;
        // One that allows a protocol does not apply to another anyway.
        let differs = |rule: &EngineRule| match rule.action {
            RuleAction::Log => false,
            RuleAction::Allow => rule.looks_behind_header() && rule.protocol.is_none(),
            RuleAction::Deny | RuleAction::Pass => rule.looks_behind_header(),
        };
        if !is_concerned || !rules.iter().any(differs) {
            return None;
        }
        let rules = rules.iter().enumerate();
        let rules = rules.filter_map(|(index, rule)| Some((index, rule.behind_header()?)));
        Some(rules.collect())
    }
}
