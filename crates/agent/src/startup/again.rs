//! Registers a node that lost its place.

use async_trait::async_trait;
use ipnet::IpNet;
use tortie_api::Node;
use tortie_api::node::NodeSpec;
use tortie_client::Client;

use crate::startup::autodetect::Interface;
use crate::startup::configurations::make_own_configuration;
use crate::startup::follow::{Failure, Registrar};
use crate::startup::register::{Error, register_node};
use crate::startup::settings::{Addressing, Settings};

/// Registers this machine in a datastore.
pub struct Registration {
    /// The datastore.
    pub client: Client,
    /// What is known of the node.
    pub settings: Settings,
    /// Whether the datastore is a cluster of Kubernetes, where kubelets make nodes.
    pub is_kubernetes: bool,
}

#[async_trait]
impl Registrar for Registration {
    fn makes_node(&self) -> bool {
        !self.is_kubernetes
    }

    fn was_registered(&self) -> bool {
        let Settings {
            name, name_file, ..
        } = &self.settings;
        let named = std::fs::read_to_string(name_file);
        self.settings.needs_address && named.is_ok_and(|named| named.trim() == name)
    }

    async fn register(&self, last: Option<&NodeSpec>) -> Result<(), Failure> {
        let interfaces = Interface::all()?;
        let Self {
            client,
            settings,
            is_kubernetes,
        } = self;
        register_again(client, settings, &interfaces, last, *is_kubernetes).await?;
        Ok(())
    }
}

/// Makes a node's resource again that was deleted, or that came back without what its start wrote: with the addresses that
/// it was last seen with, as far as the machine still has them, and as the settings say otherwise.
pub async fn register_again(
    client: &Client,
    settings: &Settings,
    interfaces: &[Interface],
    last: Option<&NodeSpec>,
    is_kubernetes: bool,
) -> Result<Node, Error> {
    let node = register_node(client, &with_last(settings, interfaces, last), interfaces).await?;
    if !is_kubernetes {
        make_own_configuration(client, &settings.name).await?;
    }
    Ok(node)
}

/// The settings with what a node was last seen with in place of what would be looked for.
fn with_last(settings: &Settings, interfaces: &[Interface], last: Option<&NodeSpec>) -> Settings {
    let mut settings = settings.clone();
    let Some(last) = last else {
        return settings;
    };
    let bgp = last.bgp.clone().unwrap_or_default();
    let is_here = |net: &IpNet| {
        let mut nets = interfaces.iter().flat_map(|interface| &interface.addresses);
        nets.any(|own| own.addr() == net.addr())
    };
    let known = |text: &str| text.parse().ok().filter(is_here);
    let (v4, v6) = (known(&bgp.ipv4_address), known(&bgp.ipv6_address));
    for (known, addressing) in [(v4, &mut settings.ipv4), (v6, &mut settings.ipv6)] {
        if let Some(net) = known {
            *addressing = Addressing::Is(net.addr(), Some(net));
        }
    }
    settings.as_number = settings.as_number.or(bgp.as_number);
    let reference = last
        .orch_refs
        .iter()
        .find(|known| known.orchestrator == "k8s");
    let reference = reference.map(|known| known.node_name.clone());
    settings.kubernetes_node = settings.kubernetes_node.or(reference);
    settings
}
