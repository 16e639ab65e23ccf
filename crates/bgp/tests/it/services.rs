//! Which addresses of services this node tells its peers.

use serde_json::{Value, json};
use tortie_bgp::{Family, Inputs, Plan, Update, render};

use crate::world::{configuration, identity, inputs, labelled, node};

/// A service with all kinds of addresses.
fn service(policy: &str) -> Value {
    let mut service = json!({
        "metadata": {"namespace": "ns", "name": "web"},
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": "10.96.0.9",
            "clusterIPs": ["10.96.0.9", "fd00:96::9"],
            "ipFamilies": ["IPv4", "IPv6"],
            "externalIPs": ["203.0.113.9", "198.51.100.9"],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.129"}, {"hostname": "x"}]}},
    });
    if !policy.is_empty() {
        service["spec"]["externalTrafficPolicy"] = policy.into();
    }
    service
}

/// An endpoint of it on a node.
fn slice(node: &str, ready: bool, family: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": format!("web-{node}"), "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": family,
        "endpoints": [{"addresses": ["10.0.0.5"], "nodeName": node, "conditions": {"ready": ready}}],
        "ports": [],
    })
}

fn ranges() -> Value {
    json!({
        "serviceClusterIPs": [{"cidr": "10.96.0.0/16"}, {"cidr": "fd00:96::/108"}],
        "serviceExternalIPs": [{"cidr": "203.0.113.0/24"}],
        "serviceLoadBalancerIPs": [{"cidr": "192.0.2.128/25"}],
    })
}

fn world(spec: Value, labels: Value) -> Inputs {
    let node = labelled(node("node1", "192.0.2.1/24"), labels);
    inputs(identity(), [node, configuration(spec)])
}

fn tell(inputs: &mut Inputs, service: &Value, slices: &[Value]) -> Vec<bool> {
    let mut told = vec![inputs.update(Update::Service(Box::new(
        serde_json::from_value(service.clone()).unwrap(),
    )))];
    told.extend(slices.iter().map(|slice| {
        let slice = serde_json::from_value(slice.clone()).unwrap();
        inputs.update(Update::EndpointSlice(Box::new(slice)))
    }));
    told
}

fn told(plan: &Plan) -> Vec<String> {
    let families = Family::BOTH.into_iter();
    let routes = families.flat_map(|family| &plan.family(family).services);
    routes.map(|route| route.network.to_string()).collect()
}

const RANGES: [&str; 4] = [
    "10.96.0.0/16",
    "192.0.2.128/25",
    "203.0.113.0/24",
    "fd00:96::/108",
];

#[track_caller]
fn check(spec: Value, service: &Value, slices: &[Value], expected: &[&str]) {
    let mut inputs = world(spec, json!({}));
    tell(&mut inputs, service, slices);
    let mut told = told(&Plan::new(&inputs));
    told.retain(|route| !RANGES.contains(&route.as_str()));
    assert_eq!(told, expected, "{service} {slices:?}");
}

const ALL: [&str; 4] = [
    "10.96.0.9/32",
    "192.0.2.129/32",
    "203.0.113.9/32",
    "fd00:96::9/128",
];

#[test]
fn a_service_with_endpoints_of_this_node_alone_is_told_by_it() {
    let local = service("Local");
    check(ranges(), &local, &[slice("node1", true, "IPv4")], &ALL);
    check(ranges(), &local, &[slice("node1", false, "IPv4")], &[]);
    check(ranges(), &local, &[slice("node2", true, "IPv4")], &[]);
    check(ranges(), &local, &[], &[]);
    let mut only_v6 = local.clone();
    only_v6["spec"]["ipFamilies"] = json!(["IPv6"]);
    check(ranges(), &only_v6, &[slice("node1", true, "IPv4")], &[]);
    check(ranges(), &only_v6, &[slice("node1", true, "IPv6")], &ALL);
}

#[test]
fn what_is_in_a_range_is_told_with_it() {
    let here = [slice("node1", true, "IPv4")];
    check(ranges(), &service("Cluster"), &here, &[]);
    check(ranges(), &service(""), &here, &[]);
}

#[test]
fn without_ranges_each_address_is_told_where_any_endpoint_is() {
    let mut spec = ranges();
    spec["serviceLoadBalancerAggregation"] = "Disabled".into();
    let elsewhere = [slice("node2", true, "IPv4")];
    check(spec.clone(), &service("Cluster"), &elsewhere, &ALL);
    check(spec.clone(), &service("Cluster"), &[], &[]);
    check(spec, &service("Local"), &elsewhere, &[]);
}

#[test]
fn a_range_of_one_address_is_told_for_its_service() {
    let mut spec = ranges();
    spec["serviceLoadBalancerIPs"] = json!([{"cidr": "192.0.2.129/32"}]);
    check(spec, &service("Cluster"), &[], &ALL);
    let mut spec = ranges();
    spec["serviceExternalIPs"] = json!([{"cidr": "203.0.113.9/32"}]);
    check(spec, &service("Cluster"), &[], &ALL);
}

#[test]
fn only_what_is_asked_for_is_told() {
    let here = [slice("node1", true, "IPv4")];
    let local = service("Local");
    check(json!({}), &local, &here, &[]);
    let external = json!({"serviceExternalIPs": [{"cidr": "198.51.100.0/24"}]});
    check(
        external,
        &local,
        &here,
        &["198.51.100.0/24", "198.51.100.9/32"],
    );
    let mut headless = local.clone();
    headless["spec"]["clusterIP"] = "None".into();
    check(ranges(), &headless, &here, &[]);
    let mut name = local;
    name["spec"]["type"] = "ExternalName".into();
    check(ranges(), &name, &here, &[]);
}

#[test]
fn a_node_that_is_excluded_tells_nothing_and_programs_nothing() {
    let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
    let mut inputs = world(ranges(), json!({ exclude: "true" }));
    let changes = tell(
        &mut inputs,
        &service("Local"),
        &[slice("node1", true, "IPv4")],
    );
    assert_eq!(changes, [false, false]);
    let plan = Plan::new(&inputs);
    assert_eq!(told(&plan), [""; 0]);
    let text = render::bird2(&plan);
    assert!(text.contains("filter calico_kernel_programming_v4 {\n  if source = RTS_DEVICE then reject;\n  if net ~ [\n    10.96.0.0/16+,"), "{text}");
}

#[test]
fn endpoints_of_others_are_no_news() {
    let mut inputs = world(ranges(), json!({}));
    let slices = [
        slice("node2", true, "IPv4"),
        slice("node1", true, "IPv4"),
        slice("node1", true, "IPv4"),
        slice("node1", false, "IPv4"),
    ];
    let changes = tell(&mut inputs, &service("Local"), &slices);
    assert_eq!(changes, [false, false, true, false, true]);
    let gone = Update::ServiceRemoved("ns".to_owned(), "web".to_owned());
    assert!(!inputs.update(gone));
    let gone = Update::EndpointSliceRemoved("ns".to_owned(), "web-node1".to_owned());
    assert!(!inputs.update(gone));
}

#[test]
fn an_address_of_two_services_is_told_once() {
    let mut inputs = world(ranges(), json!({}));
    let here = [slice("node1", true, "IPv4")];
    tell(&mut inputs, &service("Local"), &here);
    let mut twin = service("Local");
    twin["metadata"]["name"] = "twin".into();
    let mut slice = here[0].clone();
    slice["metadata"]["name"] = "twin-1".into();
    slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": "twin"});
    tell(&mut inputs, &twin, &[slice]);
    let all = told(&Plan::new(&inputs));
    assert_eq!(all.len(), ALL.len() + RANGES.len(), "{all:?}");
}

#[test]
fn this_nodes_own_packets_to_services_do_not_vanish() {
    let mut spec = ranges();
    spec["serviceLoadBalancerAggregation"] = "Disabled".into();
    let mut inputs = world(spec, json!({}));
    tell(
        &mut inputs,
        &service("Local"),
        &[slice("node1", true, "IPv4")],
    );
    let plan = Plan::new(&inputs);
    for route in &plan.families.v4.services {
        let mut rejected = plan.families.v4.rejected.iter();
        assert!(
            rejected.any(|range| range.network.contains(&route.network)),
            "{route:?}"
        );
    }
}
