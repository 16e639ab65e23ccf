//! What an export prints: three parts, with a line `===` between them.
//!
//! 1. resources in YAML, one document per kind;
//! 2. what is said of the cluster, in JSON;
//! 3. addresses, in JSON.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tortie_api::{ClusterInformation, Kind, Resource};

use super::addresses::Addresses;
use crate::input;
use crate::output::to_yaml;

const SEPARATOR: &str = "===\n";

/// The kinds of the first part, in the order in which they are printed and written: what others refer to first.
pub(super) const KINDS: [Kind; 18] = [
    Kind::IpPool,
    Kind::BgpPeer,
    Kind::Tier,
    Kind::GlobalNetworkPolicy,
    Kind::StagedGlobalNetworkPolicy,
    Kind::GlobalNetworkSet,
    Kind::HostEndpoint,
    Kind::KubeControllersConfiguration,
    Kind::NetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::StagedKubernetesNetworkPolicy,
    Kind::NetworkSet,
    Kind::Node,
    Kind::BgpConfiguration,
    Kind::FelixConfiguration,
    Kind::IpReservation,
    Kind::BgpFilter,
    Kind::CalicoNodeStatus,
];

/// Everything that is moved.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dump {
    pub(super) resources: Vec<Resource>,
    pub(super) information: ClusterInformation,
    pub(super) addresses: Addresses,
}

impl Dump {
    pub(super) fn print(&self) -> Result<String> {
        let mut text = String::new();
        for kind in KINDS {
            let items: Vec<Value> = self
                .resources
                .iter()
                .filter(|resource| resource.kind() == kind)
                .map(serde_json::to_value)
                .collect::<Result<_, _>>()?;
            let list = json!({
                "apiVersion": tortie_api::API_VERSION,
                "kind": format!("{kind}List"),
                "items": items,
            });
            text.push_str(&to_yaml(&list)?);
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str("---\n");
        }
        text.push_str(SEPARATOR);
        text.push_str(&serde_json::to_string_pretty(&self.information)?);
        text.push('\n');
        text.push_str(SEPARATOR);
        text.push_str(&serde_json::to_string_pretty(&self.addresses)?);
        text.push('\n');
        Ok(text)
    }

    /// Reads it back; the error tells everything that is wrong.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split(SEPARATOR).collect();
        let [resources, information, addresses] = parts[..] else {
            bail!(
                "{file} is no export: it has {} parts and not three",
                parts.len()
            );
        };
        let mut problems = Vec::new();
        let mut decoded = Vec::new();
        for document in input::parse(file, resources)? {
            match document.decode(None) {
                Ok(resource) => decoded.push(resource),
                Err(problem) => problems.push(format!("{}: {problem}", document.name())),
            }
        }
        if !problems.is_empty() {
            bail!(
                "{file} has resources that cannot be used:\n{}",
                problems.join("\n")
            );
        }
        let information = serde_json::from_str(information);
        let addresses = serde_json::from_str(addresses);
        Ok(Self {
            resources: decoded,
            information: information
                .with_context(|| format!("the second part of {file} is no ClusterInformation"))?,
            addresses: addresses
                .with_context(|| format!("the third part of {file} is not about addresses"))?,
        })
    }
}
