//! Filters of BIRD's language, run on a route.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::syntax::{Expression, Member, Statement};

/// A route, as a filter sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) net: IpNet,
    pub(crate) source: &'static str,
    pub(crate) interface: Option<String>,
    pub(crate) next_hop: Option<IpAddr>,
    /// `krt_metric`, `bgp_local_pref` and `preference`, where there is one.
    pub(crate) numbers: BTreeMap<String, u32>,
    pub(crate) path: Vec<u32>,
    pub(crate) communities: BTreeSet<Vec<u32>>,
    /// The value of `krt_tunnel`.
    pub(crate) tunnel: String,
}

/// What a filter does with a route. One that fails rejects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted(Route),
    Rejected,
}

/// The functions of a configuration: their argument, if they have one, and what they do.
pub(crate) type Functions = BTreeMap<String, (Option<String>, Vec<Statement>)>;

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Bool(bool),
    Number(u32),
    Text(String),
    Address(IpAddr),
    Network(IpNet),
    Tuple(Vec<u32>),
    Path(Vec<u32>),
    Communities(BTreeSet<Vec<u32>>),
    Source(String),
    Set(Vec<Member>),
    Beginning(Vec<u32>),
}

/// Why a filter ends.
enum End {
    Accept,
    Reject,
}

struct Run<'a> {
    functions: &'a Functions,
    route: Route,
    arguments: Vec<BTreeMap<String, bool>>,
}

pub(crate) fn run(statements: &[Statement], functions: &Functions, route: &Route) -> Outcome {
    let mut run = Run {
        functions,
        route: route.clone(),
        arguments: vec![BTreeMap::new()],
    };
    match run.statements(statements) {
        Err(End::Accept) => Outcome::Accepted(run.route),
        Err(End::Reject) => Outcome::Rejected,
        Ok(()) => panic!("a filter decides: {statements:?}"),
    }
}

impl Run<'_> {
    fn statements(&mut self, statements: &[Statement]) -> Result<(), End> {
        statements
            .iter()
            .try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), End> {
        match statement {
            Statement::Accept => return Err(End::Accept),
            Statement::Reject => return Err(End::Reject),
            Statement::If(condition, then, otherwise) => {
                let holds = self.holds(condition)?;
                return self.statements(if holds { then } else { otherwise });
            }
            Statement::Set(name, expression) => match (&**name, self.value(expression)?) {
                ("krt_tunnel", Value::Text(text)) => self.route.tunnel = text,
                (name, Value::Number(number)) => {
                    self.route.numbers.insert(name.to_owned(), number);
                }
                (name, value) => panic!("{name} = {value:?}"),
            },
            Statement::Add(list, expression) => {
                let Value::Tuple(community) = self.value(expression)? else {
                    panic!("{expression:?} is no community");
                };
                assert_eq!(list.contains("large"), community.len() == 3, "{list}");
                self.route.communities.insert(community);
            }
            Statement::Prepend(expression) => {
                let Value::Number(number) = self.value(expression)? else {
                    panic!("{expression:?} is no AS number");
                };
                self.route.path.insert(0, number);
            }
            Statement::Call(name, given) => {
                let (argument, body) = &self.functions[name];
                let mut arguments = BTreeMap::new();
                assert_eq!(argument.iter().len(), given.len(), "{name}");
                for (argument, given) in argument.iter().zip(given) {
                    arguments.insert(argument.clone(), self.holds(given)?);
                }
                self.arguments.push(arguments);
                self.statements(body)?;
                self.arguments.pop();
            }
        }
        Ok(())
    }

    fn holds(&self, expression: &Expression) -> Result<bool, End> {
        match self.value(expression)? {
            Value::Bool(holds) => Ok(holds),
            other => panic!("{other:?} is no condition"),
        }
    }

    fn value(&self, expression: &Expression) -> Result<Value, End> {
        Ok(match expression {
            Expression::Number(number) => Value::Number(*number),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Address(address) => Value::Address(*address),
            Expression::Network(network) => Value::Network(*network),
            Expression::Tuple(numbers) => Value::Tuple(numbers.clone()),
            Expression::Set(members) => Value::Set(members.clone()),
            Expression::Path(numbers) => Value::Beginning(numbers.clone()),
            Expression::Defined(name) => Value::Bool(self.attribute(name).is_some()),
            // What is not there cannot be compared: the filter fails.
            Expression::Name(name) => return self.attribute(name).ok_or(End::Reject),
            Expression::Not(inner) => Value::Bool(!self.holds(inner)?),
            Expression::Both("&&", left, right) => {
                Value::Bool(self.holds(left)? && self.holds(right)?)
            }
            Expression::Both("||", left, right) => {
                Value::Bool(self.holds(left)? || self.holds(right)?)
            }
            Expression::Both(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                match (*operator, &left, &right) {
                    ("-", Value::Number(a), Value::Number(b)) => Value::Number(a.wrapping_sub(*b)),
                    ("<", Value::Number(a), Value::Number(b)) => Value::Bool(a < b),
                    (">", Value::Number(a), Value::Number(b)) => Value::Bool(a > b),
                    ("=", a, b) => Value::Bool(a == b),
                    ("!=", a, b) => Value::Bool(a != b),
                    ("~", a, b) => Value::Bool(matches(a, b)),
                    ("!~", a, b) => Value::Bool(!matches(a, b)),
                    _ => panic!("{left:?} {operator} {right:?}"),
                }
            }
        })
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        let route = &self.route;
        match name {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "net" => Some(Value::Network(route.net)),
            "source" => Some(Value::Source(route.source.to_owned())),
            "ifname" => route.interface.clone().map(Value::Text),
            "bgp_next_hop" => route.next_hop.map(Value::Address),
            "bgp_path" => Some(Value::Path(route.path.clone())),
            "bgp_community" | "bgp_large_community" => {
                Some(Value::Communities(route.communities.clone()))
            }
            _ if name.starts_with("RTS_") => Some(Value::Source(name.to_owned())),
            "krt_metric" | "bgp_local_pref" | "preference" => {
                route.numbers.get(name).copied().map(Value::Number)
            }
            _ => {
                let arguments = self.arguments.last().expect("there is always one");
                let argument = arguments.get(name);
                Some(Value::Bool(
                    *argument.unwrap_or_else(|| panic!("what is {name}?")),
                ))
            }
        }
    }
}

fn matches(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Network(net), Value::Network(outer)) => outer.contains(net),
        (Value::Address(address), Value::Network(network)) => network.contains(address),
        (Value::Text(text), Value::Text(pattern)) => is_like(text, pattern),
        (Value::Tuple(community), Value::Communities(list)) => list.contains(community),
        (Value::Path(path), Value::Beginning(beginning)) => path.starts_with(beginning),
        (Value::Network(net), Value::Set(members)) => members.iter().any(|member| match member {
            Member::Network(outer, min, max) => {
                (*min..=*max).contains(&net.prefix_len())
                    && (outer.contains(net) || net.contains(outer) && *min < outer.prefix_len())
            }
            other => panic!("{other:?} in a set of networks"),
        }),
        (Value::Address(address), Value::Set(members)) => {
            members.contains(&Member::Address(*address))
        }
        (Value::Source(source), Value::Set(members)) => {
            members.contains(&Member::Name(source.clone()))
        }
        _ => panic!("{left:?} ~ {right:?}"),
    }
}

/// A pattern with `*` and `?`, as of a shell.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut texts, mut patterns) = (text.chars(), pattern.chars());
    match patterns.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = patterns.as_str();
            text.char_indices()
                .map(|(at, _)| &text[at..])
                .chain([""])
                .any(|text| is_like(text, rest))
        }
        Some('?') => texts.next().is_some() && is_like(texts.as_str(), patterns.as_str()),
        Some(c) => texts.next() == Some(c) && is_like(texts.as_str(), patterns.as_str()),
    }
}
