//! Random worlds. Names, labels, addresses and ports are few, so that things meet.

mod endpoint;
mod kubernetes;
mod policy;
mod rule;
mod words;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::felix_configuration::{FelixConfigurationSpec, ProtoPort};
use tortie_api::profile::ProfileSpec;
use tortie_api::rule::Action;
use tortie_api::tier::{BUILT_IN, TierSpec};
use tortie_api::{FelixConfiguration, Profile, Resource, Tier, k8s};

use crate::verdict::world::{Object, World};
use words::{ACCOUNTS, NAMESPACES, PROFILES, TIERS, labels, namespace_labels};

/// Any world.
pub(crate) fn world() -> impl Strategy<Value = World> {
    let policies = prop_oneof![
        4 => policy::network_policy(),
        4 => policy::global_network_policy(),
        2 => policy::staged(),
        4 => kubernetes::network_policy(),
        2 => kubernetes::cluster_network_policy(),
    ];
    let others = prop_oneof![
        4 => endpoint::host(),
        2 => endpoint::network_set(),
        2 => endpoint::global_network_set(),
        5 => kubernetes::slice(),
        1 => felix_configuration(),
        3 => profile(),
    ];
    let tiers = TIERS.map(|name| prop::option::weighted(0.85, tier(name)));
    let parts = (
        NAMESPACES.map(namespace),
        vec(service_account(), 0..4),
        tiers,
        vec(policies, 0..11),
        vec(endpoint::workload(), 0..11),
        vec(others, 0..11),
    );
    parts.prop_map(
        |(namespaces, accounts, tiers, policies, workloads, others)| {
            let built_in = BUILT_IN.map(|(name, order, action)| {
                let spec = TierSpec {
                    order: Some(order),
                    default_action: Some(action),
                };
                resource(Tier::new("", name, spec))
            });
            let objects = built_in
                .into_iter()
                .chain([resource(k8s::default_allow_profile())])
                .chain(namespaces)
                .chain(accounts)
                .chain(tiers.into_iter().flatten())
                .chain(policies)
                .chain(workloads)
                .chain(others);
            World::new(objects)
        },
    )
}

fn resource(resource: impl Into<Resource>) -> Object {
    Object::Resource(resource.into())
}

/// Some of a list.
fn some(of: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(of).prop_map(str::to_owned)
}

/// Nothing, or, this often, something.
fn maybe<S: Strategy>(probability: f64, strategy: S) -> impl Strategy<Value = S::Value>
where
    S::Value: Default,
{
    prop::option::weighted(probability, strategy).prop_map(Option::unwrap_or_default)
}

fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        uid: Some("30316465-6365-4463-ad63-3564622d3638".to_owned()),
        ..ObjectMeta::default()
    }
}

fn namespace(name: &'static str) -> impl Strategy<Value = Object> {
    namespace_labels().prop_map(move |labels| {
        Object::Namespace(Namespace {
            metadata: ObjectMeta {
                labels: Some(labels),
                ..metadata("", name)
            },
            ..Namespace::default()
        })
    })
}

fn service_account() -> impl Strategy<Value = Object> {
    let parts = (some(&NAMESPACES), some(&ACCOUNTS), labels());
    parts.prop_map(|(namespace, name, labels)| {
        Object::ServiceAccount(ServiceAccount {
            metadata: ObjectMeta {
                labels: Some(labels),
                ..metadata(&namespace, &name)
            },
            ..ServiceAccount::default()
        })
    })
}

fn tier(name: &'static str) -> impl Strategy<Value = Object> {
    let order = maybe(0.8, select(vec![Some(1.0), Some(2.0), Some(2_000_000.0)]));
    let action = select(vec![None, Some(Action::Deny), Some(Action::Pass)]);
    (order, action).prop_map(move |(order, default_action)| {
        resource(Tier::new(
            "",
            name,
            TierSpec {
                order,
                default_action,
            },
        ))
    })
}

fn profile() -> impl Strategy<Value = Object> {
    let rules = || vec(rule::of_profile(), 0..3);
    let parts = (some(&PROFILES), rules(), rules(), labels());
    parts.prop_map(|(name, ingress, egress, labels_to_apply)| {
        let spec = ProfileSpec {
            ingress,
            egress,
            labels_to_apply,
        };
        resource(Profile::new("", &name, spec))
    })
}

fn felix_configuration() -> impl Strategy<Value = Object> {
    let port = (
        some(&["TCP", "UDP", "tcp"]),
        select(vec![22_u16, 53, 80, 8080]),
        maybe(0.3, some(&["10.0.0.0/30", "192.168.0.0/24", "fd00::/16"])),
    );
    let port = port.prop_map(|(protocol, port, net)| ProtoPort {
        protocol,
        port,
        net,
    });
    let port = port.boxed();
    let list = || prop::option::of(vec(port.clone(), 0..3));
    let action = some(&["", "Accept", "Return", "Drop"]);
    let parts = (some(&["default", "node.n1"]), list(), list(), action);
    parts.prop_map(
        |(name, inbound, outbound, default_endpoint_to_host_action)| {
            let spec = FelixConfigurationSpec {
                failsafe_inbound_host_ports: inbound,
                failsafe_outbound_host_ports: outbound,
                default_endpoint_to_host_action,
                ..FelixConfigurationSpec::default()
            };
            resource(FelixConfiguration::new("", &name, spec))
        },
    )
}
