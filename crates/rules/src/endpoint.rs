//! The chains of endpoints: connection tracking first, then tiers of policies, then profiles.

use std::sync::Arc;

use tortie_api::scalar::Protocol;
use tortie_engine::input::DefaultAction;
use tortie_engine::message::QosControls;

use crate::config::verb;
use crate::nflog::{self, Decision};
use crate::renderer::Renderer;
use crate::rule::{Action, Chain, Match, PortRange, Rule, Side, State, Table};
use crate::{Direction, EndpointChain, PolicyGroup, policy_chain_name, profile_chain_name};

/// In a group's chain, packets that are decided on leave after so many policies.
const POLICIES_BEFORE_RETURN: usize = 5;

pub(crate) const IPIP: Protocol = Protocol::Number(4);
pub(crate) const UDP: Protocol = Protocol::Number(17);

/// The policies of one tier that apply to an endpoint, neighbours with the same selector together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TierGroups {
    /// The name of the tier.
    pub name: Arc<str>,
    /// What happens at its end.
    pub default_action: DefaultAction,
    /// For packets to the endpoint.
    pub ingress: Vec<Arc<PolicyGroup>>,
    /// For packets from the endpoint.
    pub egress: Vec<Arc<PolicyGroup>>,
}

/// A workload's endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// The interface on the host.
    pub interface: &'a str,
    /// Whether it is meant to be up.
    pub admin_up: bool,
    /// Its policies.
    pub tiers: &'a [TierGroups],
    pub profiles: &'a [String],
    /// Limits on its traffic.
    pub qos: Option<&'a QosControls>,
}

/// What a chain of an endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Packets to or from the endpoint.
    Normal,
    /// Packets before connection tracking.
    Untracked,
    /// Packets before destination NAT.
    PreDnat,
    /// Packets that the host forwards.
    Forward,
}

/// All that makes one chain of an endpoint different from another.
struct Shape<'a> {
    table: Table,
    chain: EndpointChain,
    interface: &'a str,
    direction: Direction,
    purpose: Purpose,
    tiers: &'a [TierGroups],
    profiles: &'a [String],
    failsafe: Option<&'static str>,
    allow: Action,
    qos: Option<&'a QosControls>,
    from_workload: bool,
}

pub(crate) const FAILSAFE_IN: &str = "cali-failsafe-in";
pub(crate) const FAILSAFE_OUT: &str = "cali-failsafe-out";

impl Renderer {
    /// The chains of a workload's endpoint.
    pub fn workload_chains(&self, workload: Workload<'_>) -> Vec<Chain> {
        let shape = |chain, direction, from_workload| Shape {
            table: Table::Filter,
            chain,
            interface: workload.interface,
            direction,
            purpose: Purpose::Normal,
            tiers: workload.tiers,
            profiles: workload.profiles,
            failsafe: None,
            allow: self.allow(),
            qos: workload.qos,
            from_workload,
        };
        let to = shape(EndpointChain::ToWorkload, Direction::Ingress, false);
        let from = shape(EndpointChain::FromWorkload, Direction::Egress, true);
        [to, from]
            .map(|shape| {
                if workload.admin_up {
                    self.endpoint(&shape)
                } else {
                    self.disabled_endpoint(&shape)
                }
            })
            .into()
    }

    /// The chains in the filter table of a host endpoint: for the host itself, and for what it forwards.
    pub fn host_filter_chains(
        &self,
        interface: &str,
        tiers: &[TierGroups],
        forward_tiers: &[TierGroups],
        profiles: &[String],
    ) -> Vec<Chain> {
        let shape = |chain, direction, purpose, failsafe| Shape {
            table: Table::Filter,
            chain,
            interface,
            direction,
            purpose,
            tiers: match purpose {
                Purpose::Forward => forward_tiers,
                _ => tiers,
            },
            profiles,
            failsafe,
            allow: self.allow(),
            qos: None,
            from_workload: false,
        };
        let (ingress, egress) = (Direction::Ingress, Direction::Egress);
        [
            shape(
                EndpointChain::ToHost,
                egress,
                Purpose::Normal,
                Some(FAILSAFE_OUT),
            ),
            shape(
                EndpointChain::FromHost,
                ingress,
                Purpose::Normal,
                Some(FAILSAFE_IN),
            ),
            shape(EndpointChain::ToHostForward, egress, Purpose::Forward, None),
            shape(
                EndpointChain::FromHostForward,
                ingress,
                Purpose::Forward,
                None,
            ),
        ]
        .map(|shape| self.endpoint(&shape))
        .into()
    }

    /// The chain in the mangle table for packets of the host whose destination was translated.
    pub fn host_mangle_egress_chain(
        &self,
        interface: &str,
        tiers: &[TierGroups],
        profiles: &[String],
    ) -> Chain {
        self.endpoint(&Shape {
            table: Table::Mangle,
            chain: EndpointChain::ToHost,
            interface,
            direction: Direction::Egress,
            purpose: Purpose::Normal,
            tiers,
            profiles,
            failsafe: Some(FAILSAFE_OUT),
            allow: Action::Return,
            qos: None,
            from_workload: false,
        })
    }

    /// The chain in the mangle table for packets before destination NAT.
    pub fn host_mangle_ingress_chain(&self, interface: &str, tiers: &[TierGroups]) -> Chain {
        self.endpoint(&Shape {
            table: Table::Mangle,
            chain: EndpointChain::FromHost,
            interface,
            direction: Direction::Ingress,
            purpose: Purpose::PreDnat,
            tiers,
            profiles: &[],
            failsafe: Some(FAILSAFE_IN),
            allow: self.config.mangle_allow.into(),
            qos: None,
            from_workload: false,
        })
    }

    /// The chains in the raw table, for packets before connection tracking.
    pub fn host_raw_chains(&self, interface: &str, tiers: &[TierGroups]) -> Vec<Chain> {
        let shape = |chain, direction, failsafe| Shape {
            table: Table::Raw,
            chain,
            interface,
            direction,
            purpose: Purpose::Untracked,
            tiers,
            profiles: &[],
            failsafe: Some(failsafe),
            allow: Action::Accept,
            qos: None,
            from_workload: false,
        };
        [
            shape(EndpointChain::ToHost, Direction::Egress, FAILSAFE_OUT),
            shape(EndpointChain::FromHost, Direction::Ingress, FAILSAFE_IN),
        ]
        .map(|shape| self.endpoint(&shape))
        .into()
    }

    /// The chain of a group, which the chains of all its endpoints share.
    pub fn group_chain(&self, table: Table, group: &PolicyGroup) -> Chain {
        let marks = &self.config.marks;
        let decided = marks.pass | marks.accept;
        let mut rules = Vec::new();
        let enforced = group.policies.iter().filter(|id| !id.kind.is_staged());
        for (index, id) in enforced.enumerate() {
            let is_first_of_block = index % POLICIES_BEFORE_RETURN == 0;
            if is_first_of_block && index > 0 {
                rules.push(
                    Rule::when([Match::NotMark(0, decided)], Action::Return)
                        .note("Return on verdict"),
                );
            }
            let undecided = (!is_first_of_block).then_some(Match::Mark(0, decided));
            let chain = policy_chain_name(id, group.direction, self.dataplane);
            rules.push(Rule::when(undecided, Action::Jump(chain.into())));
        }
        Chain::new(table, group.chain_name(), rules)
    }

    fn disabled_endpoint(&self, shape: &Shape<'_>) -> Chain {
        let name = self.endpoint_chain(shape.chain, shape.interface);
        let rule = Rule::always(self.deny_in(shape.table).into()).note("Endpoint admin disabled");
        Chain::new(shape.table, name, vec![rule])
    }

    fn endpoint(&self, shape: &Shape<'_>) -> Chain {
        let marks = self.config.marks;
        let mut rules = Vec::new();
        self.packet_rate(shape, &mut rules);
        if shape.purpose != Purpose::Untracked {
            self.known_connections(shape, &mut rules);
        }
        connection_limit(shape, &mut rules);
        if let Some(failsafe) = shape.failsafe {
            rules.push(Rule::always(Action::Jump(failsafe.into())));
        }
        rules.push(Rule::always(Action::ClearMark(marks.accept | marks.pass)));
        if shape.from_workload {
            self.tunnelled_by_workload(&mut rules);
        }
        for tier in shape.tiers {
            self.tier(shape, tier, &mut rules);
        }
        match shape.purpose {
            Purpose::Forward if shape.tiers.is_empty() => {
                rules.push(
                    Rule::always(Action::SetMark(marks.accept))
                        .note("Allow forwarded traffic by default"),
                );
                rules
                    .push(Rule::always(Action::Return).note("Return for accepted forward traffic"));
            }
            Purpose::Normal => self.profiles(shape, &mut rules),
            _ => {}
        }
        let name = self.endpoint_chain(shape.chain, shape.interface);
        Chain::new(shape.table, name, rules)
    }

    fn known_connections(&self, shape: &Shape<'_>, rules: &mut Vec<Rule>) {
        let known = || [Match::State(State::Established)];
        if shape.allow != Action::Accept {
            let mark = Action::SetMark(self.config.marks.accept);
            rules.push(Rule::when(known(), mark));
        }
        rules.push(Rule::when(known(), shape.allow.clone()));
        if !self.config.disable_conntrack_invalid {
            let deny: Action = self.deny_in(shape.table).into();
            rules.push(Rule::when([Match::State(State::Invalid)], deny));
        }
    }

    fn tunnelled_by_workload(&self, rules: &mut Vec<Rule>) {
        let verb = verb(self.config.deny);
        if !self.config.allow_vxlan_from_workloads {
            let matches = udp_to(self.config.tunnels.vxlan_port);
            rules.push(Rule::when(matches, self.deny()).note(format!(
                "{verb} VXLAN encapped packets originating in workloads"
            )));
        }
        if !self.config.allow_ipip_from_workloads {
            rules.push(
                Rule::when([Match::Protocol(IPIP)], self.deny()).note(format!(
                    "{verb} IPinIP encapped packets originating in workloads"
                )),
            );
        }
    }

    fn tier(&self, shape: &Shape<'_>, tier: &TierGroups, rules: &mut Vec<Rule>) {
        let marks = self.config.marks;
        let groups = match shape.direction {
            Direction::Ingress => &tier.ingress,
            Direction::Egress => &tier.egress,
        };
        if groups.is_empty() {
            return;
        }
        let start = format!("Start of tier {}", tier.name);
        rules.push(Rule::always(Action::ClearMark(marks.pass)).note(start));
        let not_passed = || [Match::Mark(0, marks.pass)];
        for group in groups.iter().filter(|group| group.has_non_staged()) {
            for chain in self.chains_of_group(group) {
                rules.push(Rule::when(not_passed(), Action::Jump(chain)));
                if shape.purpose == Purpose::Untracked {
                    rules.push(Rule::when([self.accepted()], Action::NoTrack));
                }
                rules.push(
                    Rule::when([self.accepted()], Action::Return).note("Return if policy accepted"),
                );
            }
        }
        if !matches!(shape.purpose, Purpose::Normal | Purpose::Forward) {
            return;
        }
        let is_enforced = groups.iter().any(|group| group.has_non_staged());
        let drops = is_enforced && tier.default_action != DefaultAction::Pass;
        if self.config.flow_logs {
            let decision = if drops {
                Decision::Deny
            } else {
                Decision::Pass
            };
            let prefix = nflog::of_tier(decision, shape.direction, &tier.name);
            let report = Action::Nflog(nflog::group(shape.direction), prefix);
            rules.push(Rule::when(not_passed(), report));
        }
        if drops {
            let deny = self.deny_in(shape.table);
            rules.push(Rule::when(not_passed(), deny.into()).note(format!(
                "End of tier {}. {} if no policies passed packet",
                tier.name,
                verb(deny)
            )));
        }
    }

    fn chains_of_group(&self, group: &PolicyGroup) -> Vec<Arc<str>> {
        if !group.should_be_inlined() {
            return vec![group.chain_name().into()];
        }
        let enforced = group.policies.iter().filter(|id| !id.kind.is_staged());
        enforced
            .map(|id| policy_chain_name(id, group.direction, self.dataplane).into())
            .collect()
    }

    fn profiles(&self, shape: &Shape<'_>, rules: &mut Vec<Rule>) {
        for profile in shape.profiles {
            let chain = profile_chain_name(profile, shape.direction, self.dataplane);
            rules.push(Rule::always(Action::Jump(chain.into())));
            rules.push(
                Rule::when([self.accepted()], Action::Return).note("Return if profile accepted"),
            );
        }
        if self.config.flow_logs {
            let prefix = nflog::of_no_profile(shape.direction);
            let report = Action::Nflog(nflog::group(shape.direction), prefix);
            rules.push(Rule::always(report));
        }
        let deny = self.deny_in(shape.table);
        let note = format!("{} if no profiles matched", verb(deny));
        rules.push(Rule::always(deny.into()).note(note));
    }

    fn packet_rate(&self, shape: &Shape<'_>, rules: &mut Vec<Rule>) {
        let Some(qos) = shape.qos else { return };
        let (rate, burst) = match shape.direction {
            Direction::Ingress => (qos.ingress_packet_rate, qos.ingress_packet_burst),
            Direction::Egress => (qos.egress_packet_rate, qos.egress_packet_burst),
        };
        if rate <= 0 {
            return;
        }
        let mark = self.config.marks.scratch0;
        let direction = shape.direction;
        let limit = Action::LimitPackets {
            rate: clamp(rate).min(MAX_PACKET_LIMIT),
            burst: clamp(burst.max(1)).min(MAX_PACKET_LIMIT),
            mark,
        };
        let over = format!("Drop packets over {direction} packet rate limit");
        if self.is_nftables() {
            rules.push(Rule::always(limit).note(over));
            return;
        }
        let clear = || {
            Rule::always(Action::ClearMark(mark))
                .note(format!("Clear {direction} packet rate limit mark"))
        };
        rules.push(clear());
        rules.push(
            Rule::always(limit).note(format!("Mark packets within {direction} packet rate limit")),
        );
        let unmarked = [Match::NotMark(mark, mark)];
        rules.push(Rule::when(unmarked, Action::Drop).note(over));
        rules.push(clear());
    }
}

/// The largest rate in a second, and the largest burst, that iptables takes. Annotations of pods have the same bound.
const MAX_PACKET_LIMIT: u32 = 10_000;

fn connection_limit(shape: &Shape<'_>, rules: &mut Vec<Rule>) {
    let Some(qos) = shape.qos else { return };
    let direction = shape.direction;
    let limit = match direction {
        Direction::Ingress => qos.ingress_max_connections,
        Direction::Egress => qos.egress_max_connections,
    };
    if limit > 0 {
        rules.push(
            Rule::always(Action::LimitConnections(clamp(limit))).note(format!(
                "Reject connections over {direction} connection limit"
            )),
        );
    }
}

fn clamp(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

/// UDP packets to a port.
pub(crate) fn udp_to(port: u16) -> [Match; 2] {
    [
        Match::Protocol(UDP),
        Match::Ports(Side::Destination, one_port(port)),
    ]
}

pub(crate) fn one_port(port: u16) -> Arc<[PortRange]> {
    [PortRange {
        first: port,
        last: port,
    }]
    .into()
}
