//! Policies of all kinds, tiers and profiles.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy as KubePolicy, NetworkPolicySpec as KubePolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tortie_api::global_network_policy::GlobalNetworkPolicySpec;
use tortie_api::names::{KUBERNETES_CLUSTER_POLICY, KUBERNETES_POLICY};
use tortie_api::network_policy::{NetworkPolicySpec, PolicyPerformanceHint};
use tortie_api::profile::ProfileSpec;
use tortie_api::rule::{Action, StagedAction};
use tortie_api::staged_global_network_policy::StagedGlobalNetworkPolicySpec;
use tortie_api::staged_network_policy::StagedNetworkPolicySpec;
use tortie_api::tier::TierSpec;
use tortie_api::{Kind, Path, Problems, StagedKubernetesNetworkPolicy, k8s};

use super::rule::rules;
use super::selector;
use tortie_engine::input::{DefaultAction, Policy, PolicyId, PolicyKind, Profile, Rule, Tier};

/// The tier of policies that name none.
const DEFAULT_TIER: &str = "default";

/// What a policy became.
#[derive(Debug, Default)]
pub(super) struct ConvertedPolicy {
    /// Nothing if it is not known whom the policy concerns.
    pub(super) policy: Option<Policy>,
    /// Whether its rules could not be read, so that it denies in its place.
    pub(super) is_stand_in: bool,
}

/// The identity of a policy; `None` if the kind is not one of policies, or a part of the name is missing.
///
/// A policy that was made from one of Kubernetes' own goes under that one's kind and name.
pub fn policy_id(kind: Kind, namespace: &str, name: &str) -> Option<PolicyId> {
    let (kind, name) = match kind {
        Kind::NetworkPolicy => match name.strip_prefix(KUBERNETES_POLICY) {
            Some(name) => (PolicyKind::KubernetesNetworkPolicy, name),
            None => (PolicyKind::NetworkPolicy, name),
        },
        Kind::GlobalNetworkPolicy => match name.strip_prefix(KUBERNETES_CLUSTER_POLICY) {
            Some(name) => (PolicyKind::KubernetesClusterNetworkPolicy, name),
            None => (PolicyKind::GlobalNetworkPolicy, name),
        },
        Kind::StagedNetworkPolicy => (PolicyKind::StagedNetworkPolicy, name),
        Kind::StagedGlobalNetworkPolicy => (PolicyKind::StagedGlobalNetworkPolicy, name),
        Kind::StagedKubernetesNetworkPolicy => (PolicyKind::StagedKubernetesNetworkPolicy, name),
        _ => return None,
    };
    let is_global = matches!(
        kind,
        PolicyKind::GlobalNetworkPolicy
            | PolicyKind::KubernetesClusterNetworkPolicy
            | PolicyKind::StagedGlobalNetworkPolicy
    );
    let namespace = if is_global { "" } else { namespace };
    if name.is_empty() || (namespace.is_empty() && !is_global) {
        return None;
    }
    Some(PolicyId {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// Converts a policy of a namespace.
pub(super) fn network_policy(
    namespace: &str,
    spec: &NetworkPolicySpec,
    problems: &mut Problems,
) -> ConvertedPolicy {
    let root = Path::ROOT;
    let at = root.field("spec");
    let selector = selector::of_policy(
        &at,
        namespace,
        &spec.selector,
        &spec.service_account_selector,
        problems,
    );
    let inbound = rules(&at.field("ingress"), &spec.ingress, namespace, problems);
    let outbound = rules(&at.field("egress"), &spec.egress, namespace, problems);
    let Some(selector) = selector else {
        return ConvertedPolicy::default();
    };
    let (inbound, outbound, is_stand_in) = readable(inbound, outbound);
    let policy = Policy {
        tier: tier_or_default(&spec.tier),
        order: spec.order,
        selector,
        types: spec.types.clone(),
        inbound,
        outbound,
        untracked: false,
        pre_dnat: false,
        apply_on_forward: false,
        assume_needed_on_every_node: is_needed_everywhere(&spec.performance_hints),
    };
    ConvertedPolicy {
        policy: Some(policy),
        is_stand_in,
    }
}

/// The rules of both directions, and whether they stand in for some that cannot be read: a rule left out would change
/// what the ones after it decide, so that the policy then denies.
fn readable(
    inbound: Option<Vec<Rule>>,
    outbound: Option<Vec<Rule>>,
) -> (Vec<Rule>, Vec<Rule>, bool) {
    if let (Some(inbound), Some(outbound)) = (inbound, outbound) {
        return (inbound, outbound, false);
    }
    let deny = || vec![Rule::default()];
    (deny(), deny(), true)
}

/// Converts a policy of the cluster.
pub(super) fn global_network_policy(
    spec: &GlobalNetworkPolicySpec,
    problems: &mut Problems,
) -> ConvertedPolicy {
    let root = Path::ROOT;
    let at = root.field("spec");
    let selector = selector::of_global_policy(
        &at,
        &spec.selector,
        &spec.namespace_selector,
        &spec.service_account_selector,
        problems,
    );
    let inbound = rules(&at.field("ingress"), &spec.ingress, "", problems);
    let outbound = rules(&at.field("egress"), &spec.egress, "", problems);
    let Some(selector) = selector else {
        return ConvertedPolicy::default();
    };
    let (inbound, outbound, is_stand_in) = readable(inbound, outbound);
    let policy = Policy {
        tier: tier_or_default(&spec.tier),
        order: spec.order,
        selector,
        types: spec.types.clone(),
        inbound,
        outbound,
        untracked: spec.do_not_track,
        pre_dnat: spec.pre_dnat,
        apply_on_forward: spec.apply_on_forward,
        assume_needed_on_every_node: is_needed_everywhere(&spec.performance_hints),
    };
    ConvertedPolicy {
        policy: Some(policy),
        is_stand_in,
    }
}

/// Converts the trial of a policy of a namespace; the trial of a deletion is nothing to compute.
pub(super) fn staged_network_policy(
    namespace: &str,
    spec: &StagedNetworkPolicySpec,
    problems: &mut Problems,
) -> Option<Policy> {
    if spec.staged_action == Some(StagedAction::Delete) {
        return None;
    }
    trial(network_policy(namespace, &spec.policy, problems))
}

/// Nothing is enforced of a trial, so that nothing stands in for it.
fn trial(converted: ConvertedPolicy) -> Option<Policy> {
    converted.policy.filter(|_| !converted.is_stand_in)
}

/// Converts the trial of a policy of the cluster; the trial of a deletion is nothing to compute.
pub(super) fn staged_global_network_policy(
    spec: &StagedGlobalNetworkPolicySpec,
    problems: &mut Problems,
) -> Option<Policy> {
    if spec.staged_action == Some(StagedAction::Delete) {
        return None;
    }
    trial(global_network_policy(&spec.policy, problems))
}

/// Converts the trial of a Kubernetes policy; the trial of a deletion is nothing to compute. Unlike a policy that is
/// enforced, it is not computed in part.
pub(super) fn staged_kubernetes_network_policy(
    staged: &StagedKubernetesNetworkPolicy,
    problems: &mut Problems,
) -> Option<Policy> {
    let spec = &staged.spec;
    if spec.staged_action == Some(StagedAction::Delete) {
        return None;
    }
    let namespace = &staged.metadata.namespace;
    let converted = k8s::network_policy(&KubePolicy {
        metadata: ObjectMeta {
            name: Some(staged.metadata.name.clone()),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(KubePolicySpec {
            pod_selector: Some(spec.pod_selector.clone()),
            ingress: Some(spec.ingress.clone()),
            egress: Some(spec.egress.clone()),
            policy_types: Some(spec.policy_types.clone()),
        }),
    });
    if !converted.problems.is_empty() {
        problems.extend(converted.problems);
        return None;
    }
    trial(network_policy(
        namespace,
        &converted.resource?.spec,
        problems,
    ))
}

/// Converts a tier.
pub(super) fn tier(spec: &TierSpec) -> Tier {
    Tier {
        order: spec.order,
        default_action: match spec.default_action {
            Some(Action::Pass) => DefaultAction::Pass,
            _ => DefaultAction::Deny,
        },
    }
}

/// Converts a profile.
pub(super) fn profile(spec: &ProfileSpec, problems: &mut Problems) -> Option<Profile> {
    let root = Path::ROOT;
    let at = root.field("spec");
    let inbound = rules(&at.field("ingress"), &spec.ingress, "", problems);
    let outbound = rules(&at.field("egress"), &spec.egress, "", problems);
    Some(Profile {
        labels: spec.labels_to_apply.clone(),
        inbound: inbound?,
        outbound: outbound?,
    })
}

fn tier_or_default(tier: &str) -> String {
    let tier = if tier.is_empty() { DEFAULT_TIER } else { tier };
    tier.to_owned()
}

fn is_needed_everywhere(hints: &[PolicyPerformanceHint]) -> bool {
    hints.contains(&PolicyPerformanceHint::AssumeNeededOnEveryNode)
}
