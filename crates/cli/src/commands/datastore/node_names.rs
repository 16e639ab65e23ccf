//! Nodes get the names that Kubernetes knows them by, wherever they are named. Pure.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use tortie_api::Resource;

/// Handles of tunnels' addresses end with the name of the node.
const TUNNELS: [&str; 5] = [
    "ipip-tunnel-addr-",
    "vxlan-tunnel-addr-",
    "vxlan-v6-tunnel-addr-",
    "wireguard-tunnel-addr-",
    "wireguard-v6-tunnel-addr-",
];

/// What Kubernetes calls nodes, by the names they have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeNames(BTreeMap<String, String>);

impl NodeNames {
    /// Every node must be known to Kubernetes.
    pub(super) fn of(resources: &[Resource]) -> Result<Self> {
        let mut names = BTreeMap::new();
        let mut strangers = Vec::new();
        for resource in resources {
            let Resource::Node(node) = resource else {
                continue;
            };
            let references = node.spec.orch_refs.iter();
            let kubernetes = references
                .filter(|reference| reference.orchestrator == "k8s")
                .map(|reference| &reference.node_name)
                .rfind(|name| !name.is_empty());
            match kubernetes {
                Some(name) => {
                    names.insert(node.metadata.name.clone(), name.clone());
                }
                None => strangers.push(node.metadata.name.as_str()),
            }
        }
        if !strangers.is_empty() {
            bail!(
                "node {} missing a 'k8s' orchestrator reference. Unable to export data unless every node has a 'k8s' orchestrator reference",
                strangers.join(", ")
            );
        }
        Ok(Self(names))
    }

    pub(super) fn apply(&self, resource: &mut Resource) {
        match resource {
            Resource::Node(node) => self.rename(&mut node.metadata.name),
            Resource::HostEndpoint(endpoint) => self.rename(&mut endpoint.spec.node),
            Resource::BgpPeer(peer) => self.rename(&mut peer.spec.node),
            Resource::CalicoNodeStatus(status) => self.rename(&mut status.spec.node),
            Resource::FelixConfiguration(config) => {
                self.rename_after("node.", &mut config.metadata.name);
            }
            Resource::BgpConfiguration(config) => {
                self.rename_after("node.", &mut config.metadata.name);
            }
            Resource::IpamBlock(block) => {
                if let Some(affinity) = &mut block.spec.affinity {
                    self.rename_after("host:", affinity);
                }
                for attribute in &mut block.spec.attributes {
                    if let Some(handle) = &mut attribute.handle_id {
                        self.rename_tunnel(handle);
                    }
                    let owners = [
                        &mut attribute.active_owner_attrs,
                        &mut attribute.alternate_owner_attrs,
                    ];
                    for node in owners.into_iter().filter_map(|owner| owner.get_mut("node")) {
                        self.rename(node);
                    }
                }
            }
            Resource::BlockAffinity(affinity) if affinity.spec.r#type != "virtual" => {
                self.rename(&mut affinity.spec.node);
            }
            Resource::IpamHandle(handle) => self.rename_tunnel(&mut handle.spec.handle_id),
            _ => {}
        }
    }

    fn rename(&self, name: &mut String) {
        if let Some(new) = self.0.get(name) {
            name.clone_from(new);
        }
    }

    fn rename_after(&self, prefix: &str, text: &mut String) {
        if let Some(new) = text.strip_prefix(prefix).and_then(|name| self.0.get(name)) {
            *text = format!("{prefix}{new}");
        }
    }

    fn rename_tunnel(&self, handle: &mut String) {
        for prefix in TUNNELS {
            self.rename_after(prefix, handle);
        }
    }
}
