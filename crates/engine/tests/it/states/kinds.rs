//! Policies of all kinds: for namespaces and for the cluster, Calico's and Kubernetes', enforced and staged.

use crate::states::build::{Object, pod, policy, policy_of, remote_pod, tier};
use crate::states::list::{check, world};
use crate::states::rule::{allow, deny};
use tortie_engine::input::PolicyKind;

fn a_pod() -> Object {
    pod("ns/a")
        .ip("10.0.0.1")
        .label("projectcalico.org/namespace", "ns")
}

fn of_namespace(kind: PolicyKind) -> Object {
    policy_of(kind, "ns", "p").selector("projectcalico.org/namespace == 'ns'")
}

#[test]
fn policies_of_one_name_and_different_kinds_are_different() {
    let globals = || {
        [
            policy_of(PolicyKind::StagedGlobalNetworkPolicy, "", "p"),
            policy_of(PolicyKind::KubernetesClusterNetworkPolicy, "", "p"),
            policy_of(PolicyKind::GlobalNetworkPolicy, "", "p"),
        ]
    };
    check([
        world([a_pod()]).and(globals()).gives(
            "policy gnp/p
             policy kcnp/p
             policy sgnp/p
             pod ns/a 10.0.0.1 | default=deny both gnp/p kcnp/p sgnp/p",
        ),
        world([
            a_pod(),
            of_namespace(PolicyKind::StagedNetworkPolicy),
            of_namespace(PolicyKind::StagedKubernetesNetworkPolicy),
            of_namespace(PolicyKind::NetworkPolicy),
            of_namespace(PolicyKind::KubernetesNetworkPolicy),
        ])
        .and(globals())
        .gives(
            "policy gnp/p
             policy kcnp/p
             policy sgnp/p
             policy np/ns/p for projectcalico.org/namespace == 'ns'
             policy knp/ns/p for projectcalico.org/namespace == 'ns'
             policy snp/ns/p for projectcalico.org/namespace == 'ns'
             policy sknp/ns/p for projectcalico.org/namespace == 'ns'
             pod ns/a 10.0.0.1 | default=deny \
             both gnp/p kcnp/p sgnp/p knp/ns/p np/ns/p sknp/ns/p snp/ns/p",
        ),
        world([a_pod(), of_namespace(PolicyKind::KubernetesNetworkPolicy)]).gives(
            "policy knp/ns/p for projectcalico.org/namespace == 'ns'
             pod ns/a 10.0.0.1 | default=deny both knp/ns/p",
        ),
    ]);
}

#[test]
fn a_policy_of_a_namespace_is_for_pods_of_that_namespace() {
    let of = |namespace: &str| {
        policy_of(PolicyKind::NetworkPolicy, namespace, "p").selector(&format!(
            "app == 'web' && projectcalico.org/namespace == '{namespace}'"
        ))
    };
    let web = |namespace: &str| {
        pod(&format!("{namespace}/web"))
            .label("app", "web")
            .label("projectcalico.org/namespace", namespace)
    };
    check([
        world([of("red"), of("blue"), web("red")]).gives(
            "policy np/red/p for (app == 'web' && projectcalico.org/namespace == 'red')
             pod red/web | default=deny both np/red/p",
        ),
        world([of("red"), of("blue"), web("red"), web("blue")]).gives(
            "policy np/red/p for (app == 'web' && projectcalico.org/namespace == 'red')
             policy np/blue/p for (app == 'web' && projectcalico.org/namespace == 'blue')
             pod red/web | default=deny both np/red/p
             pod blue/web | default=deny both np/blue/p",
        ),
        world([of("red"), web("blue")]).gives("pod blue/web"),
    ]);
}

#[test]
fn staged_policies_are_computed_with_their_sets() {
    let staged = || {
        policy_of(PolicyKind::StagedGlobalNetworkPolicy, "", "p")
            .inbound(allow().from("app == 'web'"))
    };
    let web = || remote_pod("web").ip("10.0.0.2").label("app", "web");
    check([
        world([a_pod(), web(), staged()]).gives(
            "{app == 'web'}: 10.0.0.2/32
             policy sgnp/p: in allow from {app == 'web'}
             pod ns/a 10.0.0.1 | default=deny both sgnp/p",
        ),
        world([a_pod(), web(), staged(), policy("q").order(1.0)]).gives(
            "{app == 'web'}: 10.0.0.2/32
             policy sgnp/p: in allow from {app == 'web'}
             policy gnp/q
             pod ns/a 10.0.0.1 | default=deny both gnp/q sgnp/p",
        ),
    ]);
}

#[test]
fn a_staged_policy_becomes_a_real_one() {
    let of = |kind| policy_of(kind, "", "p").inbound(deny().from("app == 'web'"));
    check([
        world([a_pod(), of(PolicyKind::StagedGlobalNetworkPolicy)]).gives(
            "{app == 'web'}:
             policy sgnp/p: in deny from {app == 'web'}
             pod ns/a 10.0.0.1 | default=deny both sgnp/p",
        ),
        world([
            a_pod(),
            of(PolicyKind::StagedGlobalNetworkPolicy),
            of(PolicyKind::GlobalNetworkPolicy),
        ])
        .gives(
            "{app == 'web'}:
             policy sgnp/p: in deny from {app == 'web'}
             policy gnp/p: in deny from {app == 'web'}
             pod ns/a 10.0.0.1 | default=deny both gnp/p sgnp/p",
        ),
        world([a_pod(), of(PolicyKind::GlobalNetworkPolicy)]).gives(
            "{app == 'web'}:
             policy gnp/p: in deny from {app == 'web'}
             pod ns/a 10.0.0.1 | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn cluster_policies_of_kubernetes_live_in_tiers_around_the_default_one() {
    let in_tier = |name: &str, tier: &str, order: f64| {
        policy_of(PolicyKind::KubernetesClusterNetworkPolicy, "", name)
            .in_tier(tier)
            .order(order)
    };
    let tiers = || {
        [
            tier("kube-admin").tier_order(1_000.0).passes(),
            tier("kube-baseline").tier_order(10_000_000.0).passes(),
        ]
    };
    check([
        world([
            a_pod(),
            in_tier("x", "kube-admin", 5.0),
            in_tier("y", "kube-baseline", 1.0),
        ])
        .and(tiers())
        .and([of_namespace(PolicyKind::KubernetesNetworkPolicy)])
        .gives(
            "policy kcnp/x @kube-admin
                 policy kcnp/y @kube-baseline
                 policy knp/ns/p for projectcalico.org/namespace == 'ns'
                 pod ns/a 10.0.0.1 | kube-admin=pass both kcnp/x | default=deny both knp/ns/p \
                 | kube-baseline=pass both kcnp/y",
        ),
        world([
            a_pod(),
            in_tier("x", "kube-baseline", 5.0),
            in_tier("y", "kube-baseline", 1.0),
        ])
        .and(tiers())
        .gives(
            "policy kcnp/x @kube-baseline
                 policy kcnp/y @kube-baseline
                 pod ns/a 10.0.0.1 | kube-baseline=pass both kcnp/y kcnp/x",
        ),
    ]);
}
