//! Filters as they are written.
//!
//! A rule that cannot be read never lets pass more: one that accepts is left out, one that rejects does so by what of it can be read.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::kinds::bgp_filter::{
    BgpFilterAction, BgpFilterCommunityMatch, BgpFilterMatchOperator, BgpFilterOperation,
    BgpFilterPeerType, BgpFilterRuleV4, BgpFilterRuleV6, BgpFilterSpec,
};
use tortie_api::scalar::AsNumber;

use super::{Action, Condition, Directions, Filter, FilterRule, NetMatch, Operation, PeerType};
use crate::inputs;
use crate::plan::settings::priority;
use crate::plan::{Community, MAX_PREFERENCE, Origin, Problems, shown};
use crate::text::InterfacePattern;
use crate::{Family, Inputs, PerFamily};

/// A rule of either IP version, as it is written.
struct Given<'a> {
    cidr: &'a str,
    operator: Option<BgpFilterMatchOperator>,
    lengths: Option<(Option<i32>, Option<i32>)>,
    is_from_peers: bool,
    interface: &'a str,
    peer_type: Option<BgpFilterPeerType>,
    communities: Option<&'a BgpFilterCommunityMatch>,
    as_path_prefix: &'a [AsNumber],
    priority: Option<i64>,
    action: BgpFilterAction,
    operations: &'a [BgpFilterOperation],
}

macro_rules! given {
    ($rule:expr) => {
        Given {
            cidr: &$rule.cidr,
            operator: $rule.match_operator,
            lengths: $rule
                .prefix_length
                .as_ref()
                .map(|lengths| (lengths.min, lengths.max)),
            is_from_peers: $rule.source.is_some(),
            interface: &$rule.interface,
            peer_type: $rule.peer_type,
            communities: $rule.communities.as_ref(),
            as_path_prefix: &$rule.as_path_prefix,
            priority: $rule.priority,
            action: $rule.action,
            operations: &$rule.operations,
        }
    };
}

impl<'a> From<&'a BgpFilterRuleV4> for Given<'a> {
    fn from(rule: &'a BgpFilterRuleV4) -> Self {
        given!(rule)
    }
}

impl<'a> From<&'a BgpFilterRuleV6> for Given<'a> {
    fn from(rule: &'a BgpFilterRuleV6) -> Self {
        given!(rule)
    }
}

/// All filters, by name.
pub(in crate::plan) fn all(inputs: &Inputs, problems: &mut Problems) -> Vec<Filter> {
    let filters = inputs.filters.iter();
    filters
        .map(|(name, spec)| Filter {
            name: Arc::clone(name),
            rules: rules(name, spec, problems),
        })
        .collect()
}

fn rules(name: &Arc<str>, spec: &BgpFilterSpec, problems: &mut Problems) -> PerFamily<Directions> {
    let mut read = Reader { name, problems };
    PerFamily {
        v4: Directions {
            import: read.list(Family::V4, "importV4", &spec.import_v4),
            export: read.list(Family::V4, "exportV4", &spec.export_v4),
        },
        v6: Directions {
            import: read.list(Family::V6, "importV6", &spec.import_v6),
            export: read.list(Family::V6, "exportV6", &spec.export_v6),
        },
    }
}

struct Reader<'a> {
    name: &'a Arc<str>,
    problems: &'a mut Problems,
}

/// What cannot be read of a rule: the field, and the reason.
type Unreadable = (&'static str, String);

impl Reader<'_> {
    fn list<'a, R: 'a>(&mut self, family: Family, field: &str, rules: &'a [R]) -> Vec<FilterRule>
    where
        Given<'a>: From<&'a R>,
    {
        let rules = rules.iter().enumerate();
        rules
            .filter_map(|(index, rule)| {
                let field = format!("spec.{field}[{index}]");
                self.rule(family, &field, &Given::from(rule))
            })
            .collect()
    }

    fn rule(&mut self, family: Family, field: &str, given: &Given) -> Option<FilterRule> {
        let mut unreadable = Vec::new();
        let conditions = given.conditions(family, &mut unreadable);
        let mut operations = Vec::new();
        for operation in given.operations {
            match read_operation(operation) {
                Ok(operation) => operations.push(operation),
                Err(problem) => unreadable.push(problem),
            }
        }
        let accepts = given.action == BgpFilterAction::Accept;
        if !accepts && !operations.is_empty() {
            let reason = "what is rejected is not changed: operations go with action Accept";
            unreadable.push(("operations", reason.to_owned()));
            operations.clear();
        }
        let is_whole = unreadable.is_empty();
        for (part, reason) in unreadable {
            let follows = if accepts {
                "the rule is left out"
            } else {
                "the rule rejects by its other conditions"
            };
            let origin = Origin::new(
                "BGPFilter",
                Arc::clone(self.name),
                format!("{field}.{part}"),
            );
            self.problems
                .push(origin.problem(format!("{reason}; {follows}")));
        }
        (is_whole || !accepts).then(|| FilterRule {
            peers: given.peer_type.map(|kind| match kind {
                BgpFilterPeerType::Ebgp => PeerType::External,
                BgpFilterPeerType::Ibgp => PeerType::Internal,
            }),
            conditions,
            operations,
            action: if accepts {
                Action::Accept
            } else {
                Action::Reject
            },
            origin: Origin::new("BGPFilter", Arc::clone(self.name), field.to_owned()),
        })
    }
}

impl Given<'_> {
    fn conditions(&self, family: Family, unreadable: &mut Vec<Unreadable>) -> Vec<Condition> {
        let mut conditions = Vec::new();
        let mut add = |condition: Result<Option<Condition>, Unreadable>| match condition {
            Ok(condition) => conditions.extend(condition),
            Err(problem) => unreadable.push(problem),
        };
        add(self.net(family));
        add(Ok(self.is_from_peers.then_some(Condition::FromPeers)));
        add(self.interface());
        add(self.community());
        let path: Vec<u32> = self.as_path_prefix.iter().map(|number| number.0).collect();
        add(Ok((!path.is_empty()).then_some(Condition::AsPath(path))));
        add(match self.priority {
            None => Ok(None),
            Some(value) => read_priority(value)
                .map(|value| Some(Condition::Priority(value)))
                .map_err(|reason| ("priority", reason)),
        });
        conditions
    }

    fn net(&self, family: Family) -> Result<Option<Condition>, Unreadable> {
        if self.cidr.is_empty() {
            return match (self.operator, self.lengths) {
                (None, None) => Ok(None),
                (Some(_), _) => Err((
                    "matchOperator",
                    "there is no cidr to compare with".to_owned(),
                )),
                (None, Some(_)) => Err((
                    "prefixLength",
                    "there is no cidr that it narrows".to_owned(),
                )),
            };
        }
        let network = inputs::network(self.cidr).filter(|net| Family::of_network(*net) == family);
        let network = network.ok_or_else(|| {
            let text = shown(self.cidr);
            ("cidr", format!("{text} is not a network of {family}"))
        })?;
        let operator = match self.operator {
            None => {
                let reason = "it is missing: Equal, NotEqual, In or NotIn goes with cidr";
                return Err(("matchOperator", reason.to_owned()));
            }
            Some(BgpFilterMatchOperator::Equal) => NetMatch::Equal,
            Some(BgpFilterMatchOperator::NotEqual) => NetMatch::NotEqual,
            Some(BgpFilterMatchOperator::In) => NetMatch::In,
            Some(BgpFilterMatchOperator::NotIn) => NetMatch::NotIn,
        };
        let lengths = self.lengths.map(|lengths| {
            if matches!(operator, NetMatch::Equal | NetMatch::NotEqual) {
                let reason = "a network that is compared as a whole has one prefix length: prefixLength goes with In or NotIn";
                return Err(("prefixLength", reason.to_owned()));
            }
            read_lengths(network, lengths).map_err(|reason| ("prefixLength", reason))
        });
        Ok(Some(Condition::Net {
            operator,
            network,
            lengths: lengths.transpose()?,
        }))
    }

    fn interface(&self) -> Result<Option<Condition>, Unreadable> {
        if self.interface.is_empty() {
            return Ok(None);
        }
        let pattern = InterfacePattern::new(self.interface);
        let pattern = pattern.ok_or_else(|| {
            let text = shown(self.interface);
            (
                "interface",
                format!("{text} is not {}", InterfacePattern::EXPECTED),
            )
        })?;
        Ok(Some(Condition::Interface(pattern)))
    }

    fn community(&self) -> Result<Option<Condition>, Unreadable> {
        let Some(communities) = self.communities else {
            return Ok(None);
        };
        let [text] = communities.values.as_slice() else {
            let count = communities.values.len();
            return Err((
                "communities.values",
                format!("it has {count} values instead of one"),
            ));
        };
        let community = read_community(text).map_err(|reason| ("communities.values[0]", reason))?;
        Ok(Some(Condition::Community(community)))
    }
}

/// The range that both the network and the rule allow.
fn read_lengths(
    network: IpNet,
    (min, max): (Option<i32>, Option<i32>),
) -> Result<(u8, u8), String> {
    let bits = Family::of_network(network).bits();
    let read = |value: Option<i32>, default: u8| match value {
        None => Ok(default),
        Some(value) => u8::try_from(value)
            .ok()
            .filter(|value| *value <= bits)
            .ok_or_else(|| format!("{value} is not a prefix length from 0 to {bits}")),
    };
    let min = read(min, network.prefix_len())?.max(network.prefix_len());
    let max = read(max, bits)?;
    if min > max {
        return Err(format!(
            "no network in {network} has a prefix of {min} to {max} bits"
        ));
    }
    Ok((min, max))
}

fn read_community(text: &str) -> Result<Community, String> {
    Community::parse(text).ok_or_else(|| format!("{} is not {}", shown(text), Community::EXPECTED))
}

fn read_priority(value: i64) -> Result<u32, String> {
    priority(value)
        .ok_or_else(|| format!("{value} is not a metric from 1 to {}", MAX_PREFERENCE - 1))
}

fn read_operation(operation: &BgpFilterOperation) -> Result<Operation, Unreadable> {
    let BgpFilterOperation {
        add_community,
        prepend_as_path,
        set_priority,
    } = operation;
    let wrong = |reason: String| ("operations", reason);
    match (add_community, prepend_as_path, set_priority) {
        (Some(add), None, None) => {
            let text = add.value.as_deref().unwrap_or_default();
            let community = read_community(text).map_err(wrong)?;
            Ok(Operation::AddCommunity(community))
        }
        (None, Some(prepend), None) => {
            let numbers = prepend.prefix.iter().map(|number| number.0);
            Ok(Operation::Prepend(numbers.collect()))
        }
        (None, None, Some(set)) => {
            let value = set.value.unwrap_or_default();
            Ok(Operation::SetPriority(read_priority(value).map_err(wrong)?))
        }
        _ => Err(wrong(
            "an operation is exactly one of addCommunity, prependASPath and setPriority".to_owned(),
        )),
    }
}
