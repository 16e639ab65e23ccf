//! What the agent says about its node, as `/status` serves it.

use std::fmt;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tortie_dataplane::iptables::Variant;
use tortie_dataplane::{Part, Refused};
use tortie_rules::{Dataplane, IpVersion};

use crate::health::Health;
use crate::inputs::Remark;
use tortie_config::WithoutEffect;

/// What the agent says about its node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    pub node: String,
    /// Which programs these are.
    pub versions: Versions,
    /// Whether all that the datastore holds is in force.
    pub ready: bool,
    /// What is known of the datastore.
    pub datastore: DatastoreStatus,
    /// What enforces: `nftables` or `iptables`; empty before that is chosen.
    pub dataplane: String,
    /// Which iptables that is: `legacy` or `nft`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iptables_backend: Option<String>,
    /// When the kernel was last brought up to date, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_apply: Option<String>,
    /// How many endpoints of this node policy is enforced for.
    pub endpoints: usize,
    /// How many policies apply to them.
    pub policies: usize,
    /// What keeps the agent from being ready.
    pub problems: Vec<Problem>,
    /// What is not in the kernel as it was asked for, and denies.
    pub refused: Vec<RefusedObject>,
    /// Objects of the datastore that cannot be used, or only in part.
    pub invalid: Vec<Problem>,
    /// Parameters that nobody acts on.
    pub without_effect: Vec<Ineffective>,
}

/// Versions of programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Versions {
    /// This program.
    pub tortie: String,
    /// Linux.
    pub kernel: String,
}

/// What is known of the datastore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DatastoreStatus {
    /// `waiting` for it, `reading` it, or `inSync`.
    pub state: String,
    /// Since when it is in sync, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_sync_since: Option<String>,
    /// Whether it says that it is ready.
    pub ready: bool,
}

/// Something that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A kind of object, or a part of the agent.
    pub what: String,
    /// The object's name, with its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is wrong, and what follows.
    pub reason: String,
}

/// Something that is not in the kernel as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedObject {
    /// The kind of object.
    pub what: String,
    /// Its name, with its namespace.
    pub name: String,
    /// Why.
    pub reason: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// The chain that denies in its place; none for a set, where every chain that looks into it denies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
}

/// Something that nobody acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ineffective {
    /// `parameter`, or the kind of object.
    pub what: String,
    pub name: String,
    /// The value of a parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What does not happen.
    pub consequence: String,
}

/// Where the loop leaves what it knows, for whoever asks.
#[derive(Debug)]
pub struct Report {
    status: Mutex<NodeStatus>,
    health: Arc<Health>,
}

// === impl Ineffective ===

impl fmt::Display for Ineffective {
    /// `parameter(BPFEnabled): …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}): {}", self.what, self.name, self.consequence)
    }
}

// === impl Report ===

impl Report {
    /// Nothing is known but the node.
    pub(crate) fn new(node: &str, health: &Arc<Health>) -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let status = NodeStatus {
            node: node.to_owned(),
            versions: Versions {
                tortie: env!("CARGO_PKG_VERSION").to_owned(),
                kernel: kernel.trim().to_owned(),
            },
            datastore: DatastoreStatus {
                state: "waiting".to_owned(),
                ..DatastoreStatus::default()
            },
            ..NodeStatus::default()
        };
        Self {
            status: Mutex::new(status),
            health: Arc::clone(health),
        }
    }

    /// All that is known now.
    pub fn status(&self) -> NodeStatus {
        let mut status = self.lock().clone();
        status.ready = self.health.readiness().is_ok();
        status.problems = self.health.problems();
        status
    }

    pub(crate) fn set_dataplane(&self, kind: Dataplane, part: Option<Part>) {
        let backend = match part {
            Some(Part::Iptables(Variant::Legacy)) => Some("legacy"),
            Some(Part::Iptables(Variant::Nft)) => Some("nft"),
            Some(Part::Nftables) | None => None,
        };
        let mut status = self.lock();
        status.dataplane = kind.to_string();
        status.iptables_backend = backend.map(ToOwned::to_owned);
    }

    pub(crate) fn set_sync(&self, sync: tortie_sync::Status) {
        let datastore = &mut self.lock().datastore;
        let state = match sync {
            tortie_sync::Status::WaitForDatastore => "waiting",
            tortie_sync::Status::ResyncInProgress => "reading",
            tortie_sync::Status::InSync => "inSync",
        };
        if datastore.state == state {
            return;
        }
        state.clone_into(&mut datastore.state);
        let is_in_sync = sync == tortie_sync::Status::InSync;
        datastore.in_sync_since = is_in_sync.then(now);
    }

    pub(crate) fn set_datastore_ready(&self, is_ready: bool) {
        self.lock().datastore.ready = is_ready;
    }

    /// The kernel has all that it should have, but for what it refuses.
    pub(crate) fn set_applied(&self, endpoints: usize, policies: usize) {
        let mut status = self.lock();
        status.last_apply = Some(now());
        (status.endpoints, status.policies) = (endpoints, policies);
    }

    /// What the kernel refused, and what is too large for it.
    pub(crate) fn set_refused(&self, refused: Vec<Refused>) {
        let refused = refused.into_iter().map(|refused| RefusedObject {
            what: refused.owner.kind,
            name: refused.owner.name,
            reason: refused.reason,
            ip_version: match refused.ip_version {
                IpVersion::V4 => 4,
                IpVersion::V6 => 6,
            },
            chain: refused.chain.map(|chain| chain.to_string()),
        });
        self.lock().refused = refused.collect();
    }

    pub(crate) fn set_invalid(&self, invalid: &[Remark]) {
        let invalid = invalid.iter().map(|remark| Problem {
            what: remark.kind.clone(),
            name: remark.name.clone(),
            reason: remark.text.clone(),
        });
        self.lock().invalid = invalid.collect();
    }

    pub(crate) fn set_parameters_without_effect(&self, parameters: &[WithoutEffect]) {
        let parameters = parameters.iter().map(|parameter| Ineffective {
            what: "parameter".to_owned(),
            name: parameter.name.to_owned(),
            value: Some(parameter.value.clone()),
            origin: Some(parameter.origin.to_string()),
            consequence: parameter.consequence.to_owned(),
        });
        self.lock().without_effect = parameters.collect();
    }

    fn lock(&self) -> MutexGuard<'_, NodeStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// To the second.
fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}
