//! Calico's own answers: the cases of `names.json` about names in the kernel.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tortie_rules::{
    Dataplane, Direction, EndpointChain, IpVersion, PolicyGroup, PolicyId, endpoint_chain_name,
    ip_set_name, policy_chain_name, profile_chain_name, temp_ip_set_name,
};

/// The values of `what` that are for this crate; the other cases belong to other crates.
const OURS: [&str; 6] = [
    "endpointChainName",
    "ipsetName",
    "policyChainName",
    "policyGroup",
    "policyID",
    "profileChainName",
];

#[test]
fn names_in_the_kernel_are_as_in_calico() {
    let cases = tortie_testkit::vectors("names.json");
    let mut seen = BTreeSet::new();
    let mut failures = Vec::new();
    for case in &cases {
        let what = text(case, "what");
        if !OURS.contains(&what) {
            continue;
        }
        seen.insert(what);
        let (actual, expected) = (answer(what, &case["input"]), &case["output"]);
        if actual != *expected {
            failures.push(format!(
                "{what} {}: {actual}, not {expected}",
                case["input"]
            ));
        }
    }
    assert_eq!(seen, BTreeSet::from(OURS), "the kinds of cases in the file");
    assert!(
        failures.is_empty(),
        "{} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn answer(what: &str, input: &Value) -> Value {
    match what {
        "endpointChainName" => endpoint_chain_names(text(input, "interface")),
        "ipsetName" => ip_set_names(input),
        "policyChainName" => {
            let id = policy_id(input);
            chain_names(|direction, dataplane| policy_chain_name(&id, direction, dataplane))
        }
        "policyGroup" => policy_group(input),
        "policyID" => {
            let id = policy_id(input);
            json!({
                "id": id.to_string(),
                "shortKind": id.kind.short_name(),
                "string": id.long_form(),
            })
        }
        "profileChainName" => {
            let name = text(input, "name");
            chain_names(|direction, dataplane| profile_chain_name(name, direction, dataplane))
        }
        _ => panic!("`{what}` is listed but not answered"),
    }
}

fn chain_names(name: impl Fn(Direction, Dataplane) -> String) -> Value {
    let both = |dataplane| {
        json!({
            "in": name(Direction::Ingress, dataplane),
            "out": name(Direction::Egress, dataplane),
        })
    };
    json!({
        "iptables": both(Dataplane::Iptables),
        "nftables": both(Dataplane::Nftables),
    })
}

fn endpoint_chain_names(interface: &str) -> Value {
    let name = |chain| endpoint_chain_name(chain, interface, Dataplane::Iptables);
    json!({
        "from-host": name(EndpointChain::FromHost),
        "from-host-forward": name(EndpointChain::FromHostForward),
        "from-workload": name(EndpointChain::FromWorkload),
        "to-host": name(EndpointChain::ToHost),
        "to-host-forward": name(EndpointChain::ToHostForward),
        "to-workload": name(EndpointChain::ToWorkload),
    })
}

fn ip_set_names(input: &Value) -> Value {
    let id = text(input, "id");
    let index = input["tempIndex"]
        .as_u64()
        .expect("`tempIndex` is a number");
    json!({
        "v4": ip_set_name(id, IpVersion::V4, Dataplane::Iptables),
        "v6": ip_set_name(id, IpVersion::V6, Dataplane::Iptables),
        "nftV4": ip_set_name(id, IpVersion::V4, Dataplane::Nftables),
        "nftV6": ip_set_name(id, IpVersion::V6, Dataplane::Nftables),
        "tempV4": temp_ip_set_name(index, IpVersion::V4),
        "tempV6": temp_ip_set_name(index, IpVersion::V6),
    })
}

fn policy_group(input: &Value) -> Value {
    let policies = input["policies"].as_array().expect("`policies` is a list");
    let group = PolicyGroup {
        direction: match text(input, "direction") {
            "inbound" => Direction::Ingress,
            "outbound" => Direction::Egress,
            other => panic!("`{other}` is not a direction"),
        },
        selector: text(input, "selector").to_owned(),
        policies: policies.iter().map(policy_id).collect(),
    };
    json!({
        "uid": group.unique_id(),
        "chain": group.chain_name(),
        "inlined": group.should_be_inlined(),
        "hasNonStaged": group.has_non_staged(),
    })
}

fn policy_id(input: &Value) -> PolicyId {
    PolicyId {
        kind: text(input, "kind").parse().expect("the kind is known"),
        namespace: text(input, "namespace").to_owned(),
        name: text(input, "name").to_owned(),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("`{field}` is not a text in {value}"))
}
