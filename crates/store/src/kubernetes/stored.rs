//! Resources as the custom resources that store them, in either API group.

use serde_json::{Value, json};
use tortie_api::crd::Group;
use tortie_api::scalar::go_bool;
use tortie_api::{Kind, Path, Problems, Resource};

use super::{affinity_labels, v1_metadata};

/// The custom resource for a resource.
pub(super) fn encode(group: Group, resource: &Resource) -> Result<Value, Problems> {
    let mut resource = resource.clone();
    let kind = resource.kind();
    if kind == Kind::IpamHandle {
        let name = &mut resource.metadata_mut().name;
        *name = stored_name(kind, name);
    }
    if let Resource::BlockAffinity(affinity) = &mut resource {
        affinity_labels::set(affinity);
    }
    let mut object = resource.to_value();
    if group == Group::V1 {
        let metadata = v1_metadata::to_stored(kind, resource.metadata()).map_err(|reason| {
            let mut problems = Problems::default();
            problems.add_missing(&Path::ROOT.field("metadata"), reason);
            problems
        })?;
        object["metadata"] = json!(metadata);
        object["apiVersion"] = format!("{}/{}", group.name(), group.version()).into();
        object["kind"] = group.crd_names(kind).0.into();
        if let Resource::BlockAffinity(affinity) = &resource {
            object["spec"]["deleted"] = affinity.spec.deleted.to_string().into();
        }
    }
    Ok(object)
}

/// The resource that a custom resource stores; the error says what cannot be read.
pub(super) fn decode(group: Group, kind: Kind, object: &Value) -> Result<Resource, String> {
    let mut resource = match kind {
        Kind::BlockAffinity if group == Group::V1 => decode_affinity(object)?,
        _ => Resource::decode_stored(kind, object).map_err(|error| error.to_string())?,
    };
    // Kubernetes' own business, and as large as the rest.
    resource.metadata_mut().managed_fields = None;
    if group == Group::V1 {
        let metadata = resource.metadata_mut();
        *metadata = v1_metadata::from_stored(std::mem::take(metadata))?;
    }
    if let Resource::IpamHandle(handle) = &mut resource
        && stored_name(kind, &handle.spec.handle_id) == handle.metadata.name
    {
        handle.metadata.name.clone_from(&handle.spec.handle_id);
    }
    Ok(resource)
}

/// In the older group, `deleted` is text.
fn decode_affinity(object: &Value) -> Result<Resource, String> {
    let mut object = object.clone();
    let deleted = match object.pointer("/spec/deleted") {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) if text.is_empty() => false,
        Some(Value::String(text)) => go_bool(text)
            .ok_or_else(|| format!("spec.deleted is `{text}`, which must be `true` or `false`"))?,
        Some(other) => {
            return Err(format!(
                "spec.deleted is {other}, which must be the text `true` or `false`"
            ));
        }
    };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("deleted".to_owned(), deleted.into());
    }
    Resource::decode_stored(Kind::BlockAffinity, &object).map_err(|error| error.to_string())
}

/// The name under which an object is stored: that of the resource, except that handles may have capital letters,
/// which Kubernetes does not allow.
pub(super) fn stored_name(kind: Kind, name: &str) -> String {
    if kind == Kind::IpamHandle {
        name.to_ascii_lowercase()
    } else {
        name.to_owned()
    }
}

/// Whether objects of the kind are marked as deleted before they are removed.
///
/// A mark is an update, which a writer that read the object before cannot miss; the removal alone would not stop it
/// from storing the object again.
pub(super) fn marks_deletes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::IpamBlock | Kind::IpamHandle | Kind::BlockAffinity
    )
}

/// Whether the resource is marked as deleted.
pub(super) fn is_marked(resource: &Resource) -> bool {
    match resource {
        Resource::IpamBlock(block) => block.spec.deleted,
        Resource::IpamHandle(handle) => handle.spec.deleted,
        Resource::BlockAffinity(affinity) => affinity.spec.deleted,
        _ => false,
    }
}

/// Marks the resource as deleted.
pub(super) fn mark(resource: &mut Resource) {
    match resource {
        Resource::IpamBlock(block) => block.spec.deleted = true,
        Resource::IpamHandle(handle) => handle.spec.deleted = true,
        Resource::BlockAffinity(affinity) => affinity.spec.deleted = true,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affinity() -> Resource {
        let affinity = json!({
            "metadata": {"name": "node-10-0-0-0-26"},
            "spec": {"state": "confirmed", "node": "node", "cidr": "10.0.0.0/26", "deleted": false},
        });
        Resource::decode_stored(Kind::BlockAffinity, &affinity).unwrap()
    }

    #[test]
    fn the_older_group_keeps_the_mark_of_an_affinity_as_text() {
        let mut marked = affinity();
        mark(&mut marked);
        for (group, resource, expected) in [
            (Group::V1, affinity(), json!("false")),
            (Group::V1, marked.clone(), json!("true")),
            (Group::V3, marked, json!(true)),
        ] {
            let object = encode(group, &resource).unwrap();
            assert_eq!(object["spec"]["deleted"], expected);
            let read = decode(group, Kind::BlockAffinity, &object).unwrap();
            assert_eq!(is_marked(&read), is_marked(&resource));
        }
    }

    #[test]
    fn an_unreadable_mark_is_an_error() {
        let mut object = encode(Group::V1, &affinity()).unwrap();
        object["spec"]["deleted"] = "maybe".into();
        assert!(decode(Group::V1, Kind::BlockAffinity, &object).is_err());
    }

    #[test]
    fn handles_are_stored_in_lower_case_and_read_back_as_they_were() {
        let handle =
            json!({"metadata": {"name": "net.ABC"}, "spec": {"handleID": "net.ABC", "block": {}}});
        let handle = Resource::decode_stored(Kind::IpamHandle, &handle).unwrap();
        let object = encode(Group::V3, &handle).unwrap();
        assert_eq!(object["metadata"]["name"], "net.abc");
        assert_eq!(
            decode(Group::V3, Kind::IpamHandle, &object).unwrap(),
            handle
        );
    }

    #[test]
    fn the_configuration_of_address_management_has_another_name_in_the_older_group() {
        let config = json!({"metadata": {"name": "default"}, "spec": {"strictAffinity": true}});
        let config = Resource::decode_stored(Kind::IpamConfiguration, &config).unwrap();
        let object = encode(Group::V1, &config).unwrap();
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&json!("IPAMConfig"), &json!("crd.projectcalico.org/v1"))
        );
        assert_eq!(
            encode(Group::V3, &config).unwrap()["kind"],
            "IPAMConfiguration"
        );
    }
}
