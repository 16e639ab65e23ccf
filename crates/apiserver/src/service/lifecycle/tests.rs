//! What the server keeps to itself, and what clients may say.

use super::*;
use crate::registry::Registry;

fn tiers() -> ResourceType {
    let registry = Registry::standalone();
    registry
        .find("projectcalico.org", "v3", "tiers")
        .unwrap()
        .clone()
}

fn identity() -> Identity {
    Identity {
        uid: "u-1".into(),
        suffix: "abcde".into(),
        now: "2026-01-02T03:04:05Z".into(),
    }
}

fn old() -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "Tier",
        "metadata": {
            "name": "gold", "uid": "u-1", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "spec": {"order": 1},
        "status": {"conditions": []},
    })
}

#[test]
fn the_envelope_must_fit_the_path() {
    let of = tiers();
    let mut object = json!({"spec": {}});
    check_envelope(&of, None, Some("gold"), &mut object).unwrap();
    assert_eq!(object["kind"], "Tier");
    assert_eq!(object["metadata"]["name"], "gold");
    for wrong in [
        json!({"kind": "Pod"}),
        json!({"apiVersion": "v1"}),
        json!({"metadata": {"name": "silver"}}),
        json!({"metadata": 3}),
        json!([]),
    ] {
        let result = check_envelope(&of, None, Some("gold"), &mut wrong.clone());
        assert_eq!(result.unwrap_err().reason, Reason::BadRequest, "{wrong}");
    }
}

#[test]
fn a_new_object_gets_an_identity() {
    let of = tiers();
    let mut object = json!({
        "metadata": {"generateName": "gold-", "uid": "mine", "generation": 9},
        "status": {"conditions": [1]},
    });
    prepare_new(&of, &mut object, &identity()).unwrap();
    let metadata = &object["metadata"];
    assert_eq!(metadata["name"], "gold-abcde");
    assert_eq!(
        (&metadata["uid"], &metadata["generation"]),
        (&json!("u-1"), &json!(1))
    );
    assert_eq!(object.get("status"), None);
    let mut object = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    assert!(prepare_new(&of, &mut object, &identity()).is_err());
    assert!(prepare_new(&of, &mut json!({}), &identity()).is_err());
}

#[test]
fn a_change_keeps_identity_and_state() {
    let of = tiers();
    let mut new =
        json!({"metadata": {"name": "gold", "uid": "u-1", "generation": 99}, "spec": {"order": 2}});
    prepare_change(&of, &old(), &mut new, Mode::default()).unwrap();
    assert_eq!(new["metadata"]["generation"], 4);
    assert_eq!(new["metadata"]["resourceVersion"], "7");
    assert_eq!(new["status"], json!({"conditions": []}));
    let mut labelled = old();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    prepare_change(&of, &old(), &mut labelled, Mode::default()).unwrap();
    assert_eq!(
        labelled["metadata"]["generation"], 3,
        "labels are no specification"
    );
}

#[test]
fn the_state_is_changed_alone() {
    let of = tiers();
    let mode = Mode {
        is_status: true,
        ..Mode::default()
    };
    let mut new =
        json!({"metadata": {"name": "gold"}, "spec": {"order": 9}, "status": {"conditions": [1]}});
    prepare_change(&of, &old(), &mut new, mode).unwrap();
    assert_eq!(new["spec"]["order"], 1);
    assert_eq!(new["status"]["conditions"], json!([1]));
    assert_eq!(new["metadata"]["generation"], 3);
}

#[test]
fn another_object_or_revision_is_a_conflict() {
    for metadata in [json!({"uid": "u-2"}), json!({"resourceVersion": "6"})] {
        let mut new = json!({"metadata": metadata, "spec": {}});
        let failure = prepare_change(&tiers(), &old(), &mut new, Mode::default()).unwrap_err();
        assert_eq!(failure.reason, Reason::Conflict);
        assert!(
            failure
                .message
                .starts_with("Operation cannot be fulfilled on tiers.projectcalico.org \"gold\": ")
        );
    }
}

#[test]
fn finalizers_hold_an_object_back() {
    let mut object = old();
    object["metadata"]["finalizers"] = json!(["a"]);
    let marked = mark_deleted(&object, "2026-02-02T00:00:00Z");
    assert!(!is_to_be_removed(&marked));
    assert_eq!(
        mark_deleted(&marked, "later"),
        marked,
        "the first time counts"
    );
    let mut freed = marked.clone();
    freed["metadata"]["finalizers"] = json!([]);
    assert!(is_to_be_removed(&freed));
    assert!(!is_to_be_removed(&old()));
}
