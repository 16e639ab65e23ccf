//! Reading what a datastore holds, which a newer version or another program may have written.
//!
//! # Invariants
//! - A field that is not known is left out. Below a rule of a policy or profile that is remembered, since a condition that
//!   is overlooked would make the rule match more than it should.
//! - What stands in for a policy that cannot be read denies everything that the policy decides about.

use serde_json::{Map, Value, json};
use tortie_selector::Selector;

use crate::kind::Kind;
use crate::resource::Resource;
use crate::rule::Rule;
use crate::schema::{self, Node, Shape};

/// The two lists of rules of a spec.
const DIRECTIONS: [&str; 2] = ["ingress", "egress"];

/// Fields of a policy's spec that say what it decides about, besides its types.
const SCOPE: [&str; 7] = [
    "tier",
    "order",
    "selector",
    "namespaceSelector",
    "serviceAccountSelector",
    "doNotTrack",
    "preDNAT",
];

/// Fields of [`SCOPE`] that are selectors: without them the policy would decide about something else.
const SELECTORS: [&str; 3] = ["selector", "namespaceSelector", "serviceAccountSelector"];

/// Comes before all policies that people give an order.
const FIRST: f64 = -1e12;

/// Fields that a rule does not know, by direction and number of the rule.
pub(crate) struct Unknown(Vec<(usize, usize, Vec<String>)>);

/// Takes the fields out of a stored object that its rules do not know; nothing if there are none.
pub(crate) fn take_unknown(kind: Kind, value: &mut Value) -> Option<Unknown> {
    let Shape::Struct(object) = &schema::of(kind).shape else {
        return None;
    };
    let Shape::Struct(spec) = &object.known.get("spec")?.shape else {
        return None;
    };
    let stored = value.get_mut("spec")?;
    let mut unknown = Vec::new();
    for (direction, name) in DIRECTIONS.iter().enumerate() {
        let Some(Shape::List { items, .. }) = spec.known.get(*name).map(|node| &node.shape) else {
            continue;
        };
        let rules = stored.get_mut(*name).and_then(Value::as_array_mut);
        for (index, rule) in rules.into_iter().flatten().enumerate() {
            let mut fields = Vec::new();
            prune(items, rule, "", &mut fields);
            if !fields.is_empty() {
                unknown.push((direction, index, fields));
            }
        }
    }
    (!unknown.is_empty()).then_some(Unknown(unknown))
}

impl Unknown {
    /// Remembers the fields in the rules of the object that they were taken out of.
    pub(crate) fn mark(self, resource: &mut Resource) {
        let Some(directions) = rules_of(resource) else {
            return;
        };
        for (direction, index, fields) in self.0 {
            if let Some(rule) = directions[direction].get_mut(index) {
                rule.unknown = fields;
            }
        }
    }
}

/// What stands in for a policy that is enforced and cannot be read; nothing where not even its selectors can be.
pub fn stand_in(kind: Kind, value: &Value) -> Option<Resource> {
    if !matches!(kind, Kind::NetworkPolicy | Kind::GlobalNetworkPolicy) {
        return None;
    }
    let stored = value.get("spec")?.as_object()?;
    let mut spec = Map::new();
    for field in SCOPE {
        let Some(content) = stored.get(field).filter(|content| !content.is_null()) else {
            continue;
        };
        let is_selector = SELECTORS.contains(&field);
        if is_selector {
            Selector::parse(content.as_str()?).ok()?;
        }
        let alone = json!({"metadata": {"name": "x"}, "spec": {field: content}});
        match Resource::decode_stored(kind, &alone) {
            Ok(_) => spec.insert(field.to_owned(), content.clone()),
            Err(_) if is_selector => return None,
            Err(_) if field == "order" => spec.insert(field.to_owned(), FIRST.into()),
            Err(_) => None,
        };
    }
    let mut types = Vec::new();
    for (direction, name) in [("Ingress", "ingress"), ("Egress", "egress")] {
        let says = match stored.get("types") {
            None | Some(Value::Null) => direction == "Ingress" || stored.contains_key(name),
            Some(Value::Array(types)) => {
                types.iter().any(|given| given == direction)
                    || types
                        .iter()
                        .any(|given| given != "Ingress" && given != "Egress")
            }
            Some(_) => true,
        };
        if says {
            types.push(direction);
            spec.insert(name.to_owned(), json!([{"action": "Deny"}]));
        }
    }
    spec.insert("types".to_owned(), json!(types));
    if let Some(flag) = stored.get("applyOnForward") {
        spec.insert("applyOnForward".to_owned(), (flag == true).into());
    }
    let metadata = value.get("metadata").cloned().unwrap_or_default();
    let read = |metadata: &Value| {
        let object = json!({"metadata": metadata, "spec": spec});
        Resource::decode_stored(kind, &object).ok()
    };
    let names = || {
        let part = |name: &str| metadata.get(name).and_then(Value::as_str);
        json!({
            "name": part("name").unwrap_or_default(),
            "namespace": part("namespace").unwrap_or_default(),
        })
    };
    read(&metadata).or_else(|| read(&names()))
}

/// Removes what a schema does not know.
fn prune(node: &Node, value: &mut Value, at: &str, unknown: &mut Vec<String>) {
    match (&node.shape, value) {
        (Shape::Struct(fields), Value::Object(object)) => {
            object.retain(|name, field| {
                let at = match at {
                    "" => name.clone(),
                    at => format!("{at}.{name}"),
                };
                if let Some(node) = fields.known.get(name) {
                    prune(node, field, &at, unknown);
                    return true;
                }
                // Notes do not take part in matching.
                if !at.starts_with("metadata.") && !field.is_null() {
                    unknown.push(at);
                }
                false
            });
        }
        (Shape::List { items, .. }, Value::Array(values)) => {
            for (index, value) in values.iter_mut().enumerate() {
                prune(items, value, &format!("{at}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Ingress and egress.
fn rules_of(resource: &mut Resource) -> Option<[&mut Vec<Rule>; 2]> {
    Some(match resource {
        Resource::NetworkPolicy(policy) => [&mut policy.spec.ingress, &mut policy.spec.egress],
        Resource::GlobalNetworkPolicy(policy) => {
            [&mut policy.spec.ingress, &mut policy.spec.egress]
        }
        Resource::StagedNetworkPolicy(staged) => {
            let policy = &mut staged.spec.policy;
            [&mut policy.ingress, &mut policy.egress]
        }
        Resource::StagedGlobalNetworkPolicy(staged) => {
            let policy = &mut staged.spec.policy;
            [&mut policy.ingress, &mut policy.egress]
        }
        Resource::Profile(profile) => [&mut profile.spec.ingress, &mut profile.spec.egress],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(spec: &Value) -> Value {
        json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})
    }

    #[test]
    fn fields_that_a_rule_does_not_know_are_remembered_also_when_it_is_written_again() {
        let value = policy(&json!({
            "new": 1,
            "ingress": [
                {"action": "Allow", "source": {"domains": ["x"], "nets": ["10.0.0.0/8"]}, "later": 1},
                {"action": "Allow", "metadata": {"new": 1}, "other": null},
            ],
            "egress": [{"action": "Deny", "http": {"paths": [{"exact": "/", "glob": "/*"}]}}],
        }));
        for kind in [Kind::NetworkPolicy, Kind::GlobalNetworkPolicy] {
            let mut resource = Resource::decode_stored(kind, &value).unwrap();
            let unknown = |resource: &mut Resource| {
                rules_of(resource)
                    .unwrap()
                    .map(|rules| rules.iter().map(|rule| rule.unknown.clone()).collect())
            };
            let found: [Vec<Vec<String>>; 2] = unknown(&mut resource);
            assert_eq!(found[0][0], ["later", "source.domains"]);
            assert_eq!(found[0][1], [""; 0]);
            assert_eq!(found[1][0], ["http.paths[0].glob"]);
            let mut again = Resource::decode_stored(kind, &resource.to_value()).unwrap();
            let found: [Vec<Vec<String>>; 2] = unknown(&mut again);
            assert_eq!(found[0][0], ["x-unknown"]);
            let refused = resource.validate().unwrap_err().to_string();
            assert!(refused.contains("later, source.domains"), "{refused}");
        }
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_stood_in_for_by_one_that_denies_the_same() {
        let bad = json!([{"action": "@eny"}]);
        for (spec, expected) in [
            (
                json!({"selector": "a == 'b'", "tier": "t", "order": 5, "types": ["Egress"], "egress": bad}),
                json!({"selector": "a == 'b'", "tier": "t", "order": 5, "types": ["Egress"], "egress": [{"action": "Deny"}]}),
            ),
            (
                json!({"order": "first", "ingress": bad}),
                json!({"order": -1_000_000_000_000_i64, "types": ["Ingress"], "ingress": [{"action": "Deny"}]}),
            ),
            (
                json!({"types": ["Sideways"]}),
                json!({
                    "types": ["Ingress", "Egress"],
                    "ingress": [{"action": "Deny"}], "egress": [{"action": "Deny"}],
                }),
            ),
        ] {
            let resource = stand_in(Kind::NetworkPolicy, &policy(&spec)).unwrap();
            assert_eq!(resource.to_value()["spec"], expected);
            assert_eq!(resource.metadata().name, "p");
        }
        for spec in [
            json!({"selector": "a =="}),
            json!({"selector": 5}),
            json!([]),
        ] {
            assert_eq!(stand_in(Kind::NetworkPolicy, &policy(&spec)), None);
        }
    }
}
