//! Which host endpoints a node gets.
//!
//! Pure: a node and the settings in, host endpoints out.

mod addresses;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ipnet::IpNet;
use regex::Regex;
use sha2::{Digest as _, Sha256};
use tortie_api::host_endpoint::HostEndpointSpec;
use tortie_api::k8s::DEFAULT_ALLOW_PROFILE;
use tortie_api::kube_controllers_configuration::Template;
use tortie_api::net::parse_cidr;
use tortie_api::{HostEndpoint, Node};
use tortie_selector::Selector;

use crate::settings::HostEndpointSettings;

/// The label of host endpoints that are ours.
pub(super) const CREATED_BY: &str = "projectcalico.org/created-by";
pub(super) const CREATOR: &str = "calico-kube-controllers";

const SUFFIX: &str = "auto-hep";
const ALL_INTERFACES: &str = "*";

/// The longest name that Kubernetes takes.
const MAX_NAME: usize = 253;

/// The host endpoints of one node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted {
    /// Those that there are to be.
    pub(super) endpoints: Vec<HostEndpoint>,
    /// Templates that cannot be used, and why. What they made before is left alone.
    pub(super) unusable: Vec<String>,
}

/// The host endpoints that a node gets.
pub(super) fn wanted(node: &Node, settings: &HostEndpointSettings) -> Wanted {
    let mut wanted = Wanted::default();
    if !settings.auto_create {
        return wanted;
    }
    let addresses = addresses::of(node);
    if settings.create_default {
        let name = name(&node.metadata.name, "", "");
        let endpoint = endpoint(node, None, &name, ALL_INTERFACES, addresses.clone());
        wanted.endpoints.push(endpoint);
    }
    for template in &settings.templates {
        match of_template(node, template, &addresses) {
            Ok(endpoints) => wanted.endpoints.extend(endpoints),
            Err(reason) => {
                let name = &template.generate_name;
                wanted.unusable.push(format!("template {name}: {reason}"));
            }
        }
    }
    wanted
}

fn of_template(
    node: &Node,
    template: &Template,
    addresses: &[String],
) -> Result<Vec<HostEndpoint>, String> {
    let selector = Selector::parse(&template.node_selector)
        .map_err(|error| format!("nodeSelector: {error}"))?;
    let networks: Vec<IpNet> = template
        .interface_cidrs
        .iter()
        .map(|text| {
            let cidr = parse_cidr(text).ok_or_else(|| format!("{text} is not a CIDR"))?;
            Ok(cidr.network())
        })
        .collect::<Result<_, String>>()?;
    let pattern = Regex::new(&template.interface_pattern)
        .map_err(|error| format!("interfacePattern: {error}"))?;
    if !selector.matches(&node.metadata.labels) {
        return Ok(Vec::new());
    }
    let addresses = addresses::within(addresses, &networks);
    let (node_name, template_name) = (&node.metadata.name, &template.generate_name);
    if template.interface_pattern.is_empty() {
        if addresses.is_empty() {
            // A host endpoint needs an interface or an address.
            return Ok(Vec::new());
        }
        let name = name(node_name, template_name, "");
        return Ok(vec![endpoint(node, Some(template), &name, "", addresses)]);
    }
    let interfaces = node.spec.interfaces.iter();
    let endpoints = interfaces
        .filter(|interface| pattern.is_match(&interface.name))
        .map(|interface| {
            let mut addresses = addresses.clone();
            addresses::add(&mut addresses, &interface.addresses);
            let name = name(node_name, template_name, &interface.name);
            endpoint(node, Some(template), &name, &interface.name, addresses)
        });
    Ok(endpoints.collect())
}

fn endpoint(
    node: &Node,
    template: Option<&Template>,
    name: &str,
    interface: &str,
    expected_ips: Vec<String>,
) -> HostEndpoint {
    let mut labels: BTreeMap<String, String> = node.metadata.labels.clone();
    let mut annotations = BTreeMap::new();
    if let Some(template) = template {
        labels.extend(template.labels.clone());
        annotations.clone_from(&template.annotations);
    }
    labels.insert(CREATED_BY.into(), CREATOR.into());
    let spec = HostEndpointSpec {
        node: node.metadata.name.clone(),
        interface_name: interface.into(),
        expected_ips,
        profiles: vec![DEFAULT_ALLOW_PROFILE.into()],
        ..HostEndpointSpec::default()
    };
    let mut endpoint = HostEndpoint::new("", name, spec);
    endpoint.metadata.labels = labels;
    endpoint.metadata.annotations = annotations;
    endpoint
}

/// The name of a host endpoint, from those parts that are not empty. One that would be too long becomes a hash.
fn name(node: &str, template: &str, interface: &str) -> String {
    let parts = [node, template, interface, SUFFIX];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = parts.join("-");
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(name.as_bytes()));
    let hash: String = hash
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .collect();
    format!("{hash}-{SUFFIX}").to_lowercase()
}
