//! Filters and communities in BIRD's language, where both lines have the same.

use std::fmt::{self, Write as _};

use super::text::{Text, line};
use crate::plan::{
    Action, Community, CommunityRule, Condition, Filter, FilterRule, MAX_PREFERENCE, NetMatch,
    Operation, PeerType,
};
use crate::text::Symbol;
use crate::{Family, Plan};

/// The way of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Import,
    Export,
}

impl Direction {
    const BOTH: [Self; 2] = [Self::Import, Self::Export];
}

/// The name of the function with the rules of a filter.
fn symbol(filter: &Filter, direction: Direction, family: Family) -> Symbol {
    let suffix = match (direction, family) {
        (Direction::Import, Family::V4) => "_importFilterV4",
        (Direction::Export, Family::V4) => "_exportFilterV4",
        (Direction::Import, Family::V6) => "_importFilterV6",
        (Direction::Export, Family::V6) => "_exportFilterV6",
    };
    Symbol::new("bgp_", &filter.name, suffix)
}

fn rules(filter: &Filter, direction: Direction, family: Family) -> &[FilterRule] {
    let rules = filter.rules.get(family);
    match direction {
        Direction::Import => &rules.import,
        Direction::Export => &rules.export,
    }
}

/// Whether the rules have to know if both sides have the same AS number.
fn asks_for_peer_type(rules: &[FilterRule]) -> bool {
    rules.iter().any(|rule| rule.peers.is_some())
}

/// A function for each filter that has rules.
pub(super) fn functions(out: &mut Text, plan: &Plan, family: Family) {
    for filter in &plan.filters {
        for direction in Direction::BOTH {
            let rules = rules(filter, direction, family);
            if rules.is_empty() {
                continue;
            }
            let name = symbol(filter, direction, family);
            let argument = if asks_for_peer_type(rules) {
                "bool is_same_as"
            } else {
                ""
            };
            line!(out, "function {name}({argument}) {{");
            for rule in rules {
                line!(out, "  {}", statement(rule));
            }
            line!(out, "}}");
        }
    }
}

/// Calls the functions of these filters.
pub(super) fn calls(
    out: &mut Text,
    plan: &Plan,
    (direction, family): (Direction, Family),
    filters: &[usize],
    is_internal: bool,
) {
    for filter in filters.iter().filter_map(|index| plan.filters.get(*index)) {
        let rules = rules(filter, direction, family);
        if rules.is_empty() {
            continue;
        }
        let name = symbol(filter, direction, family);
        if asks_for_peer_type(rules) {
            line!(out, "    {name}({is_internal});");
        } else {
            line!(out, "    {name}();");
        }
    }
}

fn statement(rule: &FilterRule) -> String {
    let mut body = String::new();
    for operation in &rule.operations {
        body.push_str(&operation_text(operation));
    }
    body.push_str(match rule.action {
        Action::Accept => "accept;",
        Action::Reject => "reject;",
    });
    let conditions: Vec<String> = rule.conditions.iter().map(condition_text).collect();
    let statement = if conditions.is_empty() {
        body
    } else {
        format!("if ({}) then {{ {body} }}", conditions.join("&&"))
    };
    match rule.peers {
        None => statement,
        Some(PeerType::Internal) => format!("if (is_same_as) then {{ {statement} }}"),
        Some(PeerType::External) => format!("if (!is_same_as) then {{ {statement} }}"),
    }
}

fn condition_text(condition: &Condition) -> String {
    match condition {
        Condition::Net {
            operator,
            network,
            lengths,
        } => {
            let operator = match operator {
                NetMatch::Equal => "=",
                NetMatch::NotEqual => "!=",
                NetMatch::In => "~",
                NetMatch::NotIn => "!~",
            };
            match lengths {
                None => format!("(net {operator} {network})"),
                Some((min, max)) => format!("(net {operator} [ {network}{{{min},{max}}} ])"),
            }
        }
        Condition::FromPeers => "((defined(source))&&(source ~ [ RTS_BGP ]))".to_owned(),
        Condition::Interface(pattern) => format!("((defined(ifname))&&(ifname ~ \"{pattern}\"))"),
        Condition::Community(community) => {
            let (value, list) = (Value(*community), list(*community));
            format!("({value} ~ {list})")
        }
        Condition::AsPath(path) => {
            let mut text = String::from("(bgp_path ~ [= ");
            for number in path {
                write!(text, "{number} ").expect("a string takes any text");
            }
            text + "* =])"
        }
        Condition::Priority(priority) => {
            let preference = MAX_PREFERENCE - priority;
            format!("(defined(bgp_local_pref)&&(bgp_local_pref = {preference}))")
        }
    }
}

fn operation_text(operation: &Operation) -> String {
    match operation {
        Operation::AddCommunity(community) => add(*community) + " ",
        // The last one that is put in front is the leftmost.
        Operation::Prepend(numbers) => {
            let numbers = numbers.iter().rev();
            let prepends = numbers.map(|number| format!("bgp_path.prepend({number}); "));
            prepends.collect()
        }
        Operation::SetPriority(priority) => {
            format!("bgp_local_pref = {}; ", MAX_PREFERENCE - priority)
        }
    }
}

/// Adds communities to the routes of each rule.
pub(super) fn communities(out: &mut Text, rules: &[CommunityRule]) {
    for rule in rules {
        line!(out, "      if ( net ~ {} ) then {{", rule.network);
        for community in &rule.communities {
            line!(out, "          {}", add(*community));
        }
        line!(out, "      }}");
    }
}

fn add(community: Community) -> String {
    let (value, list) = (Value(community), list(community));
    format!("{list}.add({value});")
}

fn list(community: Community) -> &'static str {
    match community {
        Community::Standard(..) => "bgp_community",
        Community::Large(..) => "bgp_large_community",
    }
}

/// A community as a value of BIRD's language.
struct Value(Community);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Community::Standard(a, b) => write!(f, "({a}, {b})"),
            Community::Large(a, b, c) => write!(f, "({a}, {b}, {c})"),
        }
    }
}
