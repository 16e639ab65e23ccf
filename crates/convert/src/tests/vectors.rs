//! Selectors, networks and keys as Calico computed them for the active policies of `calc.json`, and the policies of
//! `k8s-policy-conversion.json`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tortie_api::scalar::Port;
use tortie_api::{Kind, k8s};
use tortie_selector::Selector;

use super::{Converter, Resource, Update};
use tortie_engine::input::{Entity, Policy, Rule};

/// The policies that are there after all updates of a case.
fn policies(case: &Value) -> BTreeMap<String, Policy> {
    let mut converter = Converter::new();
    let mut policies = BTreeMap::new();
    for update in case["updates"].as_array().unwrap() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = |value: &Value| Kind::from_name(value["kind"].as_str().unwrap()).unwrap();
        let updates = if let Some(gone) = update.get("delete") {
            let (namespace, name) = (text(&gone["namespace"]), text(&gone["name"]));
            converter.remove(kind(gone), &namespace, &name)
        } else {
            let resource = Resource::decode_stored(kind(update), update).unwrap();
            let result = converter.set(&resource);
            assert_eq!(result.problems, [], "{update}");
            result.updates
        };
        for update in updates {
            match update {
                Update::Policy(id, Some(policy)) => policies.insert(id.to_string(), policy),
                Update::Policy(id, None) => policies.remove(&id.to_string()),
                _ => None,
            };
        }
    }
    policies
}

fn canonical(selector: &str) -> String {
    Selector::parse(selector).unwrap().to_string()
}

/// The fields of a rule in a message that follow from one side of the rule alone.
fn side(name: &str, entity: &Entity, message: &mut serde_json::Map<String, Value>) {
    let id = |selector: &str| json!([Selector::parse(selector).unwrap().unique_id()]);
    let mut put = |key: String, value: Value| {
        if !matches!(&value, Value::Array(items) if items.is_empty()) && value != json!("") {
            message.insert(key, value);
        }
    };
    let capital = name[..1].to_uppercase() + &name[1..];
    put(format!("{name}Net"), json!(entity.nets));
    put(format!("not{capital}Net"), json!(entity.not_nets));
    put(
        format!("original{capital}Selector"),
        json!(entity.original_selector),
    );
    put(
        format!("originalNot{capital}Selector"),
        json!(entity.original_not_selector),
    );
    put(
        format!("original{capital}NamespaceSelector"),
        json!(entity.original_namespace_selector),
    );
    if let Some(accounts) = &entity.original_service_accounts {
        put(format!("{name}ServiceAccountMatch"), json!(accounts));
    }
    let (mut selector, mut not_selector) = (entity.selector.clone(), entity.not_selector.clone());
    if !selector.is_empty() && !not_selector.is_empty() {
        selector = format!("({selector}) && (!({not_selector}))");
        not_selector.clear();
    }
    // With nothing but named ports, the selector is part of their sets.
    let only_named = !entity.ports.is_empty() && entity.ports.iter().all(Port::is_named);
    if !selector.is_empty() && !only_named {
        put(format!("{name}IpSetIds"), id(&selector));
    }
    if !not_selector.is_empty() {
        put(format!("not{capital}IpSetIds"), id(&not_selector));
    }
}

/// A rule of a message without what does not follow from selectors and networks.
fn reduced(rule: &Value) -> Value {
    let is_kept = |key: &str| {
        key.ends_with("Net")
            || key.ends_with("Selector")
            || key.ends_with("ServiceAccountMatch")
            || (key.ends_with("IpSetIds") && !key.contains("NamedPort"))
    };
    let mut rule = rule.clone();
    let fields = rule.as_object_mut().unwrap();
    fields.retain(|key, _| is_kept(key));
    rule
}

fn expected_rules(rules: &[Rule]) -> Vec<Value> {
    let each = |rule: &Rule| {
        let mut message = serde_json::Map::new();
        side("src", &rule.source, &mut message);
        side("dst", &rule.destination, &mut message);
        Value::Object(message)
    };
    rules.iter().map(each).collect()
}

#[test]
fn selectors_and_networks_are_those_of_calico() {
    let cases = tortie_testkit::vectors("calc.json");
    let mut compared = 0;
    for (index, case) in cases.iter().enumerate() {
        let policies = policies(case);
        for (id, expected) in case["output"]["policies"].as_object().unwrap() {
            let at = format!("case {index}, {id}");
            let policy = policies
                .get(id)
                .unwrap_or_else(|| panic!("{at} is missing"));
            let message = &expected["policy"];
            assert_eq!(json!(policy.tier), message["tier"], "{at}");
            assert_eq!(
                json!(canonical(&policy.selector)),
                message["originalSelector"],
                "{at}"
            );
            for (key, rules) in [
                ("inboundRules", &policy.inbound),
                ("outboundRules", &policy.outbound),
            ] {
                let expected = message[key].as_array().cloned().unwrap_or_default();
                let expected: Vec<Value> = expected.iter().map(reduced).collect();
                assert_eq!(expected_rules(rules), expected, "{at}, {key}");
                compared += expected.len();
            }
        }
    }
    assert!(compared > 100, "{compared} rules");
}

#[test]
fn policies_of_kubernetes_can_all_be_converted() {
    let cases = tortie_testkit::vectors("k8s-policy-conversion.json");
    let mut compared = 0;
    for case in &cases {
        let mut resource: Resource = if let Some(policy) = case.get("networkpolicy") {
            match k8s::network_policy(&serde_json::from_value(policy.clone()).unwrap()).resource {
                Some(policy) => policy.into(),
                None => continue,
            }
        } else if let Some(policy) = case.get("clusternetworkpolicy") {
            let policy = serde_json::from_value(policy.clone()).unwrap();
            match k8s::cluster_network_policy(&policy).resource {
                Some(policy) => policy.into(),
                None => continue,
            }
        } else {
            continue;
        };
        // As the datastore names them.
        let prefix = match resource.kind() {
            Kind::NetworkPolicy => "knp.default.",
            _ => "kcnp.",
        };
        resource.metadata_mut().name.insert_str(0, prefix);
        let result = Converter::new().set(&resource);
        assert_eq!(result.problems, [], "{case}");
        let [Update::Policy(id, Some(_))] = result.updates.as_slice() else {
            panic!("{result:?}")
        };
        assert_eq!(json!(id.kind.name()), case["keyKind"]);
        let key = match id.namespace.as_str() {
            "" => id.name.clone(),
            namespace => format!("{namespace}/{}", id.name),
        };
        assert_eq!(json!(key), case["key"]);
        compared += 1;
    }
    assert!(compared > 20, "{compared} policies");
}
