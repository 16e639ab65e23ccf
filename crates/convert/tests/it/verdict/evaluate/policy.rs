//! Policies that are enforced: in which place, for which directions and for which endpoints.

use std::sync::Arc;

use k8s_openapi::api::networking::v1::NetworkPolicySpec as KubePolicySpec;
use tortie_api::Resource;
use tortie_api::k8s::ClusterNetworkPolicySpec;
use tortie_api::names::{PolicyId, PolicyKind};
use tortie_api::rule::{PolicyType, Rule};
use tortie_engine::verdict::Point;

use super::kubernetes;
use super::party::{NAMESPACE, Party, SERVICE_ACCOUNT};
use super::rule::{holds, holds_for_namespace};
use crate::verdict::world::{Object, names};

/// The place of Kubernetes' policies in the default tier.
const KUBERNETES_ORDER: f64 = 1000.0;

/// A policy that is enforced.
pub(super) struct Policy<'a> {
    pub(super) id: Arc<PolicyId>,
    pub(super) tier: &'a str,
    pub(super) order: f64,
    pub(super) point: Point,
    pub(super) body: Body<'a>,
}

/// What a policy says, in the words of its kind.
pub(super) enum Body<'a> {
    Calico {
        selectors: Selectors<'a>,
        types: &'a [PolicyType],
        rules: Rules<'a>,
    },
    Kubernetes(&'a KubePolicySpec),
    Cluster(&'a ClusterNetworkPolicySpec),
}

/// Rules of a policy or profile.
pub(super) struct Rules<'a> {
    pub(super) ingress: &'a [Rule],
    pub(super) egress: &'a [Rule],
}

#[derive(Default)]
pub(super) struct Selectors<'a> {
    own: &'a str,
    namespaces: &'a str,
    accounts: &'a str,
}

// === impl Policy ===

impl Policy<'_> {
    /// Without types, those of Calico are for the directions that they have rules for, and ingress if they have none.
    pub(super) fn covers(&self, direction: PolicyType) -> bool {
        match &self.body {
            Body::Calico {
                types: [], rules, ..
            } => match direction {
                PolicyType::Ingress => !rules.ingress.is_empty() || rules.egress.is_empty(),
                PolicyType::Egress => !rules.egress.is_empty(),
            },
            Body::Calico { types, .. } => types.contains(&direction),
            Body::Kubernetes(spec) => kubernetes::covers(spec, direction),
            Body::Cluster(_) => true,
        }
    }

    /// ALL selectors of the policy hold.
    pub(super) fn selects(&self, party: &Party<'_>) -> bool {
        let namespace = &self.id.namespace;
        match &self.body {
            Body::Calico { selectors, .. } if !namespace.is_empty() => {
                party.is_in(namespace)
                    && holds(selectors.own, &party.labels)
                    && holds(selectors.accounts, &party.account_labels)
            }
            Body::Calico { selectors, .. } => selectors.hold(party),
            Body::Kubernetes(spec) => kubernetes::is_selected(spec, namespace, party),
            Body::Cluster(spec) => kubernetes::is_subject(spec, party),
        }
    }
}

impl Rules<'_> {
    pub(super) fn of(&self, direction: PolicyType) -> &[Rule] {
        match direction {
            PolicyType::Ingress => self.ingress,
            PolicyType::Egress => self.egress,
        }
    }
}

impl Selectors<'_> {
    /// In a global policy `all()` means all in namespaces as soon as it selects namespaces, and all with a service
    /// account as soon as it selects those. That goes for its own selector, too: Calico replaces it in the whole text.
    fn hold(&self, party: &Party<'_>) -> bool {
        let mut own = self.own.to_owned();
        let mut account_labels = party.account_labels.clone();
        if !self.namespaces.is_empty() {
            own = own.replace("all()", &format!("has({NAMESPACE})"));
        }
        if !self.accounts.is_empty() {
            own = own.replace("all()", &format!("has({SERVICE_ACCOUNT})"));
            if let Some(account) = party.labels.get(SERVICE_ACCOUNT) {
                account_labels.insert(SERVICE_ACCOUNT.to_owned(), account.clone());
            }
        }
        let accounts = self
            .accounts
            .replace("all()", &format!("has({SERVICE_ACCOUNT})"));
        holds(&own, &party.labels)
            && (self.namespaces.is_empty() || holds_for_namespace(self.namespaces, party))
            && holds(&accounts, &account_labels)
    }
}

/// The policy that an object is; staged ones decide nothing.
pub(super) fn of(object: &Object) -> Option<Policy<'_>> {
    let id = |kind, namespace: &str, name: &str| {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Arc::new(PolicyId {
            kind,
            namespace,
            name,
        })
    };
    Some(match object {
        Object::Resource(Resource::NetworkPolicy(policy)) => Policy {
            id: id(
                PolicyKind::NetworkPolicy,
                &policy.metadata.namespace,
                &policy.metadata.name,
            ),
            tier: tier_or_default(&policy.spec.tier),
            order: policy.spec.order.unwrap_or(f64::INFINITY),
            point: Point::Normal,
            body: Body::Calico {
                selectors: Selectors {
                    own: &policy.spec.selector,
                    accounts: &policy.spec.service_account_selector,
                    ..Selectors::default()
                },
                types: &policy.spec.types,
                rules: Rules {
                    ingress: &policy.spec.ingress,
                    egress: &policy.spec.egress,
                },
            },
        },
        Object::Resource(Resource::GlobalNetworkPolicy(policy)) => Policy {
            id: id(PolicyKind::GlobalNetworkPolicy, "", &policy.metadata.name),
            tier: tier_or_default(&policy.spec.tier),
            order: policy.spec.order.unwrap_or(f64::INFINITY),
            point: match (policy.spec.do_not_track, policy.spec.pre_dnat) {
                (true, _) => Point::Untracked,
                (_, true) => Point::PreDnat,
                _ => Point::Normal,
            },
            body: Body::Calico {
                selectors: Selectors {
                    own: &policy.spec.selector,
                    namespaces: &policy.spec.namespace_selector,
                    accounts: &policy.spec.service_account_selector,
                },
                types: &policy.spec.types,
                rules: Rules {
                    ingress: &policy.spec.ingress,
                    egress: &policy.spec.egress,
                },
            },
        },
        Object::KubePolicy(policy) => {
            let (namespace, name) = names(&policy.metadata);
            Policy {
                id: id(PolicyKind::KubernetesNetworkPolicy, &namespace, &name),
                tier: "default",
                order: KUBERNETES_ORDER,
                point: Point::Normal,
                body: Body::Kubernetes(policy.spec.as_ref()?),
            }
        }
        Object::ClusterPolicy(policy) => Policy {
            id: id(
                PolicyKind::KubernetesClusterNetworkPolicy,
                "",
                &names(&policy.metadata).1,
            ),
            tier: if policy.spec.tier == "Admin" {
                "kube-admin"
            } else {
                "kube-baseline"
            },
            order: policy.spec.priority.into(),
            point: Point::Normal,
            body: Body::Cluster(&policy.spec),
        },
        _ => return None,
    })
}

fn tier_or_default(tier: &str) -> &str {
    if tier.is_empty() { "default" } else { tier }
}
