//! Policies in the custom resources of the group `crd.projectcalico.org`.

use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::{DynamicObject, GroupVersionKind, Status};
use kube::discovery::ApiResource;
use kube::{Api, Error, ResourceExt as _};
use serde_json::{Value, json};
use tortie_operator::BoxError;
use tortie_store::Kind;

const GROUP: &str = "crd.projectcalico.org";
const VERSION: &str = "v1";
const METADATA: &str = "projectcalico.org/metadata";
const DEFAULT_TIER: &str = "default";
const PREFIX: &str = "default.";
const PAGE: u32 = 500;

const KINDS: [Kind; 4] = [
    Kind::NetworkPolicy,
    Kind::GlobalNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::StagedGlobalNetworkPolicy,
];

/// Renames all that need it, and gives them.
pub(super) async fn migrate(cluster: &kube::Client) -> Result<Vec<String>, BoxError> {
    let mut moved = Vec::new();
    for kind in KINDS {
        let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind.as_str());
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural());
        let all: Api<DynamicObject> = Api::all_with(cluster.clone(), &resource);
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = match all.list(&page).await {
                // Not all of these kinds are everywhere.
                Err(Error::Api(response)) if response.code == 404 => break,
                list => list?,
            };
            for object in &list.items {
                let Some(copy) = renamed(object) else {
                    continue;
                };
                let api = match object.namespace() {
                    Some(namespace) => Api::namespaced_with(cluster.clone(), &namespace, &resource),
                    None => all.clone(),
                };
                replace(&api, object, &copy).await?;
                moved.push(format!("{kind}({})", object.name_any()));
            }
            match list.metadata.continue_ {
                Some(token) if !token.is_empty() => page.continue_token = Some(token),
                _ => break,
            }
        }
    }
    Ok(moved)
}

async fn replace(
    api: &Api<DynamicObject>,
    old: &DynamicObject,
    copy: &DynamicObject,
) -> Result<(), Error> {
    match api.create(&PostParams::default(), copy).await {
        Err(Error::Api(response)) if is(&response, "AlreadyExists") => {}
        created => drop(created?),
    }
    let this_one = DeleteParams {
        preconditions: Some(Preconditions {
            uid: old.uid(),
            resource_version: old.resource_version(),
        }),
        ..DeleteParams::default()
    };
    match api.delete(&old.name_any(), &this_one).await {
        Err(Error::Api(response)) if is(&response, "NotFound") => Ok(()),
        deleted => deleted.map(drop),
    }
}

fn is(response: &Status, reason: &str) -> bool {
    response.reason == reason
}

/// The policy under its own name; nothing if it has that already.
fn renamed(policy: &DynamicObject) -> Option<DynamicObject> {
    let tier = policy.data.pointer("/spec/tier").and_then(Value::as_str);
    if !matches!(tier, None | Some("" | DEFAULT_TIER)) {
        return None;
    }
    let stored = policy.metadata.name.as_deref()?;
    let note = policy.annotations().get(METADATA);
    let note: Option<Value> = note.and_then(|note| serde_json::from_str(note).ok());
    let noted = note
        .as_ref()
        .and_then(|note| note["name"].as_str())
        .filter(|name| !name.is_empty());
    let name = noted.or_else(|| stored.strip_prefix(PREFIX))?.to_owned();
    if name == stored {
        return None;
    }
    let mut copy = policy.clone();
    let mut note = note.unwrap_or_else(|| json!({}));
    note["name"] = name.as_str().into();
    let mut annotations = policy.annotations().clone();
    annotations.insert(METADATA.to_owned(), note.to_string());
    copy.metadata = kube::core::ObjectMeta {
        name: Some(name),
        namespace: policy.metadata.namespace.clone(),
        labels: policy.metadata.labels.clone(),
        annotations: Some(annotations),
        ..Default::default()
    };
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, note: Option<&str>, tier: Option<&str>, expected: Option<&str>) {
        let mut policy: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "crd.projectcalico.org/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "7"},
            "spec": {},
        }))
        .unwrap();
        if let Some(tier) = tier {
            policy.data["spec"]["tier"] = tier.into();
        }
        if let Some(note) = note {
            policy
                .annotations_mut()
                .insert(METADATA.into(), note.into());
        }
        let copy = renamed(&policy);
        assert_eq!(
            copy.as_ref().and_then(|copy| copy.metadata.name.as_deref()),
            expected
        );
        if let Some(copy) = copy {
            assert_eq!(copy.metadata.uid, None);
            assert_eq!(copy.metadata.resource_version, None);
            assert_eq!(copy.metadata.namespace.as_deref(), Some("shop"));
            let note: Value = serde_json::from_str(&copy.annotations()[METADATA]).unwrap();
            assert_eq!(note["name"].as_str(), expected);
        }
    }

    #[test]
    fn policies_of_the_default_tier_get_the_name_that_people_gave_them() {
        check(
            "default.web",
            Some(r#"{"name":"web"}"#),
            Some("default"),
            Some("web"),
        );
        check(
            "default.web",
            Some(r#"{"name":"web","labels":{"a":"b"}}"#),
            None,
            Some("web"),
        );
        check("default.web", None, None, Some("web"));
        check("default.web", Some("{"), Some(""), Some("web"));
    }

    #[test]
    fn others_stay() {
        check("web", Some(r#"{"name":"web"}"#), Some("default"), None);
        check(
            "default.web",
            Some(r#"{"name":"default.web"}"#),
            Some("default"),
            None,
        );
        check("ops.web", Some(r#"{"name":"web"}"#), Some("ops"), None);
        check("web", None, None, None);
    }
}
