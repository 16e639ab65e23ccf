use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};
use tortie_api::kube_controllers_configuration::AssignIps::{
    self, AllServices, RequestedServicesOnly,
};

use super::ledger::ServicePool;
use super::plan::{Assign, Plan, Status, plan};
use super::service::CachedService;

fn service(spec: &Value, annotations: &Value) -> CachedService {
    let mut service = json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "U-1", "annotations": annotations },
        "spec": { "type": "LoadBalancer", "ipFamilies": ["IPv4"] },
    });
    for (name, value) in spec.as_object().expect("fields") {
        service["spec"][name] = value.clone();
    }
    serde_json::from_value(service).expect("a service")
}

fn pools() -> BTreeMap<String, ServicePool> {
    let pool = |cidr: &str, is_manual| ServicePool {
        net: cidr.parse().expect("a network"),
        is_manual,
    };
    BTreeMap::from([
        ("v4".to_owned(), pool("10.9.0.0/24", false)),
        ("asked".to_owned(), pool("10.8.0.0/24", true)),
        ("v6".to_owned(), pool("fd00::/64", false)),
    ])
}

fn addresses(texts: &[&str]) -> BTreeSet<IpAddr> {
    texts
        .iter()
        .map(|text| text.parse().expect("an address"))
        .collect()
}

fn decide(service: &CachedService, held: &[&str], assign: AssignIps) -> Plan {
    plan(service, &addresses(held), &pools(), assign).expect("it makes sense")
}

fn any(v4: bool, v6: bool) -> Assign {
    Assign::Any {
        v4,
        v6,
        pools4: vec![],
        pools6: vec![],
    }
}

#[test]
fn which_services_are_managed() {
    let check = |spec: Value, annotations: Value, all: bool, requested: bool| {
        let service = service(&spec, &annotations);
        assert_eq!(service.is_managed(AllServices), all, "{service:?}");
        assert_eq!(
            service.is_managed(RequestedServicesOnly),
            requested,
            "{service:?}"
        );
    };
    check(json!({}), json!({}), true, false);
    check(json!({ "type": "ClusterIP" }), json!({}), false, false);
    check(
        json!({ "loadBalancerClass": "calico" }),
        json!({}),
        true,
        true,
    );
    check(
        json!({ "loadBalancerClass": "other" }),
        json!({}),
        false,
        false,
    );
    check(
        json!({ "loadBalancerIP": "10.9.0.1" }),
        json!({}),
        true,
        true,
    );
    let asks = json!({ "projectcalico.org/ipv4pools": "[\"v4\"]" });
    check(json!({}), asks.clone(), true, true);
    check(json!({ "loadBalancerClass": "other" }), asks, false, false);
}

#[test]
fn a_service_gets_one_address_of_each_of_its_ip_versions() {
    let one = service(&json!({}), &json!({}));
    assert_eq!(decide(&one, &[], AllServices).assign, any(true, false));
    assert_eq!(
        decide(&one, &["10.9.0.1"], AllServices).assign,
        Assign::Nothing
    );
    let both = service(&json!({ "ipFamilies": ["IPv4", "IPv6"] }), &json!({}));
    assert_eq!(decide(&both, &[], AllServices).assign, any(true, true));
    assert_eq!(
        decide(&both, &["10.9.0.1"], AllServices).assign,
        any(false, true)
    );
    assert_eq!(
        decide(&both, &["fd00::1"], AllServices).assign,
        any(true, false)
    );
    assert_eq!(
        decide(&both, &["10.9.0.1", "fd00::1"], AllServices).assign,
        Assign::Nothing
    );
    let old = service(
        &json!({ "ipFamilies": [], "clusterIP": "fd01::1" }),
        &json!({}),
    );
    assert_eq!(decide(&old, &[], AllServices).assign, any(false, true));
}

#[test]
fn what_is_asked_for_replaces_what_is_held() {
    let asks = |name: &str, list: &str| service(&json!({}), &json!({ name: list }));
    let these = asks("projectcalico.org/loadBalancerIPs", "[\"10.8.0.7\"]");
    let plan = decide(&these, &["10.9.0.1"], AllServices);
    assert_eq!(plan.release, addresses(&["10.9.0.1"]));
    assert_eq!(
        plan.assign,
        Assign::These(vec!["10.8.0.7".parse().expect("an address")])
    );
    assert_eq!(
        decide(&these, &["10.8.0.7"], AllServices).assign,
        Assign::Nothing
    );

    for name in ["asked", "10.8.0.0/24"] {
        let pool = asks("projectcalico.org/ipv4pools", &format!("[\"{name}\"]"));
        let plan = decide(&pool, &["10.9.0.1"], AllServices);
        assert_eq!(plan.release, addresses(&["10.9.0.1"]));
        let net = "10.8.0.0/24".parse().expect("a network");
        let expected = Assign::Any {
            v4: true,
            v6: false,
            pools4: vec![net],
            pools6: vec![],
        };
        assert_eq!(plan.assign, expected);
        assert!(decide(&pool, &["10.8.0.1"], AllServices).release.is_empty());
    }
}

#[test]
fn an_address_of_a_pool_that_must_be_asked_for_goes_once_it_is_not() {
    let bare = service(&json!({}), &json!({}));
    let plan = decide(&bare, &["10.8.0.1"], AllServices);
    assert_eq!(plan.release, addresses(&["10.8.0.1"]));
    assert_eq!(plan.assign, any(true, false));
    let asked = service(&json!({ "loadBalancerIP": "10.8.0.1" }), &json!({}));
    let expected = Plan {
        status: Status::Ours,
        ..Plan::default()
    };
    assert_eq!(decide(&asked, &["10.8.0.1"], AllServices), expected);
    let address = "10.8.0.1".parse().expect("an address");
    assert_eq!(
        decide(&asked, &[], AllServices).assign,
        Assign::These(vec![address])
    );
}

#[test]
fn without_pools_or_with_another_manager_everything_is_given_back() {
    let bare = service(&json!({}), &json!({}));
    let held = addresses(&["10.9.0.1"]);
    let none = plan(&bare, &held, &BTreeMap::new(), AllServices).expect("a plan");
    assert_eq!((none.release, none.status), (held.clone(), Status::Ours));
    let nothing = plan(&bare, &BTreeSet::new(), &BTreeMap::new(), AllServices);
    assert_eq!(nothing, Ok(Plan::default()));
    let others = service(&json!({ "loadBalancerClass": "other" }), &json!({}));
    let plan = decide(&others, &["10.9.0.1"], AllServices);
    assert_eq!((plan.release, plan.status), (held, Status::WithoutReleased));
    assert_eq!(decide(&others, &[], AllServices), Plan::default());
}

#[test]
fn nonsense_is_told_and_changes_nothing() {
    let check = |name: &str, value: &str, expected: &str| {
        let service = service(&json!({}), &json!({ name: value }));
        let found = plan(&service, &addresses(&["10.9.0.1"]), &pools(), AllServices);
        let found = found.expect_err("nonsense").to_string();
        assert!(found.contains(expected), "{found}");
    };
    check(
        "projectcalico.org/loadBalancerIPs",
        "10.9.0.1",
        "no JSON list",
    );
    check(
        "projectcalico.org/loadBalancerIPs",
        "[\"x\"]",
        "`x` in projectcalico.org/loadBalancerIPs is no address",
    );
    check(
        "projectcalico.org/loadBalancerIPs",
        "[\"10.0.0.1\",\"10.0.0.2\"]",
        "at most one",
    );
    check(
        "projectcalico.org/ipv4pools",
        "[\"nowhere\"]",
        "neither a network nor a pool",
    );
    check(
        "projectcalico.org/ipv4pools",
        "[\"v6\"]",
        "other IP version",
    );
}

#[test]
fn handles_are_those_of_calico() {
    // sha256("web-shop-u-1"), base64url, without `-` and `_`.
    let handle = service(&json!({}), &json!({})).handle();
    assert_eq!(handle, "lb-cuCJLMoHCcRmRJzfqsZ2eo7ttcggmfRBSfdMwZ6A8");
}
