//! Objects into a cluster, and whether they work there.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::sleep;

use crate::cluster::NODE;

/// Who the API server knows as the owner of our fields.
const MANAGER: &str = "tortie-install";

/// The Deployment of the controllers.
const CONTROLLERS: &str = "tortie-controllers";

/// How often it is asked whether something is ready.
const INTERVAL: Duration = Duration::from_millis(500);

/// How objects are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Nothing is stored, but everything is checked.
    pub is_dry_run: bool,
    /// Fields that somebody else has set are taken over.
    pub takes_over_fields: bool,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Changed,
    Unchanged,
}

/// Why an object could not be written, or is not ready.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What the API server says of an object.
    #[error("{object}")]
    Refused {
        /// Kind and name.
        object: String,
        /// Why.
        source: kube::Error,
    },
    /// Fields that somebody else has set to other values.
    #[error(
        "{object} was changed by somebody else, and is left as it is: {fields}; --force-conflicts takes these fields over"
    )]
    Conflict {
        /// Kind and name.
        object: String,
        /// Who, and which.
        fields: String,
    },
    /// It took too long.
    #[error("after {} s, {what}", .after.as_secs())]
    Late {
        /// How long was waited.
        after: Duration,
        /// What is missing.
        what: String,
    },
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// How an object is called.
pub fn name_of(object: &Value) -> String {
    let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or("");
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    match text("/metadata/namespace") {
        "" => format!("{kind}({name})"),
        namespace => format!("{kind}({namespace}/{name})"),
    }
}

/// Makes an object what it is to be.
pub async fn apply(client: &Client, object: &Value, options: Options) -> Result<Outcome> {
    let refused = |source| Error::Refused {
        object: name_of(object),
        source,
    };
    let api = api_of(client, object);
    let name = object["metadata"]["name"].as_str().unwrap_or("");
    let before = api.get_opt(name).await.map_err(refused)?;
    let mut params = PatchParams::apply(MANAGER);
    params.dry_run = options.is_dry_run;
    params.force = options.takes_over_fields;
    let after = match api.patch(name, &params, &Patch::Apply(object)).await {
        Ok(after) => after,
        // Where it is to be in a namespace that a dry run has not made, there is nothing to ask.
        Err(kube::Error::Api(status)) if status.code == 404 && options.is_dry_run => {
            return Ok(Outcome::Created);
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            return Err(Error::Conflict {
                object: name_of(object),
                fields: status.message,
            });
        }
        Err(error) => return Err(refused(error)),
    };
    Ok(match before {
        None => Outcome::Created,
        Some(before) if is_same(&before, &after) => Outcome::Unchanged,
        Some(_) => Outcome::Changed,
    })
}

/// A dry run shows no new revision, so that the content is compared.
fn is_same(before: &DynamicObject, after: &DynamicObject) -> bool {
    let bare = |object: &DynamicObject| {
        let mut object = object.clone();
        object.metadata.managed_fields = None;
        object.metadata.resource_version = None;
        object.metadata.generation = None;
        object
    };
    bare(before) == bare(after)
}

fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or("");
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, text("kind"));
    let resource = ApiResource::from_gvk(&kind);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Waits until the API server serves the kinds of all definitions.
pub async fn await_definitions(
    client: &Client,
    names: &[String],
    patience: Duration,
) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let is_served = async |name: &str| {
        let definition = api
            .get_status(name)
            .await
            .map_err(|source| Error::Refused {
                object: format!("CustomResourceDefinition({name})"),
                source,
            })?;
        let conditions = definition.status.and_then(|status| status.conditions);
        Ok(conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Established" && condition.status == "True"))
    };
    let start = Instant::now();
    for name in names {
        while !is_served(name).await? {
            if start.elapsed() > patience {
                let what = format!("CustomResourceDefinition({name}) is not established");
                return Err(Error::Late {
                    after: patience,
                    what,
                });
            }
            sleep(INTERVAL).await;
        }
    }
    Ok(())
}

/// How far the pods of an installation are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Nodes that are to have a pod, if the DaemonSet's controller has counted them.
    pub nodes: Option<i32>,
    /// Those whose pod is of this version and ready.
    pub ready_nodes: i32,
    /// Whether the controllers of this version are ready.
    pub has_controllers: bool,
}

impl Progress {
    /// Whether there is nothing to wait for.
    pub fn is_done(&self) -> bool {
        self.has_controllers && self.nodes == Some(self.ready_nodes)
    }

    /// What is still missing, for people.
    pub fn missing(&self) -> String {
        let controllers = if self.has_controllers {
            ""
        } else {
            ", and the controllers are not ready"
        };
        match self.nodes {
            None => format!(
                "Kubernetes has not counted the nodes: does kube-controller-manager run?{controllers}"
            ),
            Some(nodes) => format!(
                "{} of {nodes} nodes are ready{controllers}",
                self.ready_nodes
            ),
        }
    }
}

/// How far the pods are now.
pub async fn progress(client: &Client, namespace: &str) -> Result<Progress> {
    let refused = |kind: &str, name: &str, source| Error::Refused {
        object: format!("{kind}({namespace}/{name})"),
        source,
    };
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), namespace);
    let set = sets.get_status(NODE).await;
    let set = set.map_err(|error| refused("DaemonSet", NODE, error))?;
    let generation = set.metadata.generation;
    let status = set.status.unwrap_or_default();
    let is_counted = status.observed_generation >= generation;
    let updated = status.updated_number_scheduled.unwrap_or(0);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get_status(CONTROLLERS).await;
    let deployment = deployment.map_err(|error| refused("Deployment", CONTROLLERS, error))?;
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    let generation = deployment.metadata.generation;
    let controllers = deployment.status.unwrap_or_default();
    Ok(Progress {
        nodes: is_counted.then_some(status.desired_number_scheduled),
        ready_nodes: updated.min(status.number_ready),
        has_controllers: controllers.observed_generation >= generation
            && controllers.updated_replicas >= wanted
            && controllers.ready_replicas >= wanted,
    })
}

/// Waits until every node's pod and the controllers are of this version and ready. Tells of each change on the way.
pub async fn await_pods(
    client: &Client,
    namespace: &str,
    patience: Duration,
    tell: impl Fn(&Progress),
) -> Result<Progress> {
    let start = Instant::now();
    let mut told = None;
    loop {
        let progress = progress(client, namespace).await?;
        if told.as_ref() != Some(&progress) {
            tell(&progress);
            told = Some(progress.clone());
        }
        if progress.is_done() {
            return Ok(progress);
        }
        if start.elapsed() > patience {
            return Err(Error::Late {
                after: patience,
                what: progress.missing(),
            });
        }
        sleep(INTERVAL).await;
    }
}
