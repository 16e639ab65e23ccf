//! Metadata of objects in the group `crd.projectcalico.org/v1`.
//!
//! What users see as the metadata of a resource is kept as JSON in an annotation of the stored object, whose own
//! metadata has little more than a name. UIDs differ between the two, because Kubernetes' garbage collection must
//! not take a resource and the object that stores it for one.
//!
//! # Invariants
//! - Reading what was written gives the same metadata, apart from what Kubernetes itself assigns.
//! - A resource is called what its object is called. For policies of Calico before 3.32 that are not migrated, the
//!   annotation has a shorter name; the stored one identifies them, so that both can exist during the migration.

use tortie_api::k8s::convert_uid;
use tortie_api::meta::{Metadata, OwnerReference};
use tortie_api::{API_VERSION, Kind};

/// The annotation that holds the metadata.
const METADATA: &str = "projectcalico.org/metadata";

/// The API version of the stored objects, as owners are named in the annotation.
const STORED_API_VERSION: &str = "crd.projectcalico.org/v1";

/// The metadata to store for a resource; the error names a UID that is not one.
pub(super) fn to_stored(kind: Kind, metadata: &Metadata) -> Result<Metadata, String> {
    let mut kept = Metadata {
        name: if kind.is_tiered_policy() {
            metadata.name.clone()
        } else {
            String::new()
        },
        namespace: String::new(),
        resource_version: String::new(),
        uid: String::new(),
        ..metadata.clone()
    };
    for owner in &mut kept.owner_references {
        if owner.api_version == API_VERSION {
            convert_owner(owner, STORED_API_VERSION)?;
        }
    }
    let is_ours =
        |key: &str| key.contains("projectcalico.org/") || key.contains("operator.tigera.io/");
    let mut labels = metadata.labels.clone();
    labels.retain(|key, _| is_ours(key));
    let mut annotations = metadata.annotations.clone();
    annotations.retain(|key, _| is_ours(key));
    let json = serde_json::to_string(&kept).expect("metadata has string keys only");
    annotations.insert(METADATA.to_owned(), json);
    Ok(Metadata {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        resource_version: metadata.resource_version.clone(),
        uid: converted(&metadata.uid)?,
        labels,
        annotations,
        ..Metadata::default()
    })
}

/// The metadata of a resource from that of its stored object; the error says what cannot be read.
pub(super) fn from_stored(mut stored: Metadata) -> Result<Metadata, String> {
    stored.uid = converted(&stored.uid)?;
    let Some(json) = stored.annotations.remove(METADATA) else {
        return Ok(stored);
    };
    let kept: Metadata = serde_json::from_str(&json)
        .map_err(|error| format!("annotation {METADATA} cannot be read: {error}"))?;
    let Metadata {
        mut labels,
        mut annotations,
        mut owner_references,
        ..
    } = kept.clone();
    for owner in &mut owner_references {
        // Versions before the conversion of UIDs wrote owners as users name them.
        if owner.api_version == STORED_API_VERSION || owner.api_version == API_VERSION {
            convert_owner(owner, API_VERSION)?;
        }
    }
    // Old versions kept some of these in the object itself; the annotation wins.
    for (key, value) in stored.labels {
        labels.entry(key).or_insert(value);
    }
    for (key, value) in stored.annotations {
        annotations.entry(key).or_insert(value);
    }
    Ok(Metadata {
        name: stored.name,
        namespace: stored.namespace,
        resource_version: stored.resource_version,
        uid: stored.uid,
        creation_timestamp: kept
            .creation_timestamp
            .clone()
            .or(stored.creation_timestamp),
        labels,
        annotations,
        owner_references,
        ..kept
    })
}

fn convert_owner(owner: &mut OwnerReference, api_version: &str) -> Result<(), String> {
    owner.uid = converted(&owner.uid)?;
    api_version.clone_into(&mut owner.api_version);
    Ok(())
}

fn converted(uid: &str) -> Result<String, String> {
    if uid.is_empty() {
        return Ok(String::new());
    }
    convert_uid(uid).ok_or_else(|| format!("`{uid}` is not a UID, which must be a UUID"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const UID: &str = "bc6eba75-39ef-495e-a8bc-9919214612b1";
    const CONVERTED_UID: &str = "3d765dae-9cf7-497a-a83d-99988462488d";

    fn metadata(value: Value) -> Metadata {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_names_and_our_own_keys_stay_outside_of_the_annotation() {
        let stored = to_stored(
            Kind::NetworkPolicy,
            &metadata(json!({
                "name": "a", "namespace": "ns", "uid": UID, "resourceVersion": "7",
                "labels": {"x": "1", "projectcalico.org/tier": "default"},
                "annotations": {"y": "2", "operator.tigera.io/z": "3"},
                "ownerReferences": [{"apiVersion": "projectcalico.org/v3", "kind": "Tier", "name": "t", "uid": UID}],
            })),
        );
        let stored = json!(stored.unwrap());
        let kept: Value =
            serde_json::from_str(stored["annotations"][METADATA].as_str().unwrap()).unwrap();
        assert_eq!(
            kept,
            json!({
                "name": "a",
                "labels": {"x": "1", "projectcalico.org/tier": "default"},
                "annotations": {"y": "2", "operator.tigera.io/z": "3"},
                "ownerReferences": [
                    {"apiVersion": "crd.projectcalico.org/v1", "kind": "Tier", "name": "t", "uid": CONVERTED_UID},
                ],
            })
        );
        assert_eq!(
            stored["labels"],
            json!({"projectcalico.org/tier": "default"})
        );
        assert_eq!(stored["annotations"]["operator.tigera.io/z"], "3");
        assert_eq!(
            (&stored["uid"], &stored["resourceVersion"]),
            (&json!(CONVERTED_UID), &json!("7"))
        );
        assert_eq!(stored["ownerReferences"], Value::Null);
    }

    #[test]
    fn reading_gives_back_what_was_written() {
        let original = metadata(json!({
            "name": "a", "uid": UID, "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"x": "1"}, "annotations": {"y": "2"}, "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "projectcalico.org/v3", "kind": "Tier", "name": "t", "uid": UID}],
        }));
        for kind in [Kind::Tier, Kind::GlobalNetworkPolicy] {
            let stored = to_stored(kind, &original).unwrap();
            assert_eq!(from_stored(stored).unwrap(), original);
        }
    }

    #[test]
    fn an_object_without_the_annotation_keeps_its_metadata() {
        let stored = metadata(json!({"name": "a", "uid": UID, "labels": {"x": "1"}}));
        let read = from_stored(stored.clone()).unwrap();
        assert_eq!(
            read,
            Metadata {
                uid: CONVERTED_UID.into(),
                ..stored
            }
        );
    }

    #[test]
    fn a_policy_that_is_not_migrated_is_called_as_it_is_stored() {
        let stored =
            metadata(json!({"name": "default.a", "annotations": {METADATA: r#"{"name":"a"}"#}}));
        assert_eq!(from_stored(stored).unwrap().name, "default.a");
    }
}
