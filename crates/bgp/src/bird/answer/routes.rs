//! `show route`, with and without `all`.
//!
//! ```text
//! 1007-10.65.1.0/26         blackhole [static4 02:20:30.792] * (200)            BIRD 2
//!                           unicast [Mesh_172_20_0_2 02:20:31.680] (100) [i]    another of the same prefix
//!         via 172.20.0.2 on eth0
//! 1007-10.65.2.0/26       via 172.20.0.2 on eth0 [Mesh_172_20_0_2 02:20:13] * (100/0) [i]    BIRD 1.6
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::key_and_value;
use crate::bird::reply::Reply;

/// One route of a table. A prefix may have several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Empty in BIRD 1.6, which does not name it.
    pub table: String,
    pub prefix: IpNet,
    pub kind: Kind,
    /// Several if packets are spread.
    pub next_hops: Vec<NextHop>,
    /// The protocol that has brought it.
    pub protocol: String,
    /// When, as text in BIRD's own form.
    pub since: String,
    /// Who has sent it, if that is not the next hop.
    pub from: Option<IpAddr>,
    /// The best of its prefix.
    pub is_primary: bool,
    pub preference: Option<u32>,
    /// The AS that it comes from and how, such as `i` or `AS65099i`.
    pub origin: Option<String>,
    /// Empty if they were not asked for.
    pub attributes: Attributes,
}

/// What becomes of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Unicast,
    Blackhole,
    Unreachable,
    Prohibited,
}

/// Where packets are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextHop {
    /// None if the destination is on the link.
    pub gateway: Option<IpAddr>,
    pub interface: String,
    pub weight: Option<u32>,
    pub is_on_link: bool,
}

/// What is said about a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Where it comes from, such as `BGP univ` or `static univ`.
    pub source: Option<String>,
    pub origin: Option<String>,
    pub as_path: Vec<AsSegment>,
    pub next_hop: Option<IpAddr>,
    pub med: Option<u32>,
    pub local_pref: Option<u32>,
    pub communities: Vec<(u16, u16)>,
    pub large_communities: Vec<(u32, u32, u32)>,
    /// All others, by BIRD's name.
    pub others: BTreeMap<String, String>,
}

/// A part of the way that a route has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsSegment {
    As(u32),
    /// Several in no order, left by who has aggregated routes.
    Set(Vec<u32>),
}

const ROUTE: u16 = 1007;

const SOURCE: u16 = 1008;

const ATTRIBUTE: u16 = 1012;

/// All routes of an answer, in its order. Those of other than IP networks are left out.
pub fn routes(reply: &Reply) -> Vec<Route> {
    let mut reading = Reading::default();
    for line in &reply.lines {
        match line.code {
            ROUTE => reading.line(&line.text),
            SOURCE | ATTRIBUTE => {
                if let (Some(route), Some((key, value))) =
                    (reading.current(), key_and_value(&line.text))
                {
                    route.attributes.set(key, value);
                }
            }
            _ => {}
        }
    }
    reading.routes
}

/// What earlier lines have said.
#[derive(Debug, Default)]
struct Reading {
    table: String,
    prefix: Option<IpNet>,
    routes: Vec<Route>,
    /// The last line of a route could not be read: what belongs to it goes to no other.
    is_skipping: bool,
}

impl Reading {
    fn current(&mut self) -> Option<&mut Route> {
        if self.is_skipping {
            return None;
        }
        self.routes.last_mut()
    }

    fn line(&mut self, text: &str) {
        if let Some(hop) = text.strip_prefix('\t') {
            if let (Some(route), Some(hop)) = (self.current(), NextHop::of(hop)) {
                route.next_hops.push(hop);
            }
        } else if let Some(name) = text.strip_prefix("Table ") {
            name.trim()
                .trim_end_matches(':')
                .clone_into(&mut self.table);
            self.prefix = None;
        } else if !text.trim().is_empty() {
            let route = self.route(text);
            self.is_skipping = route.is_none();
            self.routes.extend(route);
        }
    }

    /// `PREFIX HOW [PROTOCOL SINCE from ADDRESS] * (PREFERENCE/METRIC) [ORIGIN]`
    fn route(&mut self, text: &str) -> Option<Route> {
        let (head, rest) = text.split_once(" [")?;
        let (inside, flags) = rest.split_once(']')?;
        let how = if head.starts_with(' ') {
            head.trim()
        } else {
            let (prefix, how) = head.split_once(' ')?;
            self.prefix = prefix.parse().ok();
            how.trim()
        };
        let (kind, next_hop) = match how {
            "unicast" | "multipath" => (Kind::Unicast, None),
            "blackhole" => (Kind::Blackhole, None),
            "unreachable" => (Kind::Unreachable, None),
            "prohibited" => (Kind::Prohibited, None),
            other => (Kind::Unicast, Some(NextHop::of(other)?)),
        };
        let (by, from) = match inside.split_once(" from ") {
            Some((by, from)) => (by, address(from.trim())),
            None => (inside, None),
        };
        let (protocol, since) = by.split_once(' ').unwrap_or((by, ""));
        Some(Route {
            table: self.table.clone(),
            prefix: self.prefix?,
            kind,
            next_hops: next_hop.into_iter().collect(),
            protocol: protocol.to_owned(),
            since: since.trim().to_owned(),
            from,
            is_primary: flags.trim_start().starts_with('*'),
            preference: between(flags, '(', ')').and_then(preference),
            origin: between(flags, '[', ']').map(str::to_owned),
            attributes: Attributes::default(),
        })
    }
}

impl NextHop {
    /// `via 172.20.0.2 on eth0 onlink weight 1`, or `dev eth0`
    fn of(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut hop = Self::default();
        while let Some(word) = words.next() {
            match word {
                "via" => hop.gateway = Some(address(words.next()?)?),
                "on" | "dev" => words.next()?.clone_into(&mut hop.interface),
                "weight" => hop.weight = words.next()?.parse().ok(),
                "onlink" => hop.is_on_link = true,
                _ => {}
            }
        }
        (hop.gateway.is_some() || !hop.interface.is_empty()).then_some(hop)
    }
}

impl Attributes {
    fn set(&mut self, key: &str, value: &str) {
        match key {
            "Type" => self.source = Some(value.to_owned()),
            "BGP.origin" => self.origin = Some(value.to_owned()),
            "BGP.as_path" => self.as_path = as_path(value),
            // A second one is link-local.
            "BGP.next_hop" => self.next_hop = value.split(' ').next().and_then(address),
            "BGP.med" => self.med = value.parse().ok(),
            "BGP.local_pref" => self.local_pref = value.parse().ok(),
            "BGP.community" => {
                self.communities = groups(value)
                    .filter_map(|group| match group[..] {
                        [a, b] => Some((a.try_into().ok()?, b.try_into().ok()?)),
                        _ => None,
                    })
                    .collect();
            }
            "BGP.large_community" => {
                self.large_communities = groups(value)
                    .filter_map(|group| match group[..] {
                        [a, b, c] => Some((a, b, c)),
                        _ => None,
                    })
                    .collect();
            }
            _ => {
                self.others.insert(key.to_owned(), value.to_owned());
            }
        }
    }
}

/// The numbers of `(65000,7) (65000, 8)`.
fn groups(value: &str) -> impl Iterator<Item = Vec<u32>> {
    value.split('(').skip(1).map(|group| {
        let inside = group.split(')').next().unwrap_or_default();
        let numbers = inside.split(',').map(|number| number.trim().parse().ok());
        numbers.collect::<Option<Vec<u32>>>().unwrap_or_default()
    })
}

/// `65098 {65099 65100}`
fn as_path(value: &str) -> Vec<AsSegment> {
    let mut path = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (part, after) = if let Some(set) = rest.strip_prefix('{') {
            let (inside, after) = set.split_once('}').unwrap_or((set, ""));
            let numbers = inside.split([' ', ',']);
            let numbers = numbers.filter_map(|number| number.parse().ok());
            (Some(AsSegment::Set(numbers.collect())), after)
        } else {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            (word.parse().ok().map(AsSegment::As), after)
        };
        path.extend(part);
        rest = after.trim_start();
    }
    path
}

fn address(text: &str) -> Option<IpAddr> {
    text.split('%').next()?.parse().ok()
}

/// `100`, or `100/0` with the cost of the way to the next hop.
fn preference(text: &str) -> Option<u32> {
    text.split('/').next()?.parse().ok()
}

fn between(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests;
