//! Tells the API server of Kubernetes where Calico's resources are served.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tortie_api::crd::Group;
use tortie_error::Causes;

use super::ServiceReference;

/// As in Calico's manifest: before groups of custom resources, behind those of Kubernetes.
const GROUP_PRIORITY: i32 = 1500;
const VERSION_PRIORITY: i32 = 200;

/// Whose fields they are.
const MANAGER: &str = "tortie-apiserver";

/// How long to wait before another attempt.
const RETRY: Duration = Duration::from_secs(5);

/// How the API server of Kubernetes reaches this one.
pub(super) struct Registration {
    pub(super) service: ServiceReference,
    /// Who vouches for this server's certificate, in PEM.
    pub(super) authority: Option<String>,
}

impl Registration {
    /// Writes it, and tries again until that succeeds.
    pub(super) async fn bring_about(&self, client: &kube::Client) {
        let api: Api<APIService> = Api::all(client.clone());
        let name = format!("{}.{}", Group::V3.version(), Group::V3.name());
        let object = self.object(&name);
        loop {
            match write(&api, &name, &object).await {
                Ok(()) => return tracing::info!(name, "Registered"),
                Err(error) => {
                    tracing::warn!(name, error = %Causes(&error), "Cannot be registered; will try again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    fn object(&self, name: &str) -> Value {
        let ServiceReference {
            namespace,
            name: service,
            port,
        } = &self.service;
        let mut object = json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name},
            "spec": {
                "group": Group::V3.name(),
                "version": Group::V3.version(),
                "groupPriorityMinimum": GROUP_PRIORITY,
                "versionPriority": VERSION_PRIORITY,
                "service": {"namespace": namespace, "name": service, "port": port},
            },
        });
        if let Some(authority) = &self.authority {
            object["spec"]["caBundle"] = json!(ByteString(authority.clone().into_bytes()));
        }
        object
    }
}

/// Changes what is there, or makes it. Not by server-side apply: Kubernetes 1.20 panics at that for this type.
async fn write(api: &Api<APIService>, name: &str, object: &Value) -> kube::Result<()> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(name, &params, &Patch::Merge(object)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        other => return other.map(drop),
    }
    let object = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    api.create(&params, &object).await.map(drop)
}
