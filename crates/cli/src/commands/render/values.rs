//! What is programmed as values, for programs.

use std::collections::BTreeMap;

use serde::Serialize;
use tortie_dataplane::{Batch, SetKind};
use tortie_engine::message::Member;
use tortie_rules::{Chain, Dataplane as Kind, IpVersion, Rule, iptables, nftables};

use super::members;
use super::routes::Route;

/// All that a node has.
#[derive(Debug, Serialize)]
pub(super) struct Rendered<'a> {
    node: &'a str,
    dataplane: String,
    families: Vec<Family<'a>>,
    routes: Vec<Route>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Family<'a> {
    ip_version: u8,
    hooks: Vec<HookValue<'a>>,
    chains: Vec<ChainValue<'a>>,
    sets: Vec<SetValue<'a>>,
    maps: Vec<MapValue<'a>>,
}

/// Rules in one of the kernel's own chains.
#[derive(Debug, Serialize)]
struct HookValue<'a> {
    table: &'static str,
    chain: &'a str,
    /// Before the rules of others.
    first: Vec<RuleValue<'a>>,
    /// After the rules of others.
    last: Vec<RuleValue<'a>>,
}

#[derive(Debug, Serialize)]
struct ChainValue<'a> {
    table: &'static str,
    name: &'a str,
    rules: Vec<RuleValue<'a>>,
}

#[derive(Debug, Serialize)]
struct RuleValue<'a> {
    /// In the language of the data plane.
    text: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    comments: &'a [String],
}

#[derive(Debug, Serialize)]
struct SetValue<'a> {
    name: &'a str,
    r#type: &'static str,
    members: &'a [Member],
}

#[derive(Debug, Serialize)]
struct MapValue<'a> {
    table: &'static str,
    name: &'a str,
    /// Chains by interface.
    chains: BTreeMap<&'a str, &'a str>,
}

/// Where rules are, as far as their text depends on it.
#[derive(Clone, Copy)]
struct Place {
    kind: Kind,
    version: IpVersion,
}

impl<'a> Rendered<'a> {
    pub(super) fn new(
        node: &'a str,
        kind: Kind,
        batches: &'a [(IpVersion, Batch)],
        routes: Vec<Route>,
    ) -> Self {
        let families = batches.iter().map(|(version, batch)| {
            let place = Place {
                kind,
                version: *version,
            };
            Family::new(place, batch)
        });
        Self {
            node,
            dataplane: kind.to_string(),
            families: families.collect(),
            routes,
        }
    }
}

impl<'a> Family<'a> {
    fn new(place: Place, batch: &'a Batch) -> Self {
        let hooks = batch.hooks.iter().map(|hook| HookValue {
            table: hook.table.name(),
            chain: hook.chain,
            first: place.inserted(hook, &hook.first),
            last: place.appended(hook, &hook.last),
        });
        let chains = batch.chains.iter().map(|chain| ChainValue {
            table: chain.table.name(),
            name: &chain.name,
            rules: place.rules(chain),
        });
        let sets = batch.sets.iter().map(|set| SetValue {
            name: &set.name,
            r#type: match set.kind {
                SetKind::Addresses => "addresses",
                SetKind::Networks => "networks",
                SetKind::Ports => "ports",
            },
            members: members(&set.change),
        });
        let maps = batch.maps.iter().map(|map| {
            let chains = map.added.iter();
            MapValue {
                table: map.table.name(),
                name: map.name,
                chains: chains.map(|(from, to)| (&**from, &**to)).collect(),
            }
        });
        Self {
            ip_version: match place.version {
                IpVersion::V4 => 4,
                IpVersion::V6 => 6,
            },
            hooks: hooks.collect(),
            chains: chains.collect(),
            sets: sets.collect(),
            maps: maps.collect(),
        }
    }
}

impl Place {
    fn rules(self, chain: &Chain) -> Vec<RuleValue<'_>> {
        let texts = match self.kind {
            Kind::Iptables => bodies(iptables::lines(chain, self.version)),
            Kind::Nftables => self.nftables(chain.table, &chain.rules),
        };
        with_comments(texts, &chain.rules)
    }

    fn inserted<'a>(self, hook: &tortie_rules::Hook, rules: &'a [Rule]) -> Vec<RuleValue<'a>> {
        let texts = match self.kind {
            Kind::Iptables => bodies(iptables::inserted(hook.chain, rules, self.version)),
            Kind::Nftables => self.nftables(hook.table, rules),
        };
        with_comments(texts, rules)
    }

    fn appended<'a>(self, hook: &tortie_rules::Hook, rules: &'a [Rule]) -> Vec<RuleValue<'a>> {
        let texts = match self.kind {
            Kind::Iptables => bodies(iptables::appended(hook.chain, rules, self.version)),
            Kind::Nftables => self.nftables(hook.table, rules),
        };
        with_comments(texts, rules)
    }

    fn nftables(self, table: tortie_rules::Table, rules: &[Rule]) -> Vec<String> {
        let rules = rules.iter();
        rules
            .map(|rule| nftables::text(rule, table, self.version))
            .collect()
    }
}

fn bodies(lines: Vec<iptables::Line>) -> Vec<String> {
    lines.into_iter().map(|line| line.body).collect()
}

fn with_comments(texts: Vec<String>, rules: &[Rule]) -> Vec<RuleValue<'_>> {
    let rules = texts.into_iter().zip(rules);
    let rules = rules.map(|(text, rule)| RuleValue {
        text,
        comments: &rule.comments,
    });
    rules.collect()
}
