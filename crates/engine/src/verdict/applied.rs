//! Which policies apply to an endpoint, and which endpoints a policy applies to.

use tortie_api::names::PolicyId;

use super::{EndpointKey, Point};
use crate::Engine;
use crate::locals::{Local, LocalEndpoint};
use crate::message::SetId;
use crate::policies::{APPLY_ON_FORWARD, EGRESS, INGRESS, PRE_DNAT, UNTRACKED};

/// A policy that applies to an endpoint.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a policy"
)]
pub struct AppliedPolicy {
    /// The tier that it is in.
    pub tier: String,
    pub id: PolicyId,
    /// Its place in the tier; last where not given.
    pub order: Option<f64>,
    /// Whether it governs packets to the endpoint.
    pub ingress: bool,
    /// Whether it governs packets from the endpoint.
    pub egress: bool,
    /// Whether it only reports what it would do.
    pub staged: bool,
    /// At which point it applies.
    pub point: Point,
    /// Whether it applies to packets that a host forwards, too.
    pub on_forward: bool,
}

impl Engine {
    /// The policies that apply to a local endpoint, in the order in which they are asked.
    pub fn policies_of(&self, key: &EndpointKey) -> Option<Vec<AppliedPolicy>> {
        let local = self.local(key)?;
        let is_host = matches!(local.endpoint, LocalEndpoint::Host(..));
        let ordered = self
            .policies
            .ordered(self.policies.classes.selectors(local.class));
        let applied = ordered.into_iter().map(|idx| {
            let policy = self.policies.get(idx);
            let has = |flag: u8| policy.flags & flag != 0;
            let id = policy.id();
            let point = match (has(UNTRACKED), has(PRE_DNAT)) {
                (true, _) => Point::Untracked,
                (_, true) => Point::PreDnat,
                _ => Point::Normal,
            };
            AppliedPolicy {
                tier: self.policies.tier_name(policy.tier).to_owned(),
                order: Some(policy.order).filter(|order| order.is_finite()),
                ingress: has(INGRESS),
                egress: has(EGRESS) && point != Point::PreDnat,
                staged: id.kind.is_staged(),
                point,
                on_forward: has(APPLY_ON_FORWARD),
                id,
            }
        });
        // Workloads have only normal policies.
        Some(
            applied
                .filter(|policy| is_host || policy.point == Point::Normal)
                .collect(),
        )
    }

    /// The local endpoints that a policy applies to, in order; none if there is no such policy.
    pub fn endpoints_of(&self, id: &PolicyId) -> Option<Vec<EndpointKey>> {
        let policy = self.policies.get(self.policies.find(id)?);
        let classes = self
            .policies
            .selectors
            .owner(policy.selector)
            .classes
            .iter();
        let mut endpoints: Vec<EndpointKey> = classes
            .flat_map(|class| self.policies.classes.endpoints(class))
            .map(|local| self.locals.get(local).endpoint.key())
            .collect();
        endpoints.sort_unstable();
        Some(endpoints)
    }

    /// Whether some member of a set, of an IP version, is more than a single address.
    pub fn has_networks(&self, set: &SetId, is_ipv4: bool) -> bool {
        let set = self.sets.find(set);
        set.is_some_and(|set| self.sets.members(set).has_networks(is_ipv4))
    }

    pub(crate) fn local(&self, key: &EndpointKey) -> Option<&Local> {
        let item = match key {
            EndpointKey::Workload(key) => self.find_workload(key),
            EndpointKey::Host(key) => self.find_host(key),
        }?;
        self.locals.find(self.items.get(item).local)
    }
}
