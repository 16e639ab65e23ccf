//! This machine as a node of its own API server.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use tortie_node::Addressing;
use tortie_store::Client;

use crate::commands::node::startup;

/// Registers the machine with Kubernetes' API first: the controllers remove nodes that it does not know.
pub(super) async fn register(client: &Client, cluster: &kube::Client, name: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(cluster.clone());
    let labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), name.to_owned()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
    ]);
    let node = Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        created => {
            created.with_context(|| format!("registering the node {name}"))?;
        }
    }
    let mut settings = startup::settings(Some(name))?;
    settings.kubernetes_node = Some(name.to_owned());
    let addresses = match startup::place(client, &settings, None).await {
        // A machine alone may have no network at all.
        Err(error) if is_without_address(&error) => {
            tracing::warn!(%error, "The node has no address; other machines cannot be reached through tunnels");
            settings.needs_address = false;
            (settings.ipv4, settings.ipv6) = (Addressing::Keep, Addressing::Keep);
            startup::place(client, &settings, None).await?
        }
        placed => placed?,
    };
    let address = |(kind, address): (&str, String)| NodeAddress {
        type_: kind.to_owned(),
        address,
    };
    let internal = addresses.into_iter().map(|address| ("InternalIP", address));
    let host = std::iter::once(("Hostname", name.to_owned()));
    let status = NodeStatus {
        addresses: Some(internal.chain(host).map(address).collect()),
        conditions: Some(vec![NodeCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: Some("Running".to_owned()),
            message: Some("tortie runs on this machine".to_owned()),
            ..NodeCondition::default()
        }]),
        ..NodeStatus::default()
    };
    let mut node = nodes.get(name).await?;
    node.status = Some(status);
    let options = PostParams::default();
    let replaced = nodes.replace_status(name, &options, &node).await;
    replaced.with_context(|| format!("the status of the node {name}"))?;
    Ok(())
}

fn is_without_address(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<tortie_node::Error>();
    matches!(
        error,
        Some(tortie_node::Error::NoAddress { .. } | tortie_node::Error::Addressless(_))
    )
}
