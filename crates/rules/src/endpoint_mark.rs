//! Marks that tell which endpoint a packet came from, for services done by IPVS.
//!
//! Packets that IPVS forwards go through INPUT and OUTPUT, where the interface that they came in by is forgotten. A
//! mark keeps it.

use std::collections::BTreeMap;
use std::collections::HashMap;

use crate::EndpointChain;
use crate::config::Marks;
use crate::dispatch::bins;
use crate::renderer::Renderer;
use crate::rule::{Action, Chain, Interface, Match, Rule, Table};

pub(crate) const SET_MARK: &str = "cali-set-endpoint-mark";
pub(crate) const FROM_MARK: &str = "cali-from-endpoint-mark";

/// The marks of endpoints, by interface. A mark stays the same while its endpoint is there.
#[derive(Debug, Clone)]
pub struct EndpointMarks {
    mask: u32,
    positions: HashMap<String, u32>,
    taken: BTreeMap<u32, String>,
}

impl EndpointMarks {
    /// No endpoint has a mark yet.
    pub fn new(marks: &Marks) -> Self {
        Self {
            mask: marks.endpoint,
            positions: HashMap::new(),
            // The first position means that the packet is from none of our endpoints.
            taken: BTreeMap::from([(1, String::new())]),
        }
    }

    /// The mark of an endpoint, a new one if it has none yet; `None` if there are no more.
    pub fn mark_of(&mut self, interface: &str) -> Option<u32> {
        if let Some(position) = self.positions.get(interface) {
            return Some(self.spread(*position));
        }
        let positions = 1_u64 << self.mask.count_ones();
        let start = u64::from(fnv(interface));
        let free = (0..positions)
            .map(|step| u32::try_from((start + step) % positions).unwrap_or(0))
            .find(|position| *position != 0 && !self.taken.contains_key(position))?;
        self.positions.insert(interface.to_owned(), free);
        self.taken.insert(free, interface.to_owned());
        Some(self.spread(free))
    }

    /// The mark is free again.
    pub fn release(&mut self, interface: &str) {
        if let Some(position) = self.positions.remove(interface) {
            self.taken.remove(&position);
        }
    }

    /// The bits of a number in the places of the mask.
    fn spread(&self, number: u32) -> u32 {
        let places = (0..32).filter(|bit| self.mask & (1 << bit) != 0);
        let bits = places.enumerate();
        bits.fold(0, |mark, (index, place)| {
            mark | ((number >> index) & 1) << place
        })
    }
}

fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    })
}

impl Renderer {
    /// The chain that gives packets of an endpoint its mark.
    pub fn endpoint_mark_chain(&self, interface: &str, marks: &mut EndpointMarks) -> Chain {
        let mask = self.config.marks.endpoint;
        let own = marks.mark_of(interface);
        let rules = own.map(|mark| Rule::always(Action::SetMaskedMark(mark, mask)));
        let name = self.endpoint_chain(EndpointChain::SetEndpointMark, interface);
        Chain::new(Table::Filter, name, Vec::from_iter(rules))
    }

    /// The chains that give packets their marks, and that send them on by them.
    pub fn endpoint_mark_dispatch_chains(
        &self,
        workloads: &[&str],
        hosts: &[&str],
        marks: &mut EndpointMarks,
    ) -> Vec<Chain> {
        let mut chains = Vec::new();
        let mut root = Vec::new();
        let goto = |name: &str| {
            let chain = self.endpoint_chain(EndpointChain::SetEndpointMark, name);
            Rule::when([Match::In(Interface::named(name))], Action::Goto(chain))
        };
        for (infix, names) in [("wep", workloads), ("hep", hosts)] {
            for bin in bins(names) {
                if let [name] = bin.names.as_slice() {
                    root.push(goto(name));
                    continue;
                }
                let child = format!("{SET_MARK}-{infix}-{}", bin.letter);
                let prefix = Interface::starting_with(bin.prefix);
                root.push(Rule::when(
                    [Match::In(prefix)],
                    Action::Goto(child.as_str().into()),
                ));
                let rules = bin.names.iter().map(|name| goto(name)).collect();
                chains.push(Chain::new(Table::Filter, child, rules));
            }
        }
        root.extend(self.workload_interfaces().map(|interface| {
            Rule::when([Match::In(interface)], self.deny()).note("Unknown endpoint")
        }));
        let mask = self.config.marks.endpoint;
        root.push(
            Rule::always(Action::SetMaskedMark(self.config.marks.no_endpoint(), mask))
                .note("Non-Cali endpoint mark"),
        );
        let mut from = Vec::new();
        for (chain, names) in [
            (EndpointChain::FromWorkload, workloads),
            (EndpointChain::FromHostForward, hosts),
        ] {
            for name in bins(names).into_iter().flat_map(|bin| bin.names) {
                if let Some(mark) = marks.mark_of(name) {
                    let chain = self.endpoint_chain(chain, name);
                    from.push(Rule::when([Match::Mark(mark, mask)], Action::Goto(chain)));
                }
            }
        }
        from.push(Rule::always(self.deny()).note("Unknown interface"));
        chains.push(Chain::new(Table::Filter, SET_MARK, root));
        chains.push(Chain::new(Table::Filter, FROM_MARK, from));
        chains
    }
}
