//! Calico's policies, enforced and staged.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::global_network_policy::GlobalNetworkPolicySpec;
use tortie_api::network_policy::NetworkPolicySpec;
use tortie_api::rule::{PolicyType, StagedAction};
use tortie_api::staged_global_network_policy::StagedGlobalNetworkPolicySpec;
use tortie_api::staged_kubernetes_network_policy::StagedKubernetesNetworkPolicySpec;
use tortie_api::staged_network_policy::StagedNetworkPolicySpec;
use tortie_api::{
    GlobalNetworkPolicy, NetworkPolicy, StagedGlobalNetworkPolicy, StagedKubernetesNetworkPolicy,
    StagedNetworkPolicy,
};

use super::words::{NAMESPACES, POLICIES, account_selector, namespace_selector, selector};
use super::{kubernetes, maybe, resource, rule, some};
use crate::verdict::world::Object;

pub(super) fn network_policy() -> impl Strategy<Value = Object> {
    let parts = (some(&NAMESPACES), some(&POLICIES), spec());
    parts.prop_map(|(namespace, name, spec)| resource(NetworkPolicy::new(&namespace, &name, spec)))
}

pub(super) fn global_network_policy() -> impl Strategy<Value = Object> {
    (some(&POLICIES), global_spec())
        .prop_map(|(name, spec)| resource(GlobalNetworkPolicy::new("", &name, spec)))
}

/// All kinds of staged policies; those that stage a deletion say nothing else.
pub(super) fn staged() -> impl Strategy<Value = Object> {
    let names = || (some(&NAMESPACES), some(&POLICIES), staged_action());
    let namespaced = (names(), spec()).prop_map(|((namespace, name, staged_action), policy)| {
        let spec = StagedNetworkPolicySpec {
            staged_action,
            policy,
        };
        resource(StagedNetworkPolicy::new(&namespace, &name, spec))
    });
    let global = (names(), global_spec()).prop_map(|((_, name, staged_action), policy)| {
        let spec = StagedGlobalNetworkPolicySpec {
            staged_action,
            policy,
        };
        resource(StagedGlobalNetworkPolicy::new("", &name, spec))
    });
    let of_kubernetes =
        (names(), kubernetes::spec()).prop_map(|((namespace, name, staged_action), spec)| {
            let spec = StagedKubernetesNetworkPolicySpec {
                staged_action,
                pod_selector: spec.pod_selector.unwrap_or_default(),
                ingress: spec.ingress.unwrap_or_default(),
                egress: spec.egress.unwrap_or_default(),
                policy_types: spec.policy_types.unwrap_or_default(),
            };
            resource(StagedKubernetesNetworkPolicy::new(&namespace, &name, spec))
        });
    let deletion = names().prop_map(|(namespace, name, _)| {
        let spec = StagedNetworkPolicySpec {
            staged_action: Some(StagedAction::Delete),
            ..StagedNetworkPolicySpec::default()
        };
        resource(StagedNetworkPolicy::new(&namespace, &name, spec))
    });
    prop_oneof![3 => namespaced, 3 => global, 2 => of_kubernetes, 1 => deletion]
}

fn staged_action() -> impl Strategy<Value = Option<StagedAction>> {
    select(vec![
        None,
        Some(StagedAction::Set),
        Some(StagedAction::Learn),
        Some(StagedAction::Ignore),
    ])
}

fn tier() -> impl Strategy<Value = String> {
    some(&["", "default", "default", "t1", "t1", "t2", "t3"])
}

fn order() -> impl Strategy<Value = Option<f64>> {
    select(vec![
        None,
        Some(-1.0),
        Some(1.0),
        Some(1.5),
        Some(1000.0),
        Some(1000.0),
    ])
}

fn types() -> impl Strategy<Value = Vec<PolicyType>> {
    select(vec![
        vec![],
        vec![PolicyType::Ingress],
        vec![PolicyType::Egress],
        vec![PolicyType::Ingress, PolicyType::Egress],
        vec![PolicyType::Egress, PolicyType::Ingress],
    ])
}

fn spec() -> impl Strategy<Value = NetworkPolicySpec> {
    let rules = |direction| vec(rule::of_policy(direction), 0..4);
    let parts = (
        (tier(), order(), types()),
        (maybe(0.6, selector()), maybe(0.15, account_selector())),
        rules(PolicyType::Ingress),
        rules(PolicyType::Egress),
    );
    parts.prop_map(
        |((tier, order, types), (selector, accounts), ingress, egress)| NetworkPolicySpec {
            tier,
            order,
            types,
            selector,
            service_account_selector: accounts,
            ingress,
            egress,
            ..NetworkPolicySpec::default()
        },
    )
}

fn global_spec() -> impl Strategy<Value = GlobalNetworkPolicySpec> {
    let rules = |direction| vec(rule::of_global_policy(direction), 0..4);
    let selectors = (
        maybe(0.6, selector()),
        maybe(0.25, namespace_selector()),
        maybe(0.15, account_selector()),
    );
    let modes = select(vec![
        (false, false, false),
        (false, false, false),
        (false, false, false),
        (false, false, true),
        (true, false, true),
        (false, true, true),
    ]);
    let parts = (
        (tier(), order(), types(), modes),
        selectors,
        rules(PolicyType::Ingress),
        rules(PolicyType::Egress),
    );
    parts.prop_map(
        |((tier, order, types, modes), (selector, namespaces, accounts), ingress, egress)| {
            let (do_not_track, pre_dnat, apply_on_forward) = modes;
            let mut spec = GlobalNetworkPolicySpec {
                tier,
                order,
                types,
                selector,
                namespace_selector: namespaces,
                service_account_selector: accounts,
                do_not_track,
                pre_dnat,
                apply_on_forward,
                ingress,
                egress,
                ..GlobalNetworkPolicySpec::default()
            };
            if pre_dnat {
                spec.egress.clear();
                spec.types
                    .retain(|direction| *direction == PolicyType::Ingress);
            }
            spec
        },
    )
}
