//! Keys as etcd paths, exactly as Calico lays them out, and back.
//!
//! | kind | path |
//! |---|---|
//! | most | `/calico/resources/v3/projectcalico.org/<plural>/[<namespace>/]<name>` |
//! | `IPAMBlock` | `/calico/ipam/v2/assignment/ipv{4,6}/block/<address>-<length>` |
//! | `BlockAffinity` | `/calico/ipam/v2/{host,virtual}/<node>/ipv{4,6}/block/<address>-<length>` |
//! | `IPAMHandle` | `/calico/ipam/v2/handle/<handle ID>` |
//! | `IPAMConfiguration` | `/calico/ipam/v2/config` |
//!
//! Calico's resource client keeps an `IPAMConfiguration` of its own among the resources, which its IPAM never reads; here it is
//! the one that its IPAM obeys.
//!
//! The paths of the IPAM kinds say more than the names of the objects, which follow the rules that
//! Calico has for them in Kubernetes: see [`crate::ipam_names`]. So a name may stand for several paths;
//! [`candidates`] gives them all.

use tortie_api::net::{Cidr, parse_cidr};
use tortie_api::{Kind, Problems, Resource};

use crate::error::{Error, Result};
use crate::ipam_names as names;
use crate::key::{Key, Query};

const RESOURCES: &str = "/calico/resources/v3/projectcalico.org/";
const BLOCKS: &str = "/calico/ipam/v2/assignment/";
const CONFIG: &str = "/calico/ipam/v2/config";
const HANDLES: &str = "/calico/ipam/v2/handle/";
const HOST_AFFINITIES: &str = "/calico/ipam/v2/host/";
const VIRTUAL_AFFINITIES: &str = "/calico/ipam/v2/virtual/";

/// The name of the one `IPAMConfiguration`.
const CONFIG_NAME: &str = "default";

/// Older versions of Calico put this before the names of policies in the default tier.
pub(super) const LEGACY_PREFIX: &str = "default.";

/// What a path says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Location {
    /// An object stored whole. The name is that in the path.
    Resource(Key),
    /// A block of addresses.
    Block {
        /// Its addresses.
        cidr: String,
    },
    /// The claim of a node on a block.
    Affinity {
        /// `host` or `virtual`.
        r#type: &'static str,
        node: String,
        /// The block.
        cidr: String,
    },
    /// The addresses of one holder.
    Handle {
        /// The holder.
        id: String,
    },
    /// The settings of IPAM.
    Config,
}

/// The part of the key space that a query needs; it may hold more than the query selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: Vec<u8>,
    /// The first key that is not in it; empty if the range is the one key `start`.
    pub(super) end: Vec<u8>,
}

// === impl Location ===

impl Location {
    /// Reads a path; none if it is not that of an object.
    pub(super) fn parse(path: &str) -> Option<Self> {
        if let Some(rest) = path.strip_prefix(RESOURCES) {
            return parse_resource(rest).map(Self::Resource);
        }
        if let Some(rest) = path.strip_prefix(BLOCKS) {
            return parse_block(rest).map(|cidr| Self::Block { cidr });
        }
        if path == CONFIG {
            return Some(Self::Config);
        }
        if let Some(id) = path.strip_prefix(HANDLES) {
            return is_segment(id).then(|| Self::Handle { id: id.to_owned() });
        }
        let (r#type, rest) = match path.strip_prefix(HOST_AFFINITIES) {
            Some(rest) => ("host", rest),
            None => ("virtual", path.strip_prefix(VIRTUAL_AFFINITIES)?),
        };
        let (node, rest) = rest.split_once('/')?;
        let cidr = parse_block(rest)?;
        is_segment(node).then(|| Self::Affinity {
            r#type,
            node: node.to_owned(),
            cidr,
        })
    }

    /// The key of the object there; policies may have another name than their path, see
    /// [`super::value`].
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Resource(key) => key.clone(),
            Self::Block { cidr } => Key::global(Kind::IpamBlock, names::of_cidr(cidr)),
            Self::Affinity { node, cidr, .. } => {
                Key::global(Kind::BlockAffinity, names::of_affinity(node, cidr))
            }
            Self::Handle { id } => Key::global(Kind::IpamHandle, id.clone()),
            Self::Config => Key::global(Kind::IpamConfiguration, CONFIG_NAME),
        }
    }
}

/// The path under which a resource is to be written.
pub(super) fn of_resource(resource: &Resource) -> Result<String> {
    let refuse = |field: &str, value: &str, rule: &str| {
        let mut problems = Problems::default();
        let root = tortie_api::Path::ROOT;
        problems.add(&root.field(field), value, rule);
        Err(Error::Invalid {
            key: Key::of(resource),
            problems,
        })
    };
    match resource {
        Resource::IpamBlock(block) => match parse_cidr(&block.spec.cidr) {
            Some(cidr) => Ok(block_path(BLOCKS, cidr)),
            None => refuse("spec.cidr", &block.spec.cidr, "must be a CIDR"),
        },
        Resource::BlockAffinity(affinity) => {
            let spec = &affinity.spec;
            let prefix = match spec.r#type.as_str() {
                "" | "host" => HOST_AFFINITIES,
                "virtual" => VIRTUAL_AFFINITIES,
                other => return refuse("spec.type", other, "must be `host` or `virtual`"),
            };
            if !is_segment(&spec.node) {
                return refuse("spec.node", &spec.node, "must be given, and without `/`");
            }
            match parse_cidr(&spec.cidr) {
                Some(cidr) => Ok(block_path(&format!("{prefix}{}/", spec.node), cidr)),
                None => refuse("spec.cidr", &spec.cidr, "must be a CIDR"),
            }
        }
        Resource::IpamHandle(handle) => {
            let id = &handle.spec.handle_id;
            if !is_segment(id) {
                return refuse("spec.handleID", id, "must be given, and without `/`");
            }
            Ok(format!("{HANDLES}{id}"))
        }
        Resource::IpamConfiguration(config) if config.metadata.name == CONFIG_NAME => {
            Ok(CONFIG.to_owned())
        }
        other => {
            let key = Key::of(other);
            if !is_segment(&key.name) {
                return refuse("metadata.name", &key.name, "must be given, and without `/`");
            }
            if key.kind.is_namespaced() && !is_segment(&key.namespace) {
                let rule = "must be given, and without `/`";
                return refuse("metadata.namespace", &key.namespace, rule);
            }
            Ok(resource_path(&key, ""))
        }
    }
}

/// All paths where the object of a key may be, the likeliest first. None where the name alone does
/// not tell: an affinity whose name was too long to hold the whole name of its node.
pub(super) fn candidates(key: &Key) -> Vec<String> {
    match key.kind {
        Kind::IpamBlock => names::to_cidr(&key.name)
            .map(|cidr| block_path(BLOCKS, cidr))
            .into_iter()
            .collect(),
        Kind::IpamHandle => vec![format!("{HANDLES}{}", key.name)],
        Kind::IpamConfiguration if key.name == CONFIG_NAME => vec![CONFIG.to_owned()],
        Kind::BlockAffinity => names::to_affinities(&key.name)
            .flat_map(|(node, cidr)| {
                [HOST_AFFINITIES, VIRTUAL_AFFINITIES]
                    .map(|prefix| block_path(&format!("{prefix}{node}/"), cidr))
            })
            .collect(),
        kind if kind.is_tiered_policy() => {
            vec![resource_path(key, ""), resource_path(key, LEGACY_PREFIX)]
        }
        _ => vec![resource_path(key, "")],
    }
}

/// The path of a tiered policy as older versions of Calico stored it.
pub(super) fn legacy(key: &Key) -> Option<String> {
    key.kind
        .is_tiered_policy()
        .then(|| resource_path(key, LEGACY_PREFIX))
}

fn resource_path(key: &Key, name_prefix: &str) -> String {
    let Key {
        kind,
        namespace,
        name,
    } = key;
    let plural = kind.plural();
    if kind.is_namespaced() {
        format!("{RESOURCES}{plural}/{namespace}/{name_prefix}{name}")
    } else {
        format!("{RESOURCES}{plural}/{name_prefix}{name}")
    }
}

fn block_path(prefix: &str, cidr: Cidr) -> String {
    let version = if cidr.is_ipv4() { 4 } else { 6 };
    let cidr = cidr.network().to_string().replacen('/', "-", 1);
    format!("{prefix}ipv{version}/block/{cidr}")
}

fn parse_resource(rest: &str) -> Option<Key> {
    let (plural, rest) = rest.split_once('/')?;
    let kind = Kind::ALL
        .iter()
        .copied()
        .find(|kind| kind.plural() == plural)?;
    let is_ipam = matches!(
        kind,
        Kind::IpamBlock | Kind::IpamHandle | Kind::BlockAffinity
    );
    let key = if kind.is_namespaced() {
        let (namespace, name) = rest.split_once('/')?;
        Key::namespaced(kind, namespace, name)
    } else {
        Key::global(kind, rest)
    };
    let is_complete = is_segment(&key.name) && kind.is_namespaced() == is_segment(&key.namespace);
    let is_other_config = kind == Kind::IpamConfiguration && key.name == CONFIG_NAME;
    (is_complete && !is_ipam && !is_other_config).then_some(key)
}

/// Reads `ipv4/block/10.0.0.0-26`.
fn parse_block(rest: &str) -> Option<String> {
    let (version, cidr) = rest.split_once("/block/")?;
    let cidr = parse_cidr(&cidr.replacen('-', "/", 1))?;
    let expected = if cidr.is_ipv4() { "ipv4" } else { "ipv6" };
    (version == expected).then(|| cidr.network().to_string())
}

fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

// === impl Range ===

impl Range {
    /// The range to read or watch for a query.
    pub(super) fn of(query: &Query) -> Self {
        let Query {
            kind,
            namespace,
            name,
        } = query;
        match kind {
            Kind::IpamBlock => return Self::prefix(BLOCKS),
            Kind::IpamHandle => return Self::prefix(HANDLES),
            Kind::IpamConfiguration => return Self::key(CONFIG.to_owned()),
            // Nothing else is between the two.
            Kind::BlockAffinity => {
                let end = Self::prefix(VIRTUAL_AFFINITIES).end;
                return Self {
                    start: HOST_AFFINITIES.into(),
                    end,
                };
            }
            _ => {}
        }
        // A policy may be under its older path.
        let name = name.as_deref().filter(|_| !kind.is_tiered_policy());
        let plural = kind.plural();
        match (kind.is_namespaced(), namespace, name) {
            (false, _, Some(name)) => Self::key(format!("{RESOURCES}{plural}/{name}")),
            (true, Some(namespace), Some(name)) => {
                Self::key(format!("{RESOURCES}{plural}/{namespace}/{name}"))
            }
            (true, Some(namespace), None) => {
                Self::prefix(format!("{RESOURCES}{plural}/{namespace}/"))
            }
            (false, _, None) | (true, None, _) => Self::prefix(format!("{RESOURCES}{plural}/")),
        }
    }

    /// The affinities of all owners of this name, by sort of owner.
    pub(super) fn affinities_of(owner: &str) -> [Self; 2] {
        [HOST_AFFINITIES, VIRTUAL_AFFINITIES]
            .map(|prefix| Self::prefix(format!("{prefix}{owner}/")))
    }

    fn key(key: String) -> Self {
        Self {
            start: key.into_bytes(),
            end: Vec::new(),
        }
    }

    /// All keys with a prefix, which must not be empty nor end in the byte 255.
    fn prefix(prefix: impl Into<String>) -> Self {
        let start = prefix.into().into_bytes();
        let mut end = start.clone();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self { start, end }
    }
}

#[cfg(test)]
mod tests;
