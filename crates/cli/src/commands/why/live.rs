//! `--live`: what the kernel of this machine has for a packet, beside what the model says.
//!
//! What the node must have is computed as `node verify` does it, and compared with the kernel. For what decided in the
//! model, the rules of the kernel are found by chain and place, with what they have counted.

mod counters;
mod found;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tortie_agent::{LocalAgent, host};
use tortie_api::names::PolicyId;
use tortie_dataplane::{Batch, Dataplane, Drift};
use tortie_engine::Message;
use tortie_engine::message::{Policy, Profile, Rule as EngineRule, SetId};
use tortie_engine::verdict::{By, EndpointKey, Point, Side, Step};
use tortie_kernel::namespace::is_root;
use tortie_rules::{
    Chain, Dataplane as Kind, Direction, EndpointChain, IpVersion, Renderer, Rule, SetLayout,
    Table, endpoint_chain_name, iptables, nftables, policy_chain_name, profile_chain_name,
};
use tortie_why::{Judged, Reply, World};

use crate::args::{Global, Why};
use crate::commands::node::enforced;
use counters::Counters;
use found::{Hit, KernelRule};

pub(super) use found::Found;

/// Where packets from workloads to their own node are decided about.
const WORKLOAD_TO_HOST: &str = "cali-wl-to-host";

/// The ways from interfaces to the chains of their endpoints.
const DISPATCH: [&str; 2] = ["wl-dispatch", "host-endpoint"];

/// What the kernel of this machine has.
pub(super) struct Live {
    node: String,
    kind: Kind,
    rules: Arc<tortie_rules::Config>,
    wanted: Vec<(IpVersion, Batch)>,
    drift: Vec<Drift>,
    policies: HashMap<Arc<PolicyId>, Arc<Policy>>,
    profiles: HashMap<Arc<str>, Arc<Profile>>,
    /// Interfaces of workloads, by the name of the workload.
    interfaces: HashMap<String, String>,
    counters: Counters,
}

/// Says who may ask, before anything else is done.
pub(super) fn check() -> Result<()> {
    if is_root() {
        return Ok(());
    }
    bail!(
        "--live reads the rules of this machine's kernel, which is for root alone; try `sudo tortie why …`"
    )
}

impl Live {
    /// Reads what the kernel should have, and compares.
    pub(super) async fn read(args: &Why, global: &Global) -> Result<Self> {
        let Some(agent) = LocalAgent::find()? else {
            bail!(
                "no agent runs on this machine, so that nobody keeps its kernel's rules up to date; without --live the \
                 answer is what they should do"
            );
        };
        let settings = agent.settings()?;
        let status = LocalAgent::find()?.map(LocalAgent::status).transpose()?;
        let is_legacy = status.is_some_and(|s| s.iptables_backend.as_deref() == Some("legacy"));
        let node = settings.node.clone();
        let updates = enforced::load(&args.filename, args.recursive, global).await?;
        let enforced = enforced::compute(&updates, &node, settings.into(), &host::choose)?;
        let drivers = host::drivers(&enforced.config, enforced.kind)?;
        let mut dataplane = Dataplane::new(&enforced.rules, enforced.kind, drivers, &node);
        dataplane.set_interfaces(enforced::interfaces(&enforced.config)?);
        let (mut policies, mut profiles) = (HashMap::new(), HashMap::new());
        let mut interfaces = HashMap::new();
        for message in enforced.messages {
            match &message {
                Message::ActivePolicyUpdate(id, policy) => {
                    policies.insert(Arc::clone(id), Arc::clone(policy));
                }
                Message::ActiveProfileUpdate(name, profile) => {
                    profiles.insert(Arc::clone(name), Arc::clone(profile));
                }
                Message::WorkloadEndpointUpdate(id, endpoint) => {
                    interfaces.insert(id.workload_id.clone(), endpoint.name.clone());
                }
                _ => {}
            }
            dataplane.on_message(message);
        }
        let drift = dataplane.compare().context("the kernel's rules")?;
        Ok(Self {
            wanted: dataplane.everything(),
            counters: Counters::open(enforced.kind, is_legacy)?,
            kind: enforced.kind,
            rules: enforced.rules,
            node,
            drift,
            policies,
            profiles,
            interfaces,
        })
    }

    /// What the kernel has for an answer; an error if this machine has no part in it.
    pub(super) fn find(&mut self, world: &World, reply: &Reply) -> Result<Found> {
        let nodes: BTreeSet<&str> = reply
            .judged()
            .iter()
            .flat_map(|judged| &judged.connection.hops)
            .map(|hop| &*hop.node)
            .collect();
        if !nodes.contains(&*self.node) {
            let nodes: Vec<&str> = nodes.into_iter().collect();
            let where_it_goes = match nodes[..] {
                [] => "passes no node that is known".to_owned(),
                _ => format!("passes {}", nodes.join(" and ")),
            };
            bail!(
                "this machine is node {}, and the packet {where_it_goes}: ask there",
                self.node
            );
        }
        let mut hits = Vec::new();
        let mut names = BTreeSet::new();
        for judged in reply.judged() {
            self.look(world, judged, &mut hits, &mut names)?;
        }
        let concerns = |drift: &&Drift| {
            let mut dispatch = DISPATCH.iter();
            dispatch.any(|name| drift.object.contains(name))
                || names.iter().any(|name| drift.object.ends_with(&**name))
        };
        let here: Vec<&Drift> = self.drift.iter().filter(concerns).collect();
        let differences = here
            .iter()
            .map(|drift| format!("{}: {}", drift.object, drift.what));
        Ok(Found {
            node: self.node.clone(),
            dataplane: self.kind.to_string(),
            agrees: here.is_empty(),
            differences: differences.collect(),
            elsewhere: self.drift.len() - here.len(),
            hits,
        })
    }

    /// Finds the rules that decide about a connection, and the names of all chains and sets that have a part in it.
    fn look(
        &mut self,
        world: &World,
        judged: &Judged,
        hits: &mut Vec<Hit>,
        names: &mut BTreeSet<String>,
    ) -> Result<()> {
        let verdict = &judged.verdict;
        let ends = [
            ("egress", &verdict.egress, Direction::Egress),
            ("ingress", &verdict.ingress, Direction::Ingress),
        ];
        let stages = verdict.on_the_way.iter().map(|stage| {
            let direction = if stage.is_inbound {
                Direction::Ingress
            } else {
                Direction::Egress
            };
            ("on the way", &stage.side, direction)
        });
        let flow = &judged.connection.flow;
        let version = if flow.destination.address.is_ipv4() {
            IpVersion::V4
        } else {
            IpVersion::V6
        };
        for (place, side, direction) in ends.into_iter().chain(stages) {
            if !self.is_here(side) {
                continue;
            }
            self.note_names(side, direction, names);
            let Some((chain, range)) = self.deciding(world, side, direction, version) else {
                continue;
            };
            names.insert(chain.name.to_string());
            let rules = self.counters.of(&chain, version)?;
            let texts = self.texts(&chain, version);
            let is_same = rules.len() == chain.rules.len();
            let rules = range.map(|number| KernelRule {
                number,
                text: texts.get(number).cloned().unwrap_or_default(),
                packets: rules.get(number).copied().flatten().filter(|_| is_same),
            });
            hits.push(Hit {
                to: judged.connection.to.clone(),
                place,
                chain: self.chain_name(&chain),
                rules: rules.collect(),
            });
        }
        Ok(())
    }

    fn is_here(&self, side: &Side) -> bool {
        match (&side.endpoint, &side.by) {
            (_, By::EndpointToHost { node, .. }) => *node == self.node,
            (Some(endpoint), _) => endpoint.node() == self.node,
            (None, _) => false,
        }
    }

    /// The chains and sets of all that was asked.
    fn note_names(&self, side: &Side, direction: Direction, names: &mut BTreeSet<String>) {
        names.extend(self.endpoint_chain(side, direction));
        for step in &side.trace {
            match step {
                Step::Tier(tier) => {
                    for policy in tier.policies.iter().filter(|policy| !policy.staged) {
                        names.insert(policy_chain_name(&policy.policy, direction, self.kind));
                        let message = self.policies.get(&policy.policy);
                        let rules = message.map(|policy| match direction {
                            Direction::Ingress => &policy.inbound_rules,
                            Direction::Egress => &policy.outbound_rules,
                        });
                        let sets = rules.into_iter().flatten().flat_map(EngineRule::sets);
                        names.extend(sets.flat_map(|set| self.set_names(set)));
                    }
                }
                Step::Profile(profile) => {
                    names.insert(profile_chain_name(&profile.profile, direction, self.kind));
                }
            }
        }
    }

    /// The names that a set has in the kernel.
    fn set_names(&self, set: &SetId) -> Vec<String> {
        let of = |version| {
            let name = self.renderer(version).set_name(set.as_str());
            [name.to_string(), tortie_rules::networks_set_name(&name)]
        };
        [IpVersion::V4, IpVersion::V6]
            .into_iter()
            .flat_map(of)
            .collect()
    }

    /// The chain that decides, as the kernel should have it, and which of its rules.
    fn deciding(
        &self,
        world: &World,
        side: &Side,
        direction: Direction,
        version: IpVersion,
    ) -> Option<(Chain, std::ops::Range<usize>)> {
        let noted = |chain: &Chain, note: &str| {
            let mut rules = chain.rules.iter();
            let found = rules.position(|rule| rule.comments.iter().any(|c| c.contains(note)))?;
            Some(found..found + 1)
        };
        let layouts = |set: &SetId| SetLayout {
            networks: world.engine.has_networks(set, version == IpVersion::V4),
        };
        let renderer = self.renderer(version);
        match &side.by {
            By::Rule {
                policy,
                rule,
                point,
                ..
            } => {
                let name = policy_chain_name(policy, direction, self.kind);
                let chain = self.chain(table_of(*point), &name, version)?;
                let message = self.policies.get(policy)?;
                let range = place(
                    &chain,
                    *rule,
                    rules_of(message, direction).len(),
                    |number| {
                        let mut one = Policy::clone(message);
                        keep_one(&mut one.inbound_rules, number);
                        keep_one(&mut one.outbound_rules, number);
                        let chains = renderer.policy_chains(chain.table, policy, &one, &layouts);
                        rules_named(chains, &name)
                    },
                )?;
                Some((chain, range))
            }
            By::Profile { profile, rule, .. } => {
                let name = profile_chain_name(profile, direction, self.kind);
                let chain = self.chain(Table::Filter, &name, version)?;
                let message = self.profiles.get(profile)?;
                let count = match direction {
                    Direction::Ingress => message.inbound_rules.len(),
                    Direction::Egress => message.outbound_rules.len(),
                };
                let range = place(&chain, *rule, count, |number| {
                    let mut one = Profile::clone(message);
                    keep_one(&mut one.inbound_rules, number);
                    keep_one(&mut one.outbound_rules, number);
                    let chains = renderer.profile_chains(Table::Filter, profile, &one, &layouts);
                    rules_named(chains, &name)
                })?;
                Some((chain, range))
            }
            By::EndOfTier { tier, .. } => {
                let name = self.endpoint_chain(side, direction)?;
                let chain = self.chain(Table::Filter, &name, version)?;
                let range = noted(&chain, &format!("End of tier {tier}."))?;
                Some((chain, range))
            }
            By::NoProfile { .. } => {
                let name = self.endpoint_chain(side, direction)?;
                let chain = self.chain(Table::Filter, &name, version)?;
                let range = noted(&chain, "if no profiles matched")?;
                Some((chain, range))
            }
            By::EndpointToHost { .. } => {
                let chain = self.chain(Table::Filter, WORKLOAD_TO_HOST, version)?;
                let range = noted(&chain, "DefaultEndpointToHostAction")?;
                Some((chain, range))
            }
            By::Denial { .. }
            | By::Failsafe { .. }
            | By::NoEndpoint { .. }
            | By::OwnNode { .. } => None,
        }
    }

    /// The chain of a workload's endpoint. Which interface a host endpoint has is known to the agent alone.
    fn endpoint_chain(&self, side: &Side, direction: Direction) -> Option<String> {
        let Some(EndpointKey::Workload(key)) = &side.endpoint else {
            return None;
        };
        let interface = self.interfaces.get(&key.workload)?;
        let chain = match direction {
            Direction::Ingress => EndpointChain::ToWorkload,
            Direction::Egress => EndpointChain::FromWorkload,
        };
        Some(endpoint_chain_name(chain, interface, self.kind))
    }

    fn chain(&self, table: Table, name: &str, version: IpVersion) -> Option<Chain> {
        let (_, batch) = self.wanted.iter().find(|(own, _)| *own == version)?;
        let mut chains = batch.chains.iter();
        let found = chains.find(|chain| chain.table == table && *chain.name == *name);
        found.cloned()
    }

    fn renderer(&self, version: IpVersion) -> Renderer {
        Renderer::new(Arc::clone(&self.rules), self.kind, version)
    }

    fn texts(&self, chain: &Chain, version: IpVersion) -> Vec<String> {
        match self.kind {
            Kind::Nftables => {
                let lines = nftables::lines(chain, version).into_iter();
                lines.map(|line| line.rule).collect()
            }
            Kind::Iptables => {
                let lines = iptables::lines(chain, version).into_iter();
                lines.map(|line| line.body).collect()
            }
        }
    }

    fn chain_name(&self, chain: &Chain) -> String {
        match self.kind {
            Kind::Nftables => nftables::chain_name(chain.table, &chain.name),
            Kind::Iptables => format!("{} of table {}", chain.name, chain.table.name()),
        }
    }
}

fn table_of(point: Point) -> Table {
    match point {
        Point::Normal | Point::Forward => Table::Filter,
        Point::Untracked => Table::Raw,
        Point::PreDnat => Table::Mangle,
    }
}

fn rules_of(policy: &Policy, direction: Direction) -> &[EngineRule] {
    match direction {
        Direction::Ingress => &policy.inbound_rules,
        Direction::Egress => &policy.outbound_rules,
    }
}

fn keep_one<T: Clone>(rules: &mut Vec<T>, number: usize) {
    *rules = rules.get(number).cloned().into_iter().collect();
}

fn rules_named(chains: Vec<Chain>, name: &str) -> Vec<Rule> {
    let mut chains = chains.into_iter();
    let chain = chains.find(|chain| *chain.name == *name);
    chain.map_or(Vec::new(), |chain| chain.rules)
}

/// Where a rule of a policy is in its chain: after what all rules before it became. None if it is not there as it would be
/// by itself.
fn place(
    chain: &Chain,
    rule: usize,
    count: usize,
    render: impl Fn(usize) -> Vec<Rule>,
) -> Option<std::ops::Range<usize>> {
    let lengths: Vec<usize> = (0..count).map(|number| render(number).len()).collect();
    // What is left over stands before all rules.
    let first = chain.rules.len().checked_sub(lengths.iter().sum())?;
    let start = first + lengths.iter().take(rule).sum::<usize>();
    let wanted = render(rule);
    let end = start + wanted.len();
    (chain.rules.get(start..end)? == wanted).then_some(start..end)
}
