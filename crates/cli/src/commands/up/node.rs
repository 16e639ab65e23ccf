//! This machine as a node of its own API server.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use tortie_agent::startup::autodetect::Interface;
use tortie_agent::startup::{Addressing, Failure, Registrar, Settings, register_again};
use tortie_api::node::NodeSpec;
use tortie_client::Client;
use tortie_error::Causes;

use crate::commands::node::startup::{self, own_addresses};

/// Registers the machine, with Kubernetes' API first: the controllers remove nodes that it does not know.
pub(super) struct Registration {
    client: Client,
    nodes: Api<Node>,
    settings: Settings,
    /// Whether the machine got an address at first.
    has_address: OnceLock<bool>,
}

impl Registration {
    pub(super) fn new(client: &Client, cluster: &kube::Client, name: &str) -> Result<Self> {
        let mut settings = startup::settings(Some(name))?;
        settings.kubernetes_node = Some(name.to_owned());
        Ok(Self {
            client: client.clone(),
            nodes: Api::all(cluster.clone()),
            settings,
            has_address: OnceLock::new(),
        })
    }

    /// The same for a network in which the node is alone: it has and needs no address.
    pub(super) fn alone(mut self) -> Self {
        self.settings = self.without_address();
        self
    }

    /// Gives the machine its place for the first time.
    pub(super) async fn begin(&self) -> Result<()> {
        self.make_node().await?;
        let addresses = match startup::place(&self.client, &self.settings, None).await {
            // A machine alone may have no network at all.
            Err(error) if is_without_address(error.downcast_ref()) => {
                tracing::warn!(error = %Causes(&*error), "The node has no address; other machines cannot be reached through tunnels");
                startup::place(&self.client, &self.without_address(), None).await?
            }
            placed => placed?,
        };
        self.has_address.get_or_init(|| !addresses.is_empty());
        self.report(addresses).await
    }

    /// The settings for a machine that has no address.
    fn without_address(&self) -> Settings {
        Settings {
            needs_address: false,
            ipv4: Addressing::Keep,
            ipv6: Addressing::Keep,
            ..self.settings.clone()
        }
    }

    async fn make_node(&self) -> Result<()> {
        let name = &self.settings.name;
        let labels = BTreeMap::from([
            ("kubernetes.io/hostname".to_owned(), name.clone()),
            ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ]);
        let node = Node {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            ..Node::default()
        };
        match self.nodes.create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => {
                created.with_context(|| format!("registering the node {name}"))?;
            }
        }
        Ok(())
    }

    /// Tells Kubernetes' clients the node's addresses, and that it is ready.
    async fn report(&self, addresses: Vec<String>) -> Result<()> {
        let name = &self.settings.name;
        let address = |(kind, address): (&str, String)| NodeAddress {
            type_: kind.to_owned(),
            address,
        };
        let internal = addresses.into_iter().map(|address| ("InternalIP", address));
        let host = std::iter::once(("Hostname", name.clone()));
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
        let mut node = self.nodes.get(name).await?;
        node.status = Some(status);
        let options = PostParams::default();
        let replaced = self.nodes.replace_status(name, &options, &node).await;
        replaced.with_context(|| format!("the status of the node {name}"))?;
        Ok(())
    }
}

#[async_trait]
impl Registrar for Registration {
    fn makes_node(&self) -> bool {
        true
    }

    /// By this process: it may be lost before it was seen. Whatever was lost earlier has been made anew.
    fn was_registered(&self) -> bool {
        self.has_address.get() == Some(&true)
    }

    async fn register(&self, last: Option<&NodeSpec>) -> Result<(), Failure> {
        self.make_node().await?;
        let interfaces = Interface::all()?;
        let again = async |settings: &Settings| {
            register_again(&self.client, settings, &interfaces, last, false).await
        };
        let node = match again(&self.settings).await {
            Err(error) if is_without_address(Some(&error)) => {
                again(&self.without_address()).await?
            }
            registered => registered?,
        };
        self.report(own_addresses(&node)).await?;
        Ok(())
    }
}

fn is_without_address(error: Option<&tortie_agent::startup::Error>) -> bool {
    matches!(
        error,
        Some(
            tortie_agent::startup::Error::NoAddress { .. }
                | tortie_agent::startup::Error::Addressless(_)
        )
    )
}
