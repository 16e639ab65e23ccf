//! Installs the definitions of Calico's resources in a cluster.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;
use tortie_api::crd::{Group, manifests};

/// How long the API server may take to serve a new kind.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Creates the definitions, or brings those that are there up to date, and waits until they are in force.
pub(super) async fn install(client: &Client, group: Group) -> Result<()> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let manifests = manifests(group);
    for manifest in &manifests {
        let object: DynamicObject = serde_json::from_value(manifest.clone())?;
        let name = name(manifest);
        let created = match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let patch = Patch::Merge(manifest);
                api.patch(name, &PatchParams::default(), &patch).await
            }
            created => created,
        };
        created.with_context(|| format!("cannot install the definition {name}"))?;
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for manifest in &manifests {
        let name = name(manifest);
        while !is_established(&api.get(name).await?.data) {
            if tokio::time::Instant::now() > deadline {
                bail!("the API server does not serve {name}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

fn name(manifest: &Value) -> &str {
    let name = manifest.pointer("/metadata/name");
    name.and_then(Value::as_str).unwrap_or_default()
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
