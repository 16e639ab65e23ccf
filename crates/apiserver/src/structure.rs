//! How lists in objects are merged: as a whole, as sets, or item by item.
//!
//! Lists of custom resources are replaced as a whole. Kubernetes' own kinds have some whose items are told apart by keys;
//! both strategic patches and server-side apply go by that.

/// How a list is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// It is replaced as a whole.
    Atomic,
    /// It holds plain values, each once.
    Set,
    /// Its items are objects that are told apart by these fields. A field that is missing counts as null.
    Map(&'static [&'static str]),
}

/// What is known about the lists of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Structure {
    lists: &'static [(&'static str, ListType)],
}

use ListType::{Map, Set};

/// Lists of all kinds.
const COMMON: &[(&str, ListType)] = &[
    ("metadata.finalizers", Set),
    ("metadata.ownerReferences", Map(&["uid"])),
    ("status.conditions", Map(&["type"])),
];

const POD: &[(&str, ListType)] = &[
    ("spec.containers", Map(&["name"])),
    ("spec.containers.env", Map(&["name"])),
    ("spec.containers.ports", Map(&["containerPort", "protocol"])),
    ("spec.containers.volumeMounts", Map(&["mountPath"])),
    ("spec.initContainers", Map(&["name"])),
    ("spec.initContainers.env", Map(&["name"])),
    (
        "spec.initContainers.ports",
        Map(&["containerPort", "protocol"]),
    ),
    ("spec.initContainers.volumeMounts", Map(&["mountPath"])),
    ("spec.volumes", Map(&["name"])),
    ("spec.imagePullSecrets", Map(&["name"])),
    ("spec.hostAliases", Map(&["ip"])),
    ("status.podIPs", Map(&["ip"])),
];

const SERVICE: &[(&str, ListType)] = &[("spec.ports", Map(&["port", "protocol"]))];

const NODE: &[(&str, ListType)] = &[("spec.podCIDRs", Set), ("status.addresses", Map(&["type"]))];

const SERVICE_ACCOUNT: &[(&str, ListType)] = &[
    ("secrets", Map(&["name"])),
    ("imagePullSecrets", Map(&["name"])),
];

impl Structure {
    /// The structure of a kind.
    pub fn of(group: &str, kind: &str) -> Self {
        let lists: &[_] = match (group, kind) {
            ("", "Pod") => POD,
            ("", "Service") => SERVICE,
            ("", "Node") => NODE,
            ("", "ServiceAccount") => SERVICE_ACCOUNT,
            _ => &[],
        };
        Self { lists }
    }

    /// How the list at a path is merged. The path has the names of fields, without the places in lists.
    pub(crate) fn list_type(self, path: &[String]) -> ListType {
        let is_here = |known: &str| known.split('.').eq(path.iter().map(String::as_str));
        let mut lists = self.lists.iter().chain(COMMON);
        let found = lists.find(|(known, _)| is_here(known));
        found.map_or(ListType::Atomic, |(_, list_type)| *list_type)
    }
}
