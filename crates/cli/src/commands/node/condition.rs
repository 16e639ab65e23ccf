//! The condition of a Node of Kubernetes that says whether pods there can have a network.

use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_variables as variables;

use super::{shutdown, startup};

const RETRY: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_mins(1),
    jitter: 0.1,
};

/// Whether a node's network is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    Up,
    Down,
}

/// Says it, unless the network is somebody else's.
pub(crate) async fn tell(cluster: &kube::Client, node: &str, network: Network) -> Result<()> {
    let backend = std::env::var(variables::CALICO_NETWORKING_BACKEND).unwrap_or_default();
    if backend == "none" {
        return Ok(());
    }
    let named = std::env::var(variables::CALICO_K8S_NODE_REF).ok();
    let node = named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| node.to_owned());
    let (status, reason, message) = match network {
        Network::Up => ("False", "CalicoIsUp", "Calico is running on this node"),
        Network::Down => (
            "True",
            "CalicoIsDown",
            "Calico is shutting down on this node",
        ),
    };
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string();
    let patch = json!({"status": {"conditions": [{
        "type": "NetworkUnavailable",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
        "lastHeartbeatTime": now,
    }]}});
    let nodes: Api<Node> = Api::all(cluster.clone());
    let patch = Patch::Strategic(patch);
    nodes
        .patch_status(&node, &PatchParams::default(), &patch)
        .await
        .with_context(|| {
            format!("the condition NetworkUnavailable of Node({node}) cannot be written")
        })?;
    Ok(())
}

/// Says that the network is there, until it could be said; but not to those who do not listen: there may be no such node, or no right
/// to write. What a shutdown before said is over.
pub(crate) async fn say_up(cluster: kube::Client, node: String) {
    if let Ok(settings) = startup::settings(Some(&node)) {
        shutdown::forget(&settings);
    }
    let mut retries = Retries::new(RETRY);
    while let Err(error) = tell(&cluster, &node, Network::Up).await {
        let is_final = matches!(
            error.downcast_ref(),
            Some(kube::Error::Api(status)) if [403, 404].contains(&status.code)
        );
        tracing::warn!(error = %Causes(&*error), is_final, "Kubernetes does not know that the node has a network");
        if is_final {
            return;
        }
        sleep(retries.failed()).await;
    }
}
