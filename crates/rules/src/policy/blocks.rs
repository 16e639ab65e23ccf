//! Rules for iptables, whose conditions cannot hold alternatives.
//!
//! A list of networks, or of ports that is too long for one condition, becomes a block of rules that note in the mark
//! whether one of the alternatives holds. `scratch0` means that all blocks so far hold, `scratch1` that the current one
//! does. The last rule then asks for `scratch0` and for all that fits into it.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::scalar::Protocol;
use tortie_engine::message::{Rule as EngineRule, SetId};

use crate::renderer::Renderer;
use crate::rule::{Action, Match, PortRange, Rule, Side};
use crate::{Direction, IpVersion};

use super::verdict::Owner;
use super::{Nets, rule_side};

/// A condition on ports has room for so many; a range takes two.
const PORT_SLOTS: usize = 15;

/// Ports in lists that fit into one condition each.
pub(crate) fn split_ports(ports: &[PortRange]) -> Vec<Arc<[PortRange]>> {
    let mut lists = Vec::new();
    let mut list = Vec::new();
    let mut free = PORT_SLOTS;
    for port in ports {
        let needed = if port.first == port.last { 1 } else { 2 };
        if needed > free {
            lists.push(std::mem::take(&mut list).into());
            free = PORT_SLOTS;
        }
        list.push(*port);
        free -= needed;
    }
    if !list.is_empty() {
        lists.push(list.into());
    }
    lists
}

/// The ports of one end, as they go into the last rule or into a block.
struct Ports<'a> {
    lists: Vec<Arc<[PortRange]>>,
    named: &'a [SetId],
}

impl Ports<'_> {
    fn need_a_block(&self) -> bool {
        self.lists.len() + self.named.len() > 1
    }
}

impl Renderer {
    pub(super) fn blocks(
        &self,
        rule: &EngineRule,
        nets: &Nets,
        owner: &Owner<'_>,
        direction: Direction,
        index: usize,
        out: &mut Vec<Rule>,
    ) {
        let Some((protocol, not_protocol)) = self.protocols(rule) else {
            return;
        };
        let ports = Side::BOTH.map(|side| {
            let conditions = rule_side(rule, side);
            Ports {
                lists: split_ports(&conditions.ports),
                named: &conditions.named_port_sets,
            }
        });
        let mut blocks = Blocks::new(self, out);
        for side in Side::BOTH {
            let ports = &ports[side as usize];
            if ports.need_a_block() {
                blocks.ports(side, rule.protocol.as_ref(), ports);
            }
        }
        for side in Side::BOTH {
            let any = &nets.side(side).any;
            if any.len() > 1 {
                blocks.any_net(side, any);
            }
        }
        // A rule has room for one network of each end, wanted or not.
        let none_need_a_block = Side::BOTH.map(|side| {
            let nets = nets.side(side);
            let wanted = usize::from(nets.any.len() == 1);
            !nets.none.is_empty() && wanted + nets.none.len() > 1
        });
        for side in Side::BOTH {
            if none_need_a_block[side as usize] {
                blocks.no_net(side, &nets.side(side).none);
            }
        }
        let used = blocks.used;
        let mut matches = Vec::new();
        matches.extend(protocol.map(Match::Protocol));
        for side in Side::BOTH {
            self.wanted_side(side, rule, nets, &ports[side as usize], &mut matches);
        }
        matches.extend(rule.icmp.map(|icmp| Match::Icmp(icmp.r#type, icmp.code)));
        matches.extend(not_protocol.map(Match::NotProtocol));
        for side in Side::BOTH {
            if !none_need_a_block[side as usize] {
                let none = nets.side(side).none.iter();
                matches.extend(none.map(|net| Match::NotNet(side, *net)));
            }
            self.negated_side(side, rule, &mut matches);
        }
        let not_icmp = rule
            .not_icmp
            .map(|icmp| Match::NotIcmp(icmp.r#type, icmp.code));
        matches.extend(not_icmp);
        if used {
            let bit = self.config.marks.scratch0;
            matches.push(Match::Mark(bit, bit));
        }
        self.marked(matches, rule, owner, direction, index, out);
    }

    /// The protocol that a rule is for, or else the one that it is not for: iptables takes one condition, and one on ICMP
    /// only with the protocol. `None` if no packet can match.
    fn protocols(&self, rule: &EngineRule) -> Option<(Option<Protocol>, Option<Protocol>)> {
        let is_icmp = rule.icmp.is_some() || rule.not_icmp.is_some();
        let icmp = match self.ip_version {
            IpVersion::V4 => 1,
            IpVersion::V6 => 58,
        };
        let wanted = match &rule.protocol {
            Some(other) if is_icmp && other.number() != Some(icmp) => return None,
            None if is_icmp => Some(Protocol::Number(icmp)),
            protocol => protocol.clone(),
        };
        match (wanted, &rule.not_protocol) {
            (Some(wanted), Some(unwanted)) if wanted.number() == unwanted.number() => None,
            (Some(wanted), _) => Some((Some(wanted), None)),
            (None, unwanted) => Some((None, unwanted.clone())),
        }
    }

    fn wanted_side(
        &self,
        side: Side,
        rule: &EngineRule,
        nets: &Nets,
        ports: &Ports<'_>,
        matches: &mut Vec<Match>,
    ) {
        let conditions = rule_side(rule, side);
        if let [net] = nets.side(side).any.as_slice() {
            matches.push(Match::Net(side, *net));
        }
        let sets = conditions.sets.iter();
        matches.extend(sets.map(|set| Match::Set(side, self.set_of(set))));
        let services = conditions.port_sets.iter();
        matches.extend(services.map(|set| Match::PortSet(side, self.set_of(set))));
        if !ports.need_a_block() {
            let lists = ports.lists.iter();
            matches.extend(lists.map(|list| Match::Ports(side, Arc::clone(list))));
            let named = ports.named.iter();
            matches.extend(named.map(|set| Match::PortSet(side, self.set_of(set))));
        }
    }
}

/// Writes blocks.
struct Blocks<'a> {
    renderer: &'a Renderer,
    out: &'a mut Vec<Rule>,
    used: bool,
    /// One block of alternatives is written; `scratch0` is its result.
    has_alternatives: bool,
    /// `scratch1` may be left over from the block before.
    scratch1_is_used: bool,
}

impl<'a> Blocks<'a> {
    fn new(renderer: &'a Renderer, out: &'a mut Vec<Rule>) -> Self {
        Self {
            renderer,
            out,
            used: false,
            has_alternatives: false,
            scratch1_is_used: false,
        }
    }

    fn ports(&mut self, side: Side, protocol: Option<&Protocol>, ports: &Ports<'_>) {
        let lists = ports.lists.iter().map(|list| {
            let protocol = protocol.cloned().map(Match::Protocol).into_iter();
            let with_ports = protocol.chain([Match::Ports(side, Arc::clone(list))]);
            with_ports.collect()
        });
        let renderer = self.renderer;
        let named = ports.named.iter();
        let named = named.map(|set| vec![Match::PortSet(side, renderer.set_of(set))]);
        self.alternatives(lists.chain(named));
    }

    fn any_net(&mut self, side: Side, nets: &[IpNet]) {
        self.alternatives(nets.iter().map(|net| vec![Match::Net(side, *net)]));
    }

    fn alternatives(&mut self, alternatives: impl Iterator<Item = Vec<Match>>) {
        let marks = self.renderer.config.marks;
        self.start(0);
        if !self.has_alternatives {
            self.has_alternatives = true;
            let rules = alternatives.map(|m| Rule::when(m, Action::SetMark(marks.scratch0)));
            self.out.extend(rules);
            return;
        }
        if self.scratch1_is_used {
            self.out
                .push(Rule::always(Action::ClearMark(marks.scratch1)));
        }
        self.scratch1_is_used = true;
        let rules = alternatives.map(|m| Rule::when(m, Action::SetMark(marks.scratch1)));
        self.out.extend(rules);
        self.out.push(Rule::when(
            [Match::Mark(0, marks.scratch1)],
            Action::ClearMark(marks.scratch0),
        ));
    }

    fn no_net(&mut self, side: Side, nets: &[IpNet]) {
        let bit = self.renderer.config.marks.scratch0;
        self.start(bit);
        let rules = nets.iter();
        let rules = rules.map(|net| Rule::when([Match::Net(side, *net)], Action::ClearMark(bit)));
        self.out.extend(rules);
    }

    fn start(&mut self, value: u32) {
        if self.used {
            return;
        }
        self.used = true;
        let marks = self.renderer.config.marks;
        let both = marks.scratch0 | marks.scratch1;
        self.out
            .push(Rule::always(Action::SetMaskedMark(value, both)));
    }
}
