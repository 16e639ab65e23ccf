//! What should be said of pools. Pure.

use std::collections::BTreeMap;

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::IpPool;
use tortie_api::meta::{Condition, Time};
use tortie_api::net::{Cidr, parse_cidr};

/// Holds the deletion of a pool up.
pub(super) const FINALIZER: &str = "projectcalico.org/ippool-finalizer";

/// The condition that says whether addresses can be taken.
const ALLOCATABLE: &str = "Allocatable";

/// Whether addresses can be taken from a pool, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allocatable,
    Disabled,
    Terminating,
    Overlapping,
}

/// What is to be done about a pool's finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finalizer {
    Leave,
    Add,
    Remove,
    /// Its claims are to be given up, and once no block is left in this network, the finalizer goes.
    Drain(IpNet),
}

impl Verdict {
    fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Allocatable => ("True", "OK", "IPPool is available for IP allocation."),
            Self::Disabled => ("False", "PoolDisabled", "IPPool.Spec.Disabled is true"),
            Self::Terminating => ("False", "Terminating", "IPPool is being deleted"),
            Self::Overlapping => (
                "False",
                "CIDROverlap",
                "CIDR overlaps another pool; disabled to prevent IP allocation conflicts.",
            ),
        }
    }

    /// Notes it in the pool. Tells whether that changed anything.
    pub(super) fn note(self, pool: &mut IpPool, now: Timestamp) -> bool {
        let (status, reason, message) = self.describe();
        let conditions = &mut pool.status.conditions;
        let known = conditions
            .iter()
            .position(|known| known.r#type == ALLOCATABLE);
        if let Some(known) = known.map(|at| &conditions[at])
            && (
                known.status.as_str(),
                known.reason.as_str(),
                known.message.as_str(),
            ) == (status, reason, message)
        {
            return false;
        }
        let condition = Condition {
            last_transition_time: Some(Time(now)),
            message: message.to_owned(),
            observed_generation: None,
            reason: reason.to_owned(),
            status: status.to_owned(),
            r#type: ALLOCATABLE.to_owned(),
        };
        match known {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
        true
    }
}

/// Decides about all pools, since each can stand in the way of others. Those without a usable network are left out.
pub(super) fn verdicts<'a>(
    pools: impl IntoIterator<Item = &'a IpPool>,
) -> BTreeMap<String, Verdict> {
    let mut pools: Vec<&IpPool> = pools.into_iter().collect();
    pools.sort_by_cached_key(|pool| {
        let created = pool.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (rank(pool), created, pool.metadata.name.clone())
    });
    let mut taken: Vec<IpNet> = Vec::new();
    let mut verdicts = BTreeMap::new();
    for pool in pools {
        let Some(net) = parse_cidr(&pool.spec.cidr).map(Cidr::network) else {
            continue;
        };
        let overlaps = taken
            .iter()
            .any(|other| other.contains(&net) || net.contains(other));
        let verdict = if pool.spec.disabled {
            Verdict::Disabled
        } else if pool.metadata.deletion_timestamp.is_some() {
            // Until it is gone its addresses may be in use.
            taken.push(net);
            Verdict::Terminating
        } else if overlaps {
            Verdict::Overlapping
        } else {
            taken.push(net);
            Verdict::Allocatable
        };
        verdicts.insert(pool.metadata.name.clone(), verdict);
    }
    verdicts
}

/// Which pools come first: those in use, then those whose addresses may still be in use.
fn rank(pool: &IpPool) -> u8 {
    let conditions = pool.status.conditions.iter();
    let allocatable = conditions
        .filter(|condition| condition.r#type == ALLOCATABLE)
        .map(|condition| condition.status.as_str())
        .next();
    match (pool.metadata.deletion_timestamp.is_some(), allocatable) {
        (false, Some("True")) => 0,
        (true, _) => 1,
        (false, Some("False")) => 2,
        (false, _) => 3,
    }
}

/// What is to be done about the finalizer of a pool of which this is to be said.
pub(super) fn finalizer(pool: &IpPool, verdict: Option<Verdict>) -> Finalizer {
    let has = pool
        .metadata
        .finalizers
        .iter()
        .any(|name| name == FINALIZER);
    let net = parse_cidr(&pool.spec.cidr).map(Cidr::network);
    let is_allocatable = verdict == Some(Verdict::Allocatable);
    match (pool.metadata.deletion_timestamp.is_some(), has, net) {
        (true, true, Some(net)) => Finalizer::Drain(net),
        // Without a network there is nothing to wait for.
        (true, true, None) => Finalizer::Remove,
        (false, false, _) if is_allocatable => Finalizer::Add,
        (false, true, _) if !is_allocatable => Finalizer::Remove,
        _ => Finalizer::Leave,
    }
}
