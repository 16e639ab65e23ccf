//! What should become of a packet: the engine's verdicts, asked in the order in which a packet meets policies.
//!
//! The engine answers for one endpoint at each end of a connection. A packet through a node meets more: policies of host
//! endpoints before connection tracking, before destination NAT and where packets are forwarded. The first two are part
//! of a verdict on the host endpoint. For the third, a second engine knows only the policies that apply there. The product
//! answers for the whole way by itself ([`Judge::pass`]), and must say the same.

use tortie_api::felix_configuration::FelixConfigurationSpec;
use tortie_api::{FelixConfiguration, Resource};
use tortie_config::EndpointToHostAction;
use tortie_engine::verdict::{By, EndpointKey, Flow, Judge, Outcome, Point, Side};

use crate::differential::packets::Case;
use crate::differential::places::{HostEndpoints, NODE, Place, Places};
use crate::differential::world::{Cluster, Object, World};

/// Where policies meet packets.
pub(crate) const STAGES: [&str; 8] = [
    BEFORE_TRACKING,
    BEFORE_NAT,
    FORWARDED_IN,
    OUT_OF_SOURCE,
    INTO_DESTINATION,
    FORWARDED_OUT,
    TO_HOST,
    FROM_HOST,
];
const FROM_HOST: &str = "from the host";
const TO_HOST: &str = "to the host";
const FORWARDED_IN: &str = "forwarded in";
const FORWARDED_OUT: &str = "forwarded out";
const OUT_OF_SOURCE: &str = "out of the source";
const INTO_DESTINATION: &str = "into the destination";
const BEFORE_TRACKING: &str = "before tracking";
const BEFORE_NAT: &str = "before NAT";

/// Two engines that know all nodes.
pub(crate) struct Oracle {
    all: Cluster,
    forwarding: Cluster,
}

/// Answers about one world.
pub(crate) struct Answers<'a> {
    all: Judge<'a>,
    forwarding: Judge<'a>,
    hosts: &'a HostEndpoints,
    endpoint_to_host: EndpointToHostAction,
    uplink_has_pre_dnat: bool,
    any_has_pre_dnat: bool,
}

/// What policies say about a packet, in the order in which it meets them.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) steps: Vec<(&'static str, Side)>,
    /// Whether the host takes no packets from its pods.
    is_dropped: bool,
}

/// What has happened to a packet before routing.
#[derive(PartialEq, Eq)]
enum Early {
    Undecided,
    Accepted,
    Denied,
}

impl Oracle {
    pub(crate) fn new() -> Self {
        Self {
            all: Cluster::new(),
            forwarding: Cluster::new(),
        }
    }

    pub(crate) fn become_world(&mut self, world: &World, seed: u64) {
        self.all.become_world(world, seed);
        self.forwarding.become_world(&only_forwarding(world), seed);
    }

    pub(crate) fn answers<'a>(&'a self, places: &'a Places) -> Answers<'a> {
        let hosts = &places.host_endpoints;
        let has_pre_dnat = |key: &Option<EndpointKey>| {
            let key = key.as_ref();
            let policies = key.and_then(|key| self.all.engine.policies_of(key));
            policies.is_some_and(|all| all.iter().any(|policy| policy.point == Point::PreDnat))
        };
        Answers {
            all: self.all.engine.judge(),
            forwarding: self.forwarding.engine.judge(),
            uplink_has_pre_dnat: has_pre_dnat(&hosts.uplink),
            any_has_pre_dnat: has_pre_dnat(&hosts.any),
            hosts,
            endpoint_to_host: places.endpoint_to_host,
        }
    }

    /// What the product says, which knows the way of packets by itself.
    pub(crate) fn product(&self) -> Judge<'_> {
        self.all.engine.judge()
    }
}

/// The world without all policies that do not apply to forwarded packets, and without failsafe ports, which are not
/// asked about there.
fn only_forwarding(world: &World) -> World {
    let objects = world.objects.values();
    let kept = objects.filter(|object| match object {
        Object::Resource(Resource::GlobalNetworkPolicy(policy)) => {
            let spec = &policy.spec;
            spec.apply_on_forward && !spec.do_not_track && !spec.pre_dnat
        }
        Object::Resource(
            Resource::NetworkPolicy(_)
            | Resource::StagedNetworkPolicy(_)
            | Resource::StagedGlobalNetworkPolicy(_)
            | Resource::StagedKubernetesNetworkPolicy(_),
        )
        | Object::KubePolicy(_)
        | Object::ClusterPolicy(_) => false,
        _ => true,
    });
    let no_ports = FelixConfigurationSpec {
        failsafe_inbound_host_ports: Some(Vec::new()),
        failsafe_outbound_host_ports: Some(Vec::new()),
        ..FelixConfigurationSpec::default()
    };
    let no_ports = FelixConfiguration::new("", &format!("node.{NODE}"), no_ports);
    World::new(kept.cloned().chain([Object::Resource(no_ports.into())]))
}

impl Answer {
    pub(crate) fn is_allowed(&self) -> bool {
        let mut steps = self.steps.iter();
        !self.is_dropped && steps.all(|(_, side)| side.verdict == Outcome::Allow)
    }
}

impl Answers<'_> {
    pub(crate) fn answer(&mut self, case: &Case) -> Answer {
        let flow = case.flow();
        let mut answer = Answer::default();
        if case.from == Place::Host {
            // A node reaches its own pods whatever their policy.
            if let Some(key) = self
                .hosts
                .of_interface(&case.to)
                .filter(|_| case.to == Place::Outside)
            {
                let side = egress(&mut self.all, &flow, key);
                answer.steps.push((FROM_HOST, side));
            }
            return answer;
        }
        let early = self.before_routing(case, &flow, &mut answer);
        if early == Early::Denied {
            return answer;
        }
        if case.to == Place::Host && case.from == Place::Outside {
            let key = self.hosts.of_interface(&case.from);
            if let Some(key) = key.filter(|_| early == Early::Undecided) {
                let side = ingress(&mut self.all, &flow, key);
                answer.steps.push((TO_HOST, side));
            }
            return answer;
        }
        let is_forwarded = case.to != Place::Host;
        answer.is_dropped = !is_forwarded && self.endpoint_to_host == EndpointToHostAction::Drop;
        if is_forwarded && early == Early::Undecided {
            let key = self.hosts.of_interface(&case.from);
            let side = key.map(|key| ingress(&mut self.forwarding, &flow, key));
            answer
                .steps
                .extend(side.filter(decides).map(|side| (FORWARDED_IN, side)));
        }
        let key = |place: &Place| match place {
            Place::Pod(pod) => Some(pod.key.clone()),
            Place::Host | Place::Outside => None,
        };
        let mut between = flow.clone();
        between.source.endpoint = key(&case.from);
        between.destination.endpoint = key(&case.to);
        let verdict = self.all.verdict(&between);
        answer.steps.push((OUT_OF_SOURCE, verdict.egress));
        answer.steps.push((INTO_DESTINATION, verdict.ingress));
        if is_forwarded {
            let key = self.hosts.of_interface(&case.to);
            let side = key.map(|key| egress(&mut self.forwarding, &flow, key));
            answer
                .steps
                .extend(side.filter(decides).map(|side| (FORWARDED_OUT, side)));
        }
        answer
    }

    /// Policies before connection tracking are for one interface; those before NAT may be for all.
    fn before_routing(&mut self, case: &Case, flow: &Flow, answer: &mut Answer) -> Early {
        let is_outside = case.from == Place::Outside;
        let uplink = self.hosts.uplink.as_ref().filter(|_| is_outside);
        let any = self.hosts.any.as_ref().filter(|_| self.any_has_pre_dnat);
        let before_nat = uplink.filter(|_| self.uplink_has_pre_dnat).or(any);
        let stages = [
            (BEFORE_TRACKING, uplink, Point::Untracked),
            (BEFORE_NAT, before_nat, Point::PreDnat),
        ];
        for (stage, key, point) in stages {
            let Some(key) = key else { continue };
            let side = ingress(&mut self.all, flow, key);
            if point_of(&side.by) != Some(point) {
                continue;
            }
            let outcome = side.verdict;
            answer.steps.push((stage, side));
            return match outcome {
                Outcome::Allow => Early::Accepted,
                Outcome::Deny => Early::Denied,
            };
        }
        Early::Undecided
    }
}

fn ingress(judge: &mut Judge<'_>, flow: &Flow, key: &EndpointKey) -> Side {
    let mut flow = flow.clone();
    flow.destination.endpoint = Some(key.clone());
    judge.verdict(&flow).ingress
}

fn egress(judge: &mut Judge<'_>, flow: &Flow, key: &EndpointKey) -> Side {
    let mut flow = flow.clone();
    flow.source.endpoint = Some(key.clone());
    judge.verdict(&flow).egress
}

/// The point of a host at which it was decided, if that was by policy.
fn point_of(by: &By) -> Option<Point> {
    match by {
        By::Rule { point, .. } | By::EndOfTier { point, .. } => Some(*point),
        _ => None,
    }
}

/// Whether policies decide. Profiles have no say about forwarded packets.
fn decides(side: &Side) -> bool {
    point_of(&side.by).is_some()
}
