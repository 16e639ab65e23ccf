//! What the phases decide by. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use tortie_api::k8s::is_kubernetes_policy;
use tortie_api::meta::{Condition, Metadata, Time};
use tortie_api::rule::Action;
use tortie_api::tier::BUILT_IN;
use tortie_api::{Kind, Resource, Tier};
use tortie_store::Key;
use tortie_variables as variables;

/// How many conflicts are told one by one.
const MAX_CONDITIONS: usize = 32;

/// The kinds that are copied, what others refer to first. What is said of the cluster is treated apart.
pub(super) const KINDS: [Kind; 21] = [
    Kind::Tier,
    Kind::FelixConfiguration,
    Kind::BgpConfiguration,
    Kind::KubeControllersConfiguration,
    Kind::IpPool,
    Kind::IpReservation,
    Kind::BgpPeer,
    Kind::BgpFilter,
    Kind::GlobalNetworkPolicy,
    Kind::NetworkPolicy,
    Kind::StagedGlobalNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::StagedKubernetesNetworkPolicy,
    Kind::HostEndpoint,
    Kind::GlobalNetworkSet,
    Kind::NetworkSet,
    Kind::IpamConfiguration,
    Kind::BlockAffinity,
    Kind::IpamBlock,
    Kind::IpamHandle,
    Kind::CalicoNodeStatus,
];

/// Whether a resource is kept in the group itself, and not a view of Kubernetes' own objects.
pub(super) fn is_own(key: &Key) -> bool {
    !is_kubernetes_policy(key.kind, &key.name)
}

/// Whether two resources ask for the same.
pub(super) fn is_same(one: &Resource, other: &Resource) -> bool {
    let spec = |resource: &Resource| {
        let mut resource = resource.clone();
        resource.set_read_defaults();
        *resource.metadata_mut() = Metadata::default();
        let mut value = serde_json::to_value(&resource).ok()?;
        value.as_object_mut()?.remove("status");
        Some(value)
    };
    spec(one) == spec(other)
}

/// A resource as it is to be created in the newer group.
pub(super) fn copy_of(mut resource: Resource, annotation: &str, migration: &str) -> Resource {
    let metadata = resource.metadata_mut();
    metadata.uid.clear();
    metadata.resource_version.clear();
    metadata.generation = None;
    metadata.creation_timestamp = None;
    metadata.deletion_timestamp = None;
    metadata.deletion_grace_period_seconds = None;
    metadata
        .annotations
        .insert(annotation.to_owned(), migration.to_owned());
    resource
}

/// Gives references to owners the uids that these have now. Tells whether any changed.
pub(super) fn remap_owners(metadata: &mut Metadata, uids: &BTreeMap<String, String>) -> bool {
    let mut is_changed = false;
    for owner in &mut metadata.owner_references {
        let group = owner.api_version.split('/').next().unwrap_or_default();
        if !matches!(group, "projectcalico.org" | "crd.projectcalico.org") {
            continue;
        }
        if let Some(new) = uids.get(&owner.uid).filter(|new| **new != owner.uid) {
            owner.uid.clone_from(new);
            is_changed = true;
        }
    }
    is_changed
}

/// What stands in the way of copying the tiers that always exist: the newer group allows them only as they must be.
pub(super) fn tier_drift<'a>(tiers: impl IntoIterator<Item = &'a Tier>) -> Vec<String> {
    let mut drift = Vec::new();
    for tier in tiers {
        let name = &tier.metadata.name;
        let required = BUILT_IN.iter().find(|(built_in, ..)| built_in == name);
        let Some((_, order, action)) = required else {
            continue;
        };
        if tier.spec.order != Some(*order) {
            drift.push(format!("tier \"{name}\" must have order {order}"));
        }
        if tier.spec.default_action.as_ref().unwrap_or(&Action::Deny) != action {
            let action = if *action == Action::Deny {
                "Deny"
            } else {
                "Pass"
            };
            drift.push(format!(
                "tier \"{name}\" must have defaultAction \"{action}\""
            ));
        }
    }
    drift.sort();
    drift
}

/// Conditions that name resources of the newer group that differ.
pub(super) fn conflict_conditions(conflicts: &[Key], now: Timestamp) -> Vec<Condition> {
    let condition = |reason: &str, message: String| Condition {
        last_transition_time: Some(Time(now)),
        message,
        observed_generation: None,
        reason: reason.to_owned(),
        status: "True".to_owned(),
        r#type: "Conflict".to_owned(),
    };
    let mut conditions: Vec<Condition> = conflicts
        .iter()
        .take(MAX_CONDITIONS)
        .map(|key| {
            let Key {
                kind,
                namespace,
                name,
            } = key;
            let path = if namespace.is_empty() {
                format!("{kind}/{name}")
            } else {
                format!("{kind}/{namespace}/{name}")
            };
            let message = format!("{path}: v3 resource exists with different spec");
            condition("ResourceMismatch", message)
        })
        .collect();
    match conflicts.len().saturating_sub(MAX_CONDITIONS) {
        0 => {}
        1 => conditions.push(condition(
            "ConflictsOmitted",
            "1 more conflict not shown".to_owned(),
        )),
        more => conditions.push(condition(
            "ConflictsOmitted",
            format!("{more} more conflicts not shown"),
        )),
    }
    conditions
}

/// Whether all components use the newer group; if not, what is waited for.
pub(super) fn rollout(
    node: &DaemonSet,
    fan_out: Option<&Deployment>,
    has_operator: bool,
) -> Result<(), String> {
    let node_template = node.spec.as_ref().map(|spec| &spec.template);
    let fan_out_template = fan_out.and_then(|deployment| deployment.spec.as_ref());
    let components = [
        ("calico-node", node_template),
        ("calico-typha", fan_out_template.map(|spec| &spec.template)),
    ];
    let behind: Vec<&str> = components
        .into_iter()
        .filter(|(_, template)| template.is_some_and(|template| !uses_v3(template)))
        .map(|(name, _)| name)
        .collect();
    if !behind.is_empty() {
        let names = behind.join(" and ");
        return Err(if has_operator {
            format!("Waiting for operator to configure {names} with v3 API group")
        } else {
            format!("Waiting for user to set CALICO_API_GROUP=projectcalico.org/v3 on {names}")
        });
    }
    let Some(status) = &node.status else {
        return Err("Waiting for calico-node rollout to begin".to_owned());
    };
    if status.observed_generation != node.metadata.generation {
        return Err("Waiting for calico-node rollout to begin".to_owned());
    }
    let updated = status.updated_number_scheduled.unwrap_or_default();
    let desired = status.desired_number_scheduled;
    if updated != desired {
        return Err(format!(
            "Waiting for calico-node rollout ({updated}/{desired} updated)"
        ));
    }
    match status.number_unavailable.unwrap_or_default() {
        0 => Ok(()),
        missing => Err(format!(
            "Waiting for calico-node pods to be available ({missing} unavailable)"
        )),
    }
}

fn uses_v3(template: &PodTemplateSpec) -> bool {
    let containers = template.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| {
        variable.name == variables::CALICO_API_GROUP
            && variable.value.as_deref() == Some("projectcalico.org/v3")
    })
}
