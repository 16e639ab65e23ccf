//! Conversions from Kubernetes objects to Calico resources, and what to write back for the one kind that has a way
//! back, [`node`].
//!
//! # Invariants
//! - Pure and total: an object that cannot be converted is a [`Converted`] without a resource, never a panic.
//! - Fail closed: a rule that cannot be converted is left out where it allows, and denies everything where it denies
//!   or passes. The one exception, kept because all of Calico does so, is an `ipBlock` that is not a CIDR: it leaves
//!   the rule without a peer. The API server refuses such a policy.
//! - The UID of a derived object is that of the Kubernetes object through [`convert_uid`], so that garbage collection
//!   never takes the two for one; endpoints and nodes are the exception and keep it.

mod cluster_network_policy;
mod live_migration;
mod network_policy;
mod node;
mod pod;
mod ports;
mod profile;
mod quantity;
mod selector;
mod uid;
mod view;

pub use cluster_network_policy::{
    ClusterNetworkPolicy, ClusterNetworkPolicyEgressPeer, ClusterNetworkPolicyEgressRule,
    ClusterNetworkPolicyIngressPeer, ClusterNetworkPolicyIngressRule, ClusterNetworkPolicyPort,
    ClusterNetworkPolicyPortRange, ClusterNetworkPolicyPorts, ClusterNetworkPolicyProtocol,
    ClusterNetworkPolicySpec, ClusterNetworkPolicySubject, NamespacedPods, cluster_network_policy,
};
pub use live_migration::{VirtualMachineInstanceMigration, live_migration};
pub use network_policy::network_policy;
pub use node::{node, update_node};
pub use pod::{is_ready, is_valid_workload_endpoint, pod};
pub use profile::{
    DEFAULT_ALLOW_PROFILE, NAMESPACE_LABEL, ProfileOwner, SERVICE_ACCOUNT_LABEL,
    default_allow_profile, namespace, service_account,
};
pub use uid::convert_uid;
pub use view::{NamespacedName, Reading, View, is_kubernetes_policy};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::meta::Metadata;
use crate::problem::{Path, Problems};
use crate::resource::Resource;

/// What became of a Kubernetes object.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted<T> {
    /// The resource, as far as it could be converted; without one the object counts as deleted.
    pub resource: Option<T>,
    /// What was left out or replaced, and why.
    pub problems: Problems,
}

impl<T> Converted<T> {
    /// Runs a conversion that notes its problems.
    fn from_fn(convert: impl FnOnce(&mut Problems) -> Option<T>) -> Self {
        let mut problems = Problems::default();
        let resource = convert(&mut problems);
        Self { resource, problems }
    }

    /// The same, as a resource of any kind.
    pub fn into_resource(self) -> Converted<Resource>
    where
        T: Into<Resource>,
    {
        Converted {
            resource: self.resource.map(Into::into),
            problems: self.problems,
        }
    }
}

/// Name, age and derived UID of an object; an object without a UID derives none.
fn derived_metadata(meta: &ObjectMeta, name: String, problems: &mut Problems) -> Option<Metadata> {
    let uid = match meta.uid.as_deref().unwrap_or_default() {
        "" => String::new(),
        uid => derived_uid(uid, problems)?,
    };
    Some(Metadata {
        name,
        uid,
        creation_timestamp: meta.creation_timestamp.clone(),
        ..Metadata::default()
    })
}

fn derived_uid(uid: &str, problems: &mut Problems) -> Option<String> {
    let converted = convert_uid(uid);
    if converted.is_none() {
        problems.add(
            &Path::ROOT.field("metadata").field("uid"),
            uid,
            "must be a UUID",
        );
    }
    converted
}

/// Notes what is wrong with an annotation.
fn note_annotation(problems: &mut Problems, key: &str, value: impl serde::Serialize, rule: &str) {
    let root = Path::ROOT;
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    problems.add(&annotations.field(key), value, rule);
}
