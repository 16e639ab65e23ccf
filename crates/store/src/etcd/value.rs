//! Values as Calico stores them, and back to resources.
//!
//! Most kinds are stored whole. The four kinds of tiered policy carry their name a second time, in
//! an annotation, because older versions put `default.` before the name in the path. The IPAM kinds
//! are stored as bare records without metadata: their names come from the path, and their UIDs from
//! the revision at which they were created.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tortie_api::block_affinity::{BlockAffinitySpec, BlockAffinityState};
use tortie_api::ipam_block::{AllocationAttribute, IpamBlockSpec};
use tortie_api::ipam_configuration::{IpamConfigurationSpec, VmAddressPersistence};
use tortie_api::ipam_handle::IpamHandleSpec;
use tortie_api::meta::{Metadata, Time};
use tortie_api::{BlockAffinity, IpamBlock, IpamConfiguration, IpamHandle, Kind, Resource};

use super::paths::{LEGACY_PREFIX, Location};
use crate::json;
use crate::key::Key;

/// Holds the name of a policy.
const METADATA_ANNOTATION: &str = "projectcalico.org/metadata";

/// A stored value and where it was found.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    pub(super) location: &'a Location,
    pub(super) value: &'a [u8],
    pub(super) create_revision: i64,
    pub(super) mod_revision: i64,
}

/// An `IPAMBlock` to be written, without metadata and with other names for some fields.
#[derive(Serialize)]
struct BlockToStore<'a> {
    cidr: &'a str,
    /// Written as null when there is none.
    affinity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    affinity_claim_time: Option<&'a Time>,
    allocations: &'a [Option<i64>],
    unallocated: &'a [i64],
    attributes: &'a [AllocationAttribute],
    #[serde(rename = "sequenceNumber")]
    sequence_number: u64,
    #[serde(rename = "sequenceNumberForAllocation")]
    sequence_number_for_allocation: &'a BTreeMap<String, u64>,
    deleted: bool,
}

/// The same as it is read.
#[derive(Deserialize)]
struct StoredBlock {
    cidr: String,
    #[serde(default)]
    affinity: Option<String>,
    #[serde(default)]
    affinity_claim_time: Option<Time>,
    #[serde(default, deserialize_with = "null_as_default")]
    allocations: Vec<Option<i64>>,
    #[serde(default, deserialize_with = "null_as_default")]
    unallocated: Vec<i64>,
    #[serde(default, deserialize_with = "null_as_default")]
    attributes: Vec<AllocationAttribute>,
    #[serde(default, rename = "sequenceNumber")]
    sequence_number: u64,
    #[serde(
        default,
        rename = "sequenceNumberForAllocation",
        deserialize_with = "null_as_default"
    )]
    sequence_number_for_allocation: BTreeMap<String, u64>,
    #[serde(default)]
    deleted: bool,
    /// The owner as very old versions wrote it, without `host:`.
    #[serde(default, rename = "hostAffinity")]
    host_affinity: Option<String>,
}

/// A `BlockAffinity`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredAffinity {
    state: BlockAffinityState,
    deleted: bool,
}

/// An `IPAMHandle` to be written.
#[derive(Serialize)]
struct HandleToStore<'a> {
    block: &'a BTreeMap<String, i64>,
    deleted: bool,
}

/// The same as it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredHandle {
    #[serde(deserialize_with = "null_as_default")]
    block: BTreeMap<String, i64>,
    deleted: bool,
}

/// An `IPAMConfiguration`. What is false, empty or zero is left out.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredConfig {
    #[serde(skip_serializing_if = "is_default")]
    strict_affinity: bool,
    #[serde(skip_serializing_if = "is_default")]
    auto_allocate_blocks: bool,
    #[serde(rename = "maxBlocksPerHost", skip_serializing_if = "is_default")]
    max_blocks_per_host: i32,
    #[serde(
        rename = "kubeVirtVMAddressPersistence",
        skip_serializing_if = "is_default"
    )]
    vm_address_persistence: Option<VmAddressPersistence>,
    #[serde(rename = "ipCooldownSeconds", skip_serializing_if = "is_default")]
    cooldown_seconds: i32,
}

/// Whether objects of the kind are stored without metadata.
pub(super) fn is_bare(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::IpamBlock | Kind::BlockAffinity | Kind::IpamHandle | Kind::IpamConfiguration
    )
}

/// The value to store for a resource.
pub(super) fn encode(resource: &mut Resource) -> Vec<u8> {
    match resource {
        Resource::IpamBlock(block) => to_json(&BlockToStore::from(&block.spec)),
        Resource::BlockAffinity(affinity) => {
            let BlockAffinitySpec { state, deleted, .. } = affinity.spec;
            to_json(&StoredAffinity { state, deleted })
        }
        Resource::IpamHandle(handle) => {
            let IpamHandleSpec { block, deleted, .. } = &handle.spec;
            let deleted = *deleted;
            to_json(&HandleToStore { block, deleted })
        }
        Resource::IpamConfiguration(config) => to_json(&StoredConfig::from(&config.spec)),
        policy if policy.kind().is_tiered_policy() => {
            let metadata = policy.metadata_mut();
            let name = serde_json::json!({ "name": metadata.name }).to_string();
            metadata
                .annotations
                .insert(METADATA_ANNOTATION.to_owned(), name);
            let value = json::encode(policy);
            policy
                .metadata_mut()
                .annotations
                .remove(METADATA_ANNOTATION);
            value
        }
        other => json::encode(other),
    }
}

impl Stored<'_> {
    /// The resource, or why the value is none.
    pub(super) fn decode(&self) -> Result<Resource, String> {
        match self.location {
            Location::Resource(key) => self.decode_resource(key),
            Location::Block { cidr } => {
                let stored: StoredBlock = from_json(self.value)?;
                if stored.cidr != *cidr {
                    let found = stored.cidr;
                    return Err(json::shorten(format!(
                        "cidr: is {found} under the key of {cidr}"
                    )));
                }
                Ok(IpamBlock {
                    metadata: self.bare_metadata(),
                    spec: stored.into(),
                    ..Default::default()
                }
                .into())
            }
            Location::Affinity { r#type, node, cidr } => {
                // Very old versions stored nothing.
                let value = if self.value.is_empty() {
                    b"{}"
                } else {
                    self.value
                };
                let StoredAffinity { state, deleted } = from_json(value)?;
                let (node, cidr, r#type) = (node.clone(), cidr.clone(), (*r#type).to_owned());
                let spec = BlockAffinitySpec {
                    state,
                    node,
                    r#type,
                    cidr,
                    deleted,
                };
                Ok(BlockAffinity {
                    metadata: self.bare_metadata(),
                    spec,
                    ..Default::default()
                }
                .into())
            }
            Location::Config => {
                let stored: StoredConfig = from_json(self.value)?;
                Ok(IpamConfiguration {
                    metadata: self.bare_metadata(),
                    spec: stored.into(),
                    ..Default::default()
                }
                .into())
            }
            Location::Handle { id } => {
                let StoredHandle { block, deleted } = from_json(self.value)?;
                let spec = IpamHandleSpec {
                    handle_id: id.clone(),
                    block,
                    deleted,
                };
                Ok(IpamHandle {
                    metadata: self.bare_metadata(),
                    spec,
                    ..Default::default()
                }
                .into())
            }
        }
    }

    /// The key of the object, also if its value cannot be read.
    pub(super) fn key(&self) -> Key {
        let key = self.location.key();
        if key.kind.is_tiered_policy() && key.name.starts_with(LEGACY_PREFIX) {
            return self.decode().map_or(key, |policy| Key::of(&policy));
        }
        key
    }

    fn decode_resource(&self, key: &Key) -> Result<Resource, String> {
        let mut resource = json::decode(key.kind, self.value, self.mod_revision.to_string())?;
        let tier = resource.tier().map(str::to_owned);
        let metadata = resource.metadata_mut();
        metadata.namespace.clone_from(&key.namespace);
        metadata.name.clone_from(&key.name);
        if let Some(tier) = tier {
            let annotation = metadata.annotations.remove(METADATA_ANNOTATION);
            if let Some(name) = annotation.and_then(|text| annotated_name(&text)) {
                metadata.name = name;
            } else if matches!(tier.as_str(), "" | "default")
                && let Some(name) = key.name.strip_prefix(LEGACY_PREFIX)
                && !name.is_empty()
            {
                name.clone_into(&mut metadata.name);
            }
        }
        Ok(resource)
    }

    pub(super) fn bare_metadata(&self) -> Metadata {
        Metadata {
            name: self.location.key().name,
            uid: bare_uid(self.location.key().kind, self.create_revision),
            resource_version: self.mod_revision.to_string(),
            ..Metadata::default()
        }
    }
}

/// The UID of an object that is stored without one: a UUID of the free form (version 8) that tells
/// the revision of its creation, which no later object of the name shares.
fn bare_uid(kind: Kind, create_revision: i64) -> String {
    let kind = kind as u16;
    let (high, low) = (
        (create_revision >> 48) & 0x3fff | 0x8000,
        create_revision & 0xffff_ffff_ffff,
    );
    format!("70727469-{kind:04x}-8000-{high:04x}-{low:012x}")
}

fn annotated_name(annotation: &str) -> Option<String> {
    let value: Value = serde_json::from_str(annotation).ok()?;
    let name = value.get("name")?.as_str()?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have string keys and no floats")
}

fn from_json<'de, T: Deserialize<'de>>(value: &'de [u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|error| json::shorten(error.to_string()))
}

/// Go writes empty lists and maps as null.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<&IpamConfigurationSpec> for StoredConfig {
    fn from(spec: &IpamConfigurationSpec) -> Self {
        Self {
            strict_affinity: spec.strict_affinity,
            auto_allocate_blocks: spec.auto_allocate_blocks,
            max_blocks_per_host: spec.max_blocks_per_host,
            vm_address_persistence: spec.kube_virt_vm_address_persistence,
            cooldown_seconds: spec.ip_cooldown_seconds,
        }
    }
}

impl From<StoredConfig> for IpamConfigurationSpec {
    fn from(stored: StoredConfig) -> Self {
        Self {
            strict_affinity: stored.strict_affinity,
            max_blocks_per_host: stored.max_blocks_per_host,
            auto_allocate_blocks: stored.auto_allocate_blocks,
            kube_virt_vm_address_persistence: stored.vm_address_persistence,
            ip_cooldown_seconds: stored.cooldown_seconds,
        }
    }
}

impl<'a> From<&'a IpamBlockSpec> for BlockToStore<'a> {
    fn from(spec: &'a IpamBlockSpec) -> Self {
        Self {
            cidr: &spec.cidr,
            affinity: spec.affinity.as_deref(),
            affinity_claim_time: spec.affinity_claim_time.as_ref(),
            allocations: &spec.allocations,
            unallocated: &spec.unallocated,
            attributes: &spec.attributes,
            sequence_number: spec.sequence_number,
            sequence_number_for_allocation: &spec.sequence_number_for_allocation,
            deleted: spec.deleted,
        }
    }
}

impl From<StoredBlock> for IpamBlockSpec {
    fn from(stored: StoredBlock) -> Self {
        let affinity = stored
            .affinity
            .or_else(|| stored.host_affinity.map(|host| format!("host:{host}")));
        Self {
            cidr: stored.cidr,
            affinity,
            affinity_claim_time: stored.affinity_claim_time,
            allocations: stored.allocations,
            unallocated: stored.unallocated,
            attributes: stored.attributes,
            sequence_number: stored.sequence_number,
            sequence_number_for_allocation: stored.sequence_number_for_allocation,
            deleted: stored.deleted,
            deprecated_strict_affinity: false,
        }
    }
}

#[cfg(test)]
mod tests;
