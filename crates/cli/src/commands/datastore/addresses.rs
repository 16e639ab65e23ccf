//! Blocks, claims, handles and settings of address management, as Calico exports them: the keys and values of etcd.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tortie_api::net::parse_cidr;
use tortie_api::{BlockAffinity, IpamBlock, IpamConfiguration, IpamHandle, Resource};
use tortie_store::ipam_names;

const BLOCKS: &str = "/calico/ipam/v2/assignment/";
const HANDLES: &str = "/calico/ipam/v2/handle/";
const CONFIG: &str = "/calico/ipam/v2/config";
const OWNERS: &str = "/calico/ipam/v2/";

/// The third part of an export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Addresses {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    block_affinities: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    handles: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Entry>,
}

/// A key of etcd and its value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Entry {
    key: String,
    value: Value,
    #[serde(rename = "TTL")]
    ttl: u64,
}

impl Addresses {
    pub(super) fn add(&mut self, resource: &Resource) -> Result<()> {
        match resource {
            Resource::IpamBlock(block) => self.blocks.push(block_entry(block)?),
            Resource::BlockAffinity(affinity) => {
                self.block_affinities.push(affinity_entry(affinity)?);
            }
            Resource::IpamHandle(handle) => {
                let key = format!("{HANDLES}{}", handle.spec.handle_id);
                let value = json!({ "block": handle.spec.block, "deleted": handle.spec.deleted });
                self.handles.push(Entry::new(key, value));
            }
            Resource::IpamConfiguration(config) => {
                self.config = Some(Entry::new(CONFIG.to_owned(), config_value(config)?));
            }
            other => bail!("{} is not about addresses", other.kind()),
        }
        Ok(())
    }

    /// All as resources: blocks and handles before the claims that make them usable.
    pub(super) fn to_resources(&self) -> Result<Vec<Resource>> {
        let mut resources = Vec::new();
        for entry in &self.handles {
            resources.push(entry.read(read_handle)?);
        }
        for entry in &self.blocks {
            resources.push(entry.read(read_block)?);
        }
        for entry in &self.block_affinities {
            resources.push(entry.read(read_affinity)?);
        }
        if let Some(entry) = &self.config {
            resources.push(entry.read(read_config)?);
        }
        Ok(resources)
    }
}

impl Entry {
    fn new(key: String, value: Value) -> Self {
        Self { key, value, ttl: 0 }
    }

    fn read(&self, read: impl Fn(&str, &Value) -> Option<Resource>) -> Result<Resource> {
        read(&self.key, &self.value)
            .with_context(|| format!("what is under {} cannot be read", self.key))
    }
}

/// `ipv4/block/10.0.0.0-26`.
fn net_path(cidr: &str) -> Result<String> {
    let net = parse_cidr(cidr).with_context(|| format!("{cidr} is no network"))?;
    let version = if net.ip().is_ipv4() { 4 } else { 6 };
    Ok(format!(
        "ipv{version}/block/{}",
        net.to_string().replace('/', "-")
    ))
}

fn net_of(path: &str) -> Option<String> {
    let (_, net) = path.split_once("/block/")?;
    let (address, length) = net.rsplit_once('-')?;
    let cidr = format!("{address}/{length}");
    parse_cidr(&cidr).map(|_| cidr)
}

fn block_entry(block: &IpamBlock) -> Result<Entry> {
    let mut value = serde_json::to_value(&block.spec)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("strictAffinity");
        fields.entry("affinity").or_insert(Value::Null);
        if let Some(time) = fields.remove("affinityClaimTime") {
            fields.insert("affinity_claim_time".to_owned(), time);
        }
    }
    let key = format!("{BLOCKS}{}", net_path(&block.spec.cidr)?);
    Ok(Entry::new(key, value))
}

fn read_block(key: &str, value: &Value) -> Option<Resource> {
    let cidr = net_of(key.strip_prefix(BLOCKS)?)?;
    let mut value = value.clone();
    let fields = value.as_object_mut()?;
    if let Some(time) = fields.remove("affinity_claim_time") {
        fields.insert("affinityClaimTime".to_owned(), time);
    }
    // Written so by very old versions.
    if let Some(host) = fields
        .remove("hostAffinity")
        .as_ref()
        .and_then(Value::as_str)
        && fields.get("affinity").is_none_or(Value::is_null)
    {
        fields.insert("affinity".to_owned(), json!(format!("host:{host}")));
    }
    fields.retain(|_, value| !value.is_null());
    let spec: tortie_api::ipam_block::IpamBlockSpec = serde_json::from_value(value).ok()?;
    if spec.cidr != cidr {
        return None;
    }
    let name = ipam_names::of_cidr(&cidr);
    Some(IpamBlock::new("", &name, spec).into())
}

fn affinity_entry(affinity: &BlockAffinity) -> Result<Entry> {
    let spec = &affinity.spec;
    let kind = if spec.r#type.is_empty() {
        "host"
    } else {
        &spec.r#type
    };
    let key = format!("{OWNERS}{kind}/{}/{}", spec.node, net_path(&spec.cidr)?);
    let value = json!({ "state": spec.state, "deleted": spec.deleted });
    Ok(Entry::new(key, value))
}

fn read_affinity(key: &str, value: &Value) -> Option<Resource> {
    let (kind, rest) = key.strip_prefix(OWNERS)?.split_once('/')?;
    let (node, net) = rest.split_once('/')?;
    let cidr = net_of(net)?;
    let mut spec = match value {
        Value::Null => json!({}),
        value => value.clone(),
    };
    let fields = spec.as_object_mut()?;
    fields.insert("node".to_owned(), json!(node));
    fields.insert("type".to_owned(), json!(kind));
    fields.insert("cidr".to_owned(), json!(cidr));
    let spec = serde_json::from_value(spec).ok()?;
    let name = ipam_names::of_affinity(node, &cidr);
    Some(BlockAffinity::new("", &name, spec).into())
}

fn read_handle(key: &str, value: &Value) -> Option<Resource> {
    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Stored {
        block: BTreeMap<String, i64>,
        deleted: bool,
    }
    let id = key.strip_prefix(HANDLES)?;
    let Stored { block, deleted } = serde_json::from_value(value.clone()).ok()?;
    let spec = tortie_api::ipam_handle::IpamHandleSpec {
        handle_id: id.to_owned(),
        block,
        deleted,
    };
    Some(IpamHandle::new("", id, spec).into())
}

/// Names of the settings in etcd, with those in resources.
const SETTINGS: [(&str, &str); 5] = [
    ("strict_affinity", "strictAffinity"),
    ("auto_allocate_blocks", "autoAllocateBlocks"),
    ("maxBlocksPerHost", "maxBlocksPerHost"),
    (
        "kubeVirtVMAddressPersistence",
        "kubeVirtVMAddressPersistence",
    ),
    ("ipCooldownSeconds", "ipCooldownSeconds"),
];

fn config_value(config: &IpamConfiguration) -> Result<Value> {
    let spec = serde_json::to_value(&config.spec)?;
    let settings = SETTINGS.iter().filter_map(|(stored, name)| {
        let value = spec.get(*name)?;
        Some(((*stored).to_owned(), value.clone()))
    });
    Ok(Value::Object(settings.collect()))
}

fn read_config(_: &str, value: &Value) -> Option<Resource> {
    let spec: serde_json::Map<String, Value> = SETTINGS
        .iter()
        .filter_map(|(stored, name)| Some(((*name).to_owned(), value.get(*stored)?.clone())))
        .collect();
    let spec = serde_json::from_value(Value::Object(spec)).ok()?;
    Some(IpamConfiguration::new("", "default", spec).into())
}
