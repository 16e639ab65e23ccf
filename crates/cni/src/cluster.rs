//! What Kubernetes knows of a pod, and what it is told of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::json;

use crate::error::{Code, Error, Result};

const POD_IP: &str = "cni.projectcalico.org/podIP";
const POD_IPS: &str = "cni.projectcalico.org/podIPs";
const CONTAINER_ID: &str = "cni.projectcalico.org/containerID";

/// The numbers by which HTTP says that something is not there, or has changed meanwhile.
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

/// Labels and annotations of a namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamespaceFacts {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A kind of objects that Kubernetes has only where somebody added it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CustomKind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

/// A pod, if it is there.
pub(crate) async fn find_pod(client: &Client, namespace: &str, name: &str) -> Result<Option<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = pods.get_opt(name).await;
    found.map_err(failed(format!("the pod {namespace}/{name} cannot be read")))
}

/// The metadata of an object, if it and its kind are there.
pub(crate) async fn find_metadata(
    client: &Client,
    kind: &CustomKind,
    namespace: &str,
    name: &str,
) -> Result<Option<ObjectMeta>> {
    let CustomKind {
        group,
        version,
        kind,
        plural,
    } = kind;
    let resource = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&resource, plural);
    let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    match objects.get_metadata(name).await {
        Ok(object) => Ok(Some(object.metadata)),
        // Where the kind is missing, the answer has no reason that could be read.
        Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(None),
        Err(error) => {
            let message = format!("the {kind} {namespace}/{name} cannot be read");
            Err(failed(message)(error))
        }
    }
}

pub(crate) async fn namespace(client: &Client, name: &str) -> Result<NamespaceFacts> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get(name).await;
    let found = found.map_err(failed(format!("the namespace {name} cannot be read")))?;
    Ok(NamespaceFacts {
        labels: found.metadata.labels.unwrap_or_default(),
        annotations: found.metadata.annotations.unwrap_or_default(),
    })
}

/// The networks that a node has for its pods.
pub(crate) async fn pod_cidrs(client: &Client, node: &str) -> Result<Vec<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let found = nodes.get(node).await;
    let found = found.map_err(failed(format!("the node {node} cannot be read")))?;
    let cidrs = found.spec.and_then(|spec| spec.pod_cidrs);
    let cidrs = cidrs.unwrap_or_default();
    if cidrs.is_empty() {
        let message = format!("no podCidr for node {node}");
        return Err(Error::new(Code::Address, message));
    }
    Ok(cidrs)
}

/// Tells Kubernetes the addresses of a pod before kubelet does.
pub(crate) async fn announce(
    client: &Client,
    pod: &Pod,
    addresses: &[String],
    container_id: &str,
) -> Result<Pod> {
    let annotations = json!({
        POD_IP: addresses.first().map_or("", String::as_str),
        POD_IPS: addresses.join(","),
        CONTAINER_ID: container_id,
    });
    // Without a revision: kubelet lets no other ADD run for this pod, and others may change it all the time.
    let metadata = json!({ "annotations": annotations, "uid": pod.metadata.uid });
    patch(client, &pod.metadata, &metadata).await
}

/// Tells Kubernetes that a pod has no addresses any more, if the pod is still as it was read. Gives whether it was.
pub(crate) async fn withdraw(client: &Client, pod: &Pod) -> Result<bool> {
    let metadata = json!({
        "annotations": { POD_IP: "", POD_IPS: "" },
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
    });
    match patch(client, &pod.metadata, &metadata).await {
        Ok(_) => Ok(true),
        Err(error) if status_of(&error) == Some(CONFLICT) => Ok(false),
        // It is gone, and its addresses with it.
        Err(error) if status_of(&error) == Some(NOT_FOUND) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The container that a pod's annotations name.
pub(crate) fn container_of(pod: &Pod) -> &str {
    let annotations = pod.metadata.annotations.as_ref();
    let found = annotations.and_then(|annotations| annotations.get(CONTAINER_ID));
    found.map_or("", String::as_str)
}

async fn patch(client: &Client, of: &ObjectMeta, metadata: &serde_json::Value) -> Result<Pod> {
    let (namespace, name) = (
        of.namespace.as_deref().unwrap_or_default(),
        of.name.as_deref().unwrap_or_default(),
    );
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let change = Patch::Strategic(json!({ "metadata": metadata }));
    let patched = pods
        .patch_status(name, &PatchParams::default(), &change)
        .await;
    patched.map_err(failed(format!(
        "the pod {namespace}/{name} cannot be changed"
    )))
}

fn failed(message: String) -> impl FnOnce(kube::Error) -> Error {
    move |error| {
        let code = match &error {
            kube::Error::Api(status) if status.code < 500 => Code::Datastore,
            _ => Code::TryLater,
        };
        Error::of(code, message)(error)
    }
}

fn status_of(error: &Error) -> Option<u16> {
    let source = std::error::Error::source(error)?;
    match source.downcast_ref::<kube::Error>()? {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
