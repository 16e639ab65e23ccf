//! What a rule of a policy does to the packets that it matches.

use std::fmt;

use tortie_api::rule::Action as RuleAction;
use tortie_engine::message::Rule as EngineRule;

use crate::nflog::{self, Decision};
use crate::renderer::Renderer;
use crate::rule::{Action, Match, Rule, Table};
use crate::{Direction, PolicyId};

use super::decides;

/// Whose rules are rendered.
pub(super) enum Owner<'a> {
    Policy {
        id: &'a PolicyId,
        tier: &'a str,
        untracked: bool,
        table: Table,
    },
    Profile {
        name: &'a str,
        table: Table,
    },
}

impl Renderer {
    /// The mark that a rule leaves, and what follows for the packets that have it.
    fn consequences(
        &self,
        rule: &EngineRule,
        owner: &Owner<'_>,
        direction: Direction,
        index: usize,
    ) -> (u32, Vec<Action>) {
        let marks = &self.config.marks;
        let (mark, decision, last) = match rule.action {
            RuleAction::Allow => (marks.accept, Decision::Allow, Action::Return),
            RuleAction::Pass => (marks.pass, Decision::Pass, Action::Return),
            RuleAction::Deny => {
                let deny: Action = self.deny_in(owner.table()).into();
                (marks.drop, Decision::Deny, deny)
            }
            RuleAction::Log => return (0, vec![Action::Log(self.log_prefix(owner))]),
        };
        let mut actions = Vec::new();
        if self.config.flow_logs && !owner.is_untracked() {
            let prefix = nflog::of_rule(decision, owner.letter(), direction, index, &owner.id());
            actions.push(Action::Nflog(nflog::group(direction), prefix));
        }
        actions.push(last);
        (mark, actions)
    }

    /// A rule's effect in iptables: one rule that marks what matches, then one for each consequence.
    pub(super) fn marked(
        &self,
        matches: Vec<Match>,
        rule: &EngineRule,
        owner: &Owner<'_>,
        direction: Direction,
        index: usize,
        out: &mut Vec<Rule>,
    ) {
        let (mark, consequences) = self.consequences(rule, owner, direction, index);
        if !decides(rule.action) {
            let limit = self
                .config
                .log_rate
                .map(|(rate, burst)| Match::Limit(rate, burst));
            let matches = limit.into_iter().chain(matches);
            out.extend(
                consequences
                    .into_iter()
                    .map(|action| Rule::when(matches.clone(), action)),
            );
            return;
        }
        out.push(Rule::when(matches, Action::SetMark(mark)));
        for action in consequences {
            out.push(Rule::when([Match::Mark(mark, mark)], action));
        }
    }

    /// A rule's effect in nftables, where one rule can do several things.
    pub(super) fn fused(
        &self,
        mut matches: Vec<Match>,
        rule: &EngineRule,
        owner: &Owner<'_>,
        direction: Direction,
        index: usize,
    ) -> Rule {
        let (mark, mut actions) = self.consequences(rule, owner, direction, index);
        match rule.action {
            RuleAction::Log => {
                let limit = self
                    .config
                    .log_rate
                    .map(|(rate, burst)| Match::Limit(rate, burst));
                matches.extend(limit);
            }
            // The mark tells who called the chain; a packet that is gone needs none.
            RuleAction::Deny => {}
            RuleAction::Allow | RuleAction::Pass => actions.insert(0, Action::SetMark(mark)),
        }
        Rule {
            matches,
            actions,
            comments: Vec::new(),
        }
    }

    fn log_prefix(&self, owner: &Owner<'_>) -> String {
        let prefix = match self.config.log_prefix.as_str() {
            "" => "calico-packet",
            prefix => prefix,
        };
        let mut out = String::new();
        let mut rest = prefix;
        while let Some(at) = rest.find('%') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let mut chars = from.chars();
            chars.next();
            match chars.next() {
                Some('t') => out.push_str(owner.tier()),
                Some('k') => out.push_str(owner.short_kind()),
                Some('p') => out.push_str(&owner.full_name()),
                Some('n') => out.push_str(owner.name()),
                _ => {
                    out.push('%');
                    rest = &from[1..];
                    continue;
                }
            }
            rest = chars.as_str();
        }
        out.push_str(rest);
        out
    }
}

impl Owner<'_> {
    /// The table that the rules are rendered for.
    fn table(&self) -> Table {
        match self {
            Self::Policy { table, .. } | Self::Profile { table, .. } => *table,
        }
    }

    fn is_untracked(&self) -> bool {
        matches!(
            self,
            Self::Policy {
                untracked: true,
                ..
            }
        )
    }

    fn letter(&self) -> char {
        match self {
            Self::Policy { .. } => 'P',
            Self::Profile { .. } => 'R',
        }
    }

    fn id(&self) -> String {
        match self {
            Self::Policy { id, .. } => id.to_string(),
            Self::Profile { name, .. } => (*name).to_owned(),
        }
    }

    fn tier(&self) -> &str {
        match self {
            Self::Policy { tier, .. } => tier,
            Self::Profile { .. } => "",
        }
    }

    fn short_kind(&self) -> &str {
        match self {
            Self::Policy { id, .. } => id.kind.short_name(),
            Self::Profile { .. } => "pro",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Policy { id, .. } => &id.name,
            Self::Profile { name, .. } => name,
        }
    }

    fn full_name(&self) -> String {
        match self {
            Self::Policy { id, .. } if !id.namespace.is_empty() => {
                format!("{}/{}", id.namespace, id.name)
            }
            _ => self.name().to_owned(),
        }
    }
}

/// As the comment of the first rule says it.
impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy { id, .. } => write!(f, "{} {}", id.kind, self.full_name()),
            Self::Profile { name, .. } => write!(f, "Profile {name}"),
        }
    }
}
