//! Requests to the API server for one object of Kubernetes, as plain JSON. Those for many are in `tortie_sync`.

use kube::api::{DeleteParams, GetParams, PostParams, Preconditions};
use serde_json::Value;
use tortie_sync::kubernetes::{
    Endpoint, Error as Failure, Selection, built, in_time, path_segment,
};

/// Reads one object.
pub(super) async fn get(
    endpoint: &Endpoint,
    client: &kube::Client,
    at: &Selection,
) -> Result<Value, Failure> {
    let request = endpoint
        .named(at)?
        .get(path_segment(&at.name)?, &GetParams::default());
    in_time("a read", client.request(built(request)?)).await
}

/// Stores a new object.
pub(super) async fn create(
    endpoint: &Endpoint,
    client: &kube::Client,
    namespace: &str,
    object: &Value,
) -> Result<Value, Failure> {
    let request = endpoint
        .collection(namespace)?
        .create(&PostParams::default(), to_body(object));
    in_time("a write", client.request(built(request)?)).await
}

/// Replaces an object, or only its status.
pub(super) async fn replace(
    endpoint: &Endpoint,
    client: &kube::Client,
    at: &Selection,
    subresource: Option<&str>,
    object: &Value,
) -> Result<Value, Failure> {
    let (named, name, params) = (
        endpoint.named(at)?,
        path_segment(&at.name)?,
        PostParams::default(),
    );
    let request = match subresource {
        Some(subresource) => named.replace_subresource(subresource, name, &params, to_body(object)),
        None => named.replace(name, &params, to_body(object)),
    };
    in_time("a write", client.request(built(request)?)).await
}

/// Removes an object if it still is the one with this UID and, where given, at this revision.
pub(super) async fn delete(
    endpoint: &Endpoint,
    client: &kube::Client,
    at: &Selection,
    uid: &str,
    revision: Option<&str>,
) -> Result<(), Failure> {
    let preconditions = Preconditions {
        uid: (!uid.is_empty()).then(|| uid.to_owned()),
        resource_version: revision.map(ToOwned::to_owned),
    };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    let request = endpoint.named(at)?.delete(path_segment(&at.name)?, &params);
    in_time("a delete", client.request::<Value>(built(request)?))
        .await
        .map(drop)
}

fn to_body(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}
