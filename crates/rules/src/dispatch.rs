//! From an interface to the chain of its endpoint.

use std::sync::Arc;

use crate::renderer::Renderer;
use crate::rule::{Action, Chain, Interface, Match, Rule, Side, Table};
use crate::{Dataplane, EndpointChain};

pub(crate) const FROM_WORKLOAD: &str = "cali-from-wl-dispatch";
pub(crate) const TO_WORKLOAD: &str = "cali-to-wl-dispatch";
pub(crate) const FROM_HOST: &str = "cali-from-host-endpoint";
pub(crate) const TO_HOST: &str = "cali-to-host-endpoint";
pub(crate) const FROM_HOST_FORWARD: &str = "cali-from-hep-forward";
pub(crate) const TO_HOST_FORWARD: &str = "cali-to-hep-forward";

/// A map of nftables from interfaces to verdicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictMap {
    /// The table whose layer it is in.
    pub table: Table,
    /// Its name, without the layer.
    pub name: &'static str,
    /// The chain that packets of an interface go to.
    pub elements: Vec<(String, Arc<str>)>,
}

/// The host's dispatch chains that a table needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostDispatch {
    /// Filter table: to and from the host, and forwarded.
    Filter,
    /// Raw table: to and from the host.
    Raw,
    /// Mangle table: from the host's interfaces, before destination NAT, and to them, after it.
    Mangle,
}

/// Interfaces of the host that have an endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostInterfaces<'a> {
    pub names: &'a [&'a str],
    /// The name that the endpoint for all other interfaces goes by, if there is one.
    pub default: Option<&'a str>,
}

/// One chain that sends packets on.
struct Way<'a> {
    table: Table,
    root: &'static str,
    side: Side,
    endpoint: EndpointChain,
    /// Rules for what is not found.
    end: &'a [Rule],
}

impl Renderer {
    /// The chains that send packets of workloads to the chains of their endpoints.
    pub fn workload_dispatch_chains(&self, interfaces: &[&str]) -> Vec<Chain> {
        let end = [Rule::always(self.deny()).note("Unknown interface")];
        let from = Way {
            table: Table::Filter,
            root: FROM_WORKLOAD,
            side: Side::Source,
            endpoint: EndpointChain::FromWorkload,
            end: &end,
        };
        let to = Way {
            root: TO_WORKLOAD,
            side: Side::Destination,
            endpoint: EndpointChain::ToWorkload,
            ..from
        };
        if self.dataplane == Dataplane::Nftables {
            return vec![map_chain(&from), map_chain(&to)];
        }
        let mut chains = self.tree(&from, interfaces);
        chains.extend(self.tree(&to, interfaces));
        chains
    }

    /// What nftables looks up in place of a tree of chains.
    pub fn workload_dispatch_maps(&self, interfaces: &[&str]) -> [VerdictMap; 2] {
        let map = |name, endpoint| {
            let elements = interfaces.iter();
            let elements = elements.map(|interface| {
                let chain = self.endpoint_chain(endpoint, interface);
                ((*interface).to_owned(), chain)
            });
            VerdictMap {
                table: Table::Filter,
                name,
                elements: elements.collect(),
            }
        };
        [
            map(FROM_WORKLOAD, EndpointChain::FromWorkload),
            map(TO_WORKLOAD, EndpointChain::ToWorkload),
        ]
    }

    /// The chains that send packets of the host to the chains of its endpoints: those that come in by an interface,
    /// and those that go out by one.
    pub fn host_dispatch_chains(
        &self,
        which: HostDispatch,
        from: HostInterfaces<'_>,
        to: HostInterfaces<'_>,
    ) -> Vec<Chain> {
        let table = match which {
            HostDispatch::Filter => Table::Filter,
            HostDispatch::Raw => Table::Raw,
            HostDispatch::Mangle => Table::Mangle,
        };
        let mut ways = vec![
            (FROM_HOST, Side::Source, EndpointChain::FromHost),
            (TO_HOST, Side::Destination, EndpointChain::ToHost),
        ];
        if which == HostDispatch::Filter {
            ways.extend([
                (
                    FROM_HOST_FORWARD,
                    Side::Source,
                    EndpointChain::FromHostForward,
                ),
                (
                    TO_HOST_FORWARD,
                    Side::Destination,
                    EndpointChain::ToHostForward,
                ),
            ]);
        }
        let mut chains = Vec::new();
        for (root, side, endpoint) in ways {
            let interfaces = match side {
                Side::Source => from,
                Side::Destination => to,
            };
            let mut end = Vec::new();
            if let Some(default) = interfaces.default {
                if side == Side::Destination && which != HostDispatch::Filter {
                    end.extend(self.skip_workloads());
                }
                let chain = self.endpoint_chain(endpoint, default);
                end.push(Rule::always(Action::Goto(chain)));
            }
            let way = Way {
                table,
                root,
                side,
                endpoint,
                end: &end,
            };
            chains.extend(self.tree(&way, interfaces.names));
        }
        chains
    }

    fn skip_workloads(&self) -> impl Iterator<Item = Rule> {
        self.workload_interfaces().map(|interface| {
            Rule::when([Match::Out(interface)], Action::Return)
                .note("Skip egress WHEP policy for traffic to local workload")
        })
    }

    /// A chain with a rule for each interface; those that share one more letter than all do get a chain of their own.
    fn tree(&self, way: &Way<'_>, interfaces: &[&str]) -> Vec<Chain> {
        let mut chains = Vec::new();
        let goto = |name: &str| {
            let chain = self.endpoint_chain(way.endpoint, name);
            Rule::when(
                [interface(way.side, Interface::named(name))],
                Action::Goto(chain),
            )
        };
        let mut root = Vec::new();
        for bin in bins(interfaces) {
            if let [name] = bin.names.as_slice() {
                root.push(goto(name));
                continue;
            }
            let child: Arc<str> = format!("{}-{}", way.root, bin.letter).into();
            let prefix = Interface::starting_with(bin.prefix);
            root.push(Rule::when(
                [interface(way.side, prefix)],
                Action::Goto(Arc::clone(&child)),
            ));
            let rules = bin.names.iter().map(|name| goto(name));
            let rules = rules.chain(way.end.iter().cloned());
            chains.push(Chain::new(way.table, child, rules.collect()));
        }
        root.extend(way.end.iter().cloned());
        chains.push(Chain::new(way.table, way.root, root));
        chains
    }
}

fn map_chain(way: &Way<'_>) -> Chain {
    let lookup = Rule {
        matches: vec![Match::InterfaceMap(way.side, way.root.into())],
        ..Rule::default()
    };
    let rules = [lookup].into_iter().chain(way.end.iter().cloned());
    Chain::new(way.table, way.root, rules.collect())
}

fn interface(side: Side, interface: Interface) -> Match {
    match side {
        Side::Source => Match::In(interface),
        Side::Destination => Match::Out(interface),
    }
}

/// Interfaces with the same first letters.
pub(crate) struct Bin<'a> {
    pub(crate) prefix: &'a str,
    /// What the prefix has and not all interfaces share.
    pub(crate) letter: &'a str,
    pub(crate) names: Vec<&'a str>,
}

/// Sorts interfaces and divides them by the first letter that not all of them share.
pub(crate) fn bins<'a>(interfaces: &[&'a str]) -> Vec<Bin<'a>> {
    let mut names = interfaces.to_vec();
    names.sort_unstable();
    names.dedup();
    let shared = match (names.first(), names.last()) {
        (Some(first), Some(last)) => common_prefix(first, last),
        _ => 0,
    };
    let mut bins: Vec<Bin<'a>> = Vec::new();
    for name in names {
        // A name that is the shared part itself is its own bin.
        let end = name[shared..]
            .chars()
            .next()
            .map_or(shared, |c| shared + c.len_utf8());
        let prefix = &name[..end];
        match bins.last_mut() {
            Some(bin) if bin.prefix == prefix => bin.names.push(name),
            _ => bins.push(Bin {
                prefix,
                letter: &name[shared..end],
                names: vec![name],
            }),
        }
    }
    bins
}

fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    a.floor_char_boundary(same)
}
