//! Policies and endpoints as the engine relates them, on all nodes.

use std::collections::BTreeMap;

use anyhow::Result;
use tortie_api::Resource;
use tortie_api::names::PolicyId;
use tortie_client::connect::Connection;
use tortie_convert::Converter;
use tortie_engine::input::{Entity, NetworkSet, Rule};
use tortie_engine::verdict::{AppliedPolicy, EndpointKey};
use tortie_engine::{Config, Engine, Scope, Update};
use tortie_selector::Selector;

use crate::commands::why::load;

/// What the datastore tells agents, and what the engine makes of it.
pub(super) struct World {
    engine: Engine,
    updates: Vec<Update>,
}

impl World {
    pub(super) async fn load(connection: &Connection) -> Result<Self> {
        let updates = load::updates_of_connection(connection).await?;
        let mut engine = Engine::new(Config {
            scope: Scope::AllNodes,
            ..Config::for_node("")
        });
        for update in &updates {
            engine.on_update(update);
        }
        engine.on_in_sync();
        engine.flush();
        Ok(Self { engine, updates })
    }

    /// The endpoints that a policy applies to.
    pub(super) fn endpoints_of(&self, policy: &PolicyId) -> Vec<EndpointKey> {
        self.engine.endpoints_of(policy).unwrap_or_default()
    }

    /// The policies that apply to an endpoint, in order.
    pub(super) fn policies_of(&self, endpoint: &Resource) -> Vec<AppliedPolicy> {
        let updates = Converter::new().set(endpoint).updates;
        let key = updates.into_iter().find_map(|update| match update {
            Update::WorkloadEndpoint(key, Some(_)) => Some(EndpointKey::Workload(key)),
            Update::HostEndpoint(key, Some(_)) => Some(EndpointKey::Host(key)),
            _ => None,
        });
        let policies = key.and_then(|key| self.engine.policies_of(&key));
        policies.unwrap_or_default()
    }

    /// The endpoints that have a profile.
    pub(super) fn endpoints_with(&self, profile: &str) -> Vec<EndpointKey> {
        let has = |profiles: &[String]| profiles.iter().any(|one| one == profile);
        let endpoints = self.updates.iter().filter_map(|update| match update {
            Update::WorkloadEndpoint(key, Some(endpoint)) if has(&endpoint.profiles) => {
                Some(EndpointKey::Workload(key.clone()))
            }
            Update::HostEndpoint(key, Some(endpoint)) if has(&endpoint.profiles) => {
                Some(EndpointKey::Host(key.clone()))
            }
            _ => None,
        });
        let mut endpoints: Vec<EndpointKey> = endpoints.collect();
        endpoints.sort_unstable();
        endpoints
    }

    /// The ends of rules that select a set of networks.
    pub(super) fn rules_selecting(&self, set: &Resource) -> Vec<String> {
        let updates = Converter::new().set(set).updates;
        let set = updates.into_iter().find_map(|update| match update {
            Update::NetworkSet(_, set) => set,
            _ => None,
        });
        let Some(set) = set else {
            return Vec::new();
        };
        let labels = self.labels_of(&set);
        let mut found = Vec::new();
        for update in &self.updates {
            let (owner, inbound, outbound) = match update {
                Update::Policy(id, Some(policy)) => {
                    (policy_name(id), &policy.inbound, &policy.outbound)
                }
                Update::Profile(name, Some(profile)) => (
                    format!("Profile({name})"),
                    &profile.inbound,
                    &profile.outbound,
                ),
                _ => continue,
            };
            for (direction, rules) in [("ingress", inbound), ("egress", outbound)] {
                let ends = ends_selecting(rules, &labels);
                found
                    .extend(ends.map(|(index, end)| format!("{owner} {direction}[{index}].{end}")));
            }
        }
        found
    }

    /// A set's own labels, and those that it inherits.
    fn labels_of(&self, set: &NetworkSet) -> BTreeMap<String, String> {
        let inherited = self.updates.iter().filter_map(|update| match update {
            Update::Profile(name, Some(profile)) if set.profiles.contains(name) => {
                Some(&profile.labels)
            }
            _ => None,
        });
        let all = inherited.chain([&set.labels]).flatten();
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// `NetworkPolicy(shop/db)`
pub(super) fn policy_name(id: &PolicyId) -> String {
    let separator = if id.namespace.is_empty() { "" } else { "/" };
    format!("{}({}{separator}{})", id.kind.name(), id.namespace, id.name)
}

fn ends_selecting(
    rules: &[Rule],
    labels: &BTreeMap<String, String>,
) -> impl Iterator<Item = (usize, &'static str)> {
    let selects = move |entity: &Entity| {
        let selector = Some(&entity.selector).filter(|text| !text.is_empty());
        let selector = selector.and_then(|text| Selector::parse(text).ok());
        selector.is_some_and(|selector| selector.matches(labels))
    };
    let rules = rules.iter().enumerate();
    rules.flat_map(move |(index, rule)| {
        let ends = [("source", &rule.source), ("destination", &rule.destination)];
        let selecting = ends.into_iter().filter(|(_, entity)| selects(entity));
        let selecting: Vec<_> = selecting.map(|(end, _)| (index, end)).collect();
        selecting
    })
}
