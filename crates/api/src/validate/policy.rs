//! Policies of all kinds, and tiers.

use k8s_openapi::api::networking::v1 as networking;

use super::rule::{self, Place};
use crate::is_default;
use crate::k8s;
use crate::kinds::global_network_policy::GlobalNetworkPolicySpec;
use crate::kinds::network_policy::NetworkPolicySpec;
use crate::kinds::rule::{PolicyType, Rule, StagedAction};
use crate::kinds::staged_global_network_policy::StagedGlobalNetworkPolicySpec;
use crate::kinds::staged_kubernetes_network_policy::StagedKubernetesNetworkPolicySpec;
use crate::kinds::staged_network_policy::StagedNetworkPolicySpec;
use crate::kinds::{StagedKubernetesNetworkPolicy, Tier, tier};
use crate::problem::{Path, Problems};

/// What the policy kinds have in common.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they mirror fields of the resources"
)]
pub(super) struct Policy<'a> {
    ingress: &'a [Rule],
    egress: &'a [Rule],
    types: &'a [PolicyType],
    selectors: [(&'static str, &'a str); 3],
    is_namespaced: bool,
    do_not_track: bool,
    pre_dnat: bool,
    apply_on_forward: bool,
}

macro_rules! view {
    ($spec:ty, namespaced) => {
        impl<'a> From<&'a $spec> for Policy<'a> {
            fn from(spec: &'a $spec) -> Self {
                Self {
                    ingress: &spec.ingress,
                    egress: &spec.egress,
                    types: &spec.types,
                    selectors: [
                        ("selector", &spec.selector),
                        ("serviceAccountSelector", &spec.service_account_selector),
                        ("namespaceSelector", ""),
                    ],
                    is_namespaced: true,
                    do_not_track: false,
                    pre_dnat: false,
                    apply_on_forward: false,
                }
            }
        }
    };
    ($spec:ty, global) => {
        impl<'a> From<&'a $spec> for Policy<'a> {
            fn from(spec: &'a $spec) -> Self {
                Self {
                    ingress: &spec.ingress,
                    egress: &spec.egress,
                    types: &spec.types,
                    selectors: [
                        ("selector", &spec.selector),
                        ("serviceAccountSelector", &spec.service_account_selector),
                        ("namespaceSelector", &spec.namespace_selector),
                    ],
                    is_namespaced: false,
                    do_not_track: spec.do_not_track,
                    pre_dnat: spec.pre_dnat,
                    apply_on_forward: spec.apply_on_forward,
                }
            }
        }
    };
}

view!(NetworkPolicySpec, namespaced);
view!(GlobalNetworkPolicySpec, global);

pub(super) fn check(at: &Path<'_>, policy: &Policy<'_>, problems: &mut Problems) {
    for (index, direction) in policy.types.iter().enumerate() {
        if policy.types[..index].contains(direction) {
            problems.add(&at.field("types"), direction, "must not be given twice");
        }
    }
    for (name, selector) in policy.selectors {
        if selector.contains("global(") {
            problems.add(
                &at.field(name),
                selector,
                "global() may only be used in the namespaceSelector of a rule",
            );
        }
    }
    for (name, rules) in [("ingress", policy.ingress), ("egress", policy.egress)] {
        let at = at.field(name);
        let place = Place {
            is_egress: name == "egress",
            is_namespaced: policy.is_namespaced,
        };
        rule::check_all(&at, rules, problems);
        rule::check_place(&at, rules, place, problems);
    }
    check_host_modes(at, policy, problems);
}

/// Checks `preDNAT`, `doNotTrack` and `applyOnForward` against each other and the rules.
fn check_host_modes(at: &Path<'_>, policy: &Policy<'_>, problems: &mut Problems) {
    if policy.pre_dnat && policy.do_not_track {
        problems.add(
            &at.field("preDNAT"),
            true,
            "must not be set together with doNotTrack",
        );
    }
    if policy.pre_dnat && !policy.egress.is_empty() {
        problems.add(
            &at.field("preDNAT"),
            true,
            "must not be set in a policy with egress rules",
        );
    }
    if policy.pre_dnat && policy.types.contains(&PolicyType::Egress) {
        problems.add(
            &at.field("preDNAT"),
            true,
            "must not be set in a policy with type Egress",
        );
    }
    if !policy.apply_on_forward && (policy.pre_dnat || policy.do_not_track) {
        let mode = if policy.pre_dnat {
            "preDNAT"
        } else {
            "doNotTrack"
        };
        problems.add_missing(
            &at.field("applyOnForward"),
            format!("must be true, because {mode} is true"),
        );
    }
}

pub(super) fn check_staged(at: &Path<'_>, spec: &StagedNetworkPolicySpec, problems: &mut Problems) {
    if spec.staged_action == Some(StagedAction::Delete) {
        let empty = NetworkPolicySpec {
            tier: spec.policy.tier.clone(),
            ..Default::default()
        };
        check_deletes_only(at, spec.policy == empty, problems);
    } else {
        check(at, &(&spec.policy).into(), problems);
    }
}

pub(super) fn check_staged_global(
    at: &Path<'_>,
    spec: &StagedGlobalNetworkPolicySpec,
    problems: &mut Problems,
) {
    if spec.staged_action == Some(StagedAction::Delete) {
        let empty = GlobalNetworkPolicySpec {
            tier: spec.policy.tier.clone(),
            ..Default::default()
        };
        check_deletes_only(at, spec.policy == empty, problems);
    } else {
        check(at, &(&spec.policy).into(), problems);
    }
}

pub(super) fn check_staged_kubernetes(
    at: &Path<'_>,
    policy: &StagedKubernetesNetworkPolicy,
    problems: &mut Problems,
) {
    let StagedKubernetesNetworkPolicySpec {
        staged_action,
        pod_selector,
        ingress,
        egress,
        policy_types,
    } = &policy.spec;
    if *staged_action == Some(StagedAction::Delete) {
        let is_empty = is_default(pod_selector)
            && ingress.is_empty()
            && egress.is_empty()
            && policy_types.is_empty();
        check_deletes_only(at, is_empty, problems);
        return;
    }
    let enforced = networking::NetworkPolicy {
        spec: Some(networking::NetworkPolicySpec {
            pod_selector: Some(pod_selector.clone()),
            ingress: Some(ingress.clone()),
            egress: Some(egress.clone()),
            policy_types: Some(policy_types.clone()),
        }),
        ..networking::NetworkPolicy::default()
    };
    let converted = k8s::network_policy(&enforced);
    // Without metadata only rules can fail to convert, and those have the same paths in both kinds.
    problems.extend(converted.problems);
    if let Some(policy) = converted.resource {
        check(at, &(&policy.spec).into(), problems);
    }
}

fn check_deletes_only(at: &Path<'_>, is_empty: bool, problems: &mut Problems) {
    if !is_empty {
        problems.add_missing(
            at,
            "must have no fields besides tier and stagedAction, because stagedAction is Delete",
        );
    }
}

pub(super) fn check_tier(at: &Path<'_>, tier: &Tier, problems: &mut Problems) {
    let Some((name, order, action)) = tier::BUILT_IN
        .into_iter()
        .find(|(name, ..)| *name == tier.metadata.name)
    else {
        return;
    };
    #[expect(
        clippy::float_cmp,
        reason = "the order is stored as given, never computed"
    )]
    if tier.spec.order.is_some_and(|given| given != order) {
        problems.add(
            &at.field("order"),
            tier.spec.order,
            format!("must be {order} for tier {name}"),
        );
    }
    if tier
        .spec
        .default_action
        .is_some_and(|given| given != action)
    {
        let rule = format!("must be {action:?} for tier {name}");
        problems.add(&at.field("defaultAction"), tier.spec.default_action, rule);
    }
}
