use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOW: &str = "2026-01-02T03:04:05Z";

fn manager(name: &str, operation: Operation) -> Manager {
    Manager {
        name: name.to_owned(),
        operation,
        api_version: "projectcalico.org/v3".to_owned(),
        subresource: String::new(),
    }
}

fn applied_by(live: &Value, name: &str, object: &Value, force: bool) -> Result<Value> {
    let manager = manager(name, Operation::Apply);
    let wish = Apply {
        manager: &manager,
        object,
        force,
        now: NOW,
    };
    apply(live, wish, Structure::of("", "Pod"))
}

fn policy(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})
}

fn empty() -> Value {
    json!({"metadata": {}})
}

#[test]
fn what_is_not_named_any_more_is_removed() {
    let first = policy(&json!({"order": 1, "tier": "gold"}));
    let live = applied_by(&empty(), "ann", &first, false).unwrap();
    let entry = &live["metadata"]["managedFields"][0];
    assert_eq!(entry["manager"], "ann");
    assert_eq!(entry["operation"], "Apply");
    assert_eq!(
        entry["fieldsV1"],
        json!({"f:spec": {"f:order": {}, "f:tier": {}}})
    );
    let live = applied_by(&live, "ann", &policy(&json!({"order": 1})), false).unwrap();
    assert_eq!(live["spec"], json!({"order": 1}));
}

#[test]
fn what_others_own_too_stays() {
    let spec = policy(&json!({"order": 1, "tier": "gold"}));
    let live = applied_by(&empty(), "ann", &spec, false).unwrap();
    let live = applied_by(&live, "bob", &policy(&json!({"tier": "gold"})), false).unwrap();
    let live = applied_by(&live, "ann", &policy(&json!({})), false).unwrap();
    assert_eq!(live["spec"], json!({"tier": "gold"}));
}

#[test]
fn another_value_is_a_conflict_unless_it_is_forced() {
    let live = applied_by(&empty(), "ann", &policy(&json!({"order": 1})), false).unwrap();
    let other = policy(&json!({"order": 2}));
    let failure = applied_by(&live, "bob", &other, false).unwrap_err();
    assert_eq!(failure.reason, Reason::Conflict);
    assert_eq!(
        failure.message,
        "Apply failed with 1 conflict: conflict with \"ann\": .spec.order"
    );
    assert_eq!(failure.details.causes[0].field, ".spec.order");
    let live = applied_by(&live, "bob", &other, true).unwrap();
    assert_eq!(live["spec"]["order"], 2);
    let managers = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "{managers:?}");
    assert_eq!(managers[0]["manager"], "bob");
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let spec = policy(&json!({"order": 1, "containers": [{"name": "a", "image": "x"}]}));
    let live = applied_by(&empty(), "ann", &spec, false).unwrap();
    let manager = manager("ann", Operation::Apply);
    let again = Apply {
        manager: &manager,
        object: &spec,
        force: false,
        now: "2027-01-01T00:00:00Z",
    };
    assert_eq!(apply(&live, again, Structure::of("", "Pod")).unwrap(), live);
}

#[test]
fn items_of_lists_have_owners_of_their_own() {
    let one = policy(&json!({"containers": [{"name": "a", "image": "x"}]}));
    let two = policy(&json!({"containers": [{"name": "b", "image": "y"}]}));
    let live = applied_by(&empty(), "ann", &one, false).unwrap();
    let live = applied_by(&live, "bob", &two, false).unwrap();
    assert_eq!(live["spec"]["containers"].as_array().unwrap().len(), 2);
    let live = applied_by(&live, "ann", &policy(&json!({})), false).unwrap();
    assert_eq!(
        live["spec"]["containers"],
        json!([{"name": "b", "image": "y"}])
    );
    let changed = policy(&json!({"containers": [{"name": "b", "image": "z"}]}));
    let failure = applied_by(&live, "ann", &changed, false).unwrap_err();
    assert_eq!(
        failure.details.causes[0].field,
        ".spec.containers[name=\"b\"].image"
    );
}

#[test]
fn other_writes_take_over_what_they_change() {
    let live = applied_by(
        &empty(),
        "ann",
        &policy(&json!({"order": 1, "tier": "gold"})),
        false,
    );
    let old = live.unwrap();
    let mut new = old.clone();
    new["spec"]["order"] = json!(5);
    let structure = Structure::of("", "Pod");
    let edit = manager("edit", Operation::Update);
    track(&old, &mut new, &edit, NOW, structure);
    let failure = applied_by(
        &new,
        "ann",
        &policy(&json!({"order": 1, "tier": "gold"})),
        false,
    );
    assert_eq!(
        failure.unwrap_err().message,
        "Apply failed with 1 conflict: conflict with \"edit\" using projectcalico.org/v3: .spec.order"
    );
    let mut gone = new.clone();
    gone["spec"].as_object_mut().unwrap().remove("order");
    track(&new, &mut gone, &edit, NOW, structure);
    let managers = gone["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "who owns nothing is forgotten");
}

#[test]
fn sets_survive_the_wire() {
    let object = policy(&json!({
        "containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}],
        "empty": {},
    }));
    let object = {
        let mut object = object;
        object["metadata"]["finalizers"] = json!(["x", "y"]);
        object
    };
    let set = FieldSet::of(&object, Structure::of("", "Pod")).without_identity();
    assert_eq!(FieldSet::from_value(&set.to_value()), set);
    let wire = set.to_value();
    assert_eq!(wire["f:metadata"]["f:finalizers"]["v:\"x\""], json!({}));
    let keys = "k:{\"containerPort\":1,\"protocol\":\"TCP\"}";
    let container = &wire["f:spec"]["f:containers"]["k:{\"name\":\"a\"}"];
    assert_eq!(container["."], json!({}));
    assert!(container["f:ports"][keys].is_object(), "{wire}");
}

/// As many as fit into a request, by two managers: whoever compares all with all does not come to an end.
#[test]
fn lists_may_have_very_many_items() {
    let pod = |image: &str| {
        let containers =
            (0..20_000).map(|number| json!({"name": format!("c{number}"), "image": image}));
        json!({"spec": {"containers": containers.collect::<Value>()}})
    };
    let live = applied_by(&json!({"metadata": {}}), "ann", &pod("one"), false).unwrap();
    let shared = applied_by(&live, "bob", &pod("one"), false).unwrap();
    assert_eq!(shared["spec"], live["spec"]);
    let refused = applied_by(&live, "bob", &pod("two"), false).unwrap_err();
    assert_eq!(refused.details.causes.len(), 20_000);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!(true))];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-d]", inner.clone(), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}

fn spec() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", value(), 0..4)
        .prop_map(|fields| policy(&Value::Object(fields.into_iter().collect())))
}

proptest! {
    /// One manager alone always gets exactly what it applied last.
    #[test]
    fn the_last_apply_of_one_manager_is_the_object(first in spec(), second in spec()) {
        let live = applied_by(&empty(), "ann", &first, false).unwrap();
        let live = applied_by(&live, "ann", &second, false).unwrap();
        let from_nothing = applied_by(&empty(), "ann", &second, false).unwrap();
        prop_assert_eq!(&live["spec"], &from_nothing["spec"]);
    }

    #[test]
    fn sets_obey_the_laws(one in spec(), two in spec()) {
        let structure = Structure::of("", "Pod");
        let (one, two) = (FieldSet::of(&one, structure), FieldSet::of(&two, structure));
        prop_assert_eq!(&one.difference(&two).union(&one.intersection(&two)), &one);
        prop_assert!(one.difference(&one).is_empty());
        prop_assert_eq!(one.intersection(&two), two.intersection(&one));
        let mut rest = one.clone();
        rest.remove(&two);
        prop_assert_eq!(rest, one.difference(&two));
        prop_assert_eq!(FieldSet::from_value(&one.to_value()), one);
    }
}
