//! The rules that join several fields, kind by kind. Rules for one field are attributes of the types.

mod bgp;
mod configuration;
mod endpoints;
mod kubernetes;
pub(crate) mod labels;
mod metadata;
mod policy;
mod pool;
mod roles;
mod rule;

use crate::problem::{Path, Problems};
use crate::resource::Resource;

pub use configuration::NEEDED_MARK_BITS;
pub use kubernetes::{NameRule, check_kubernetes_metadata, check_kubernetes_policy};
pub use labels::is_qualified_name;
pub use pool::{check_pool_change, pools_overlap};
pub use roles::{
    ROLE_GROUP, check_cluster_role, check_cluster_role_binding, check_role, check_role_binding,
};

/// Notes all that is wrong with a resource beyond its schema.
pub(crate) fn resource(resource: &Resource, problems: &mut Problems) {
    metadata::check(resource.kind(), resource.metadata(), problems);
    let root = Path::ROOT;
    let spec = root.field("spec");
    match resource {
        Resource::NetworkPolicy(policy) => policy::check(&spec, &(&policy.spec).into(), problems),
        Resource::GlobalNetworkPolicy(policy) => {
            policy::check(&spec, &(&policy.spec).into(), problems);
        }
        Resource::StagedNetworkPolicy(policy) => {
            policy::check_staged(&spec, &policy.spec, problems);
        }
        Resource::StagedGlobalNetworkPolicy(policy) => {
            policy::check_staged_global(&spec, &policy.spec, problems);
        }
        Resource::StagedKubernetesNetworkPolicy(policy) => {
            policy::check_staged_kubernetes(&spec, policy, problems);
        }
        Resource::Tier(tier) => policy::check_tier(&spec, tier, problems),
        Resource::Profile(profile) => {
            rule::check_all(&spec.field("ingress"), &profile.spec.ingress, problems);
            rule::check_all(&spec.field("egress"), &profile.spec.egress, problems);
        }
        Resource::HostEndpoint(endpoint) => endpoints::check_host(&spec, &endpoint.spec, problems),
        Resource::WorkloadEndpoint(endpoint) => {
            endpoints::check_workload(&spec, endpoint, problems);
        }
        Resource::Node(node) => endpoints::check_node(&spec, &node.spec, problems),
        Resource::IpPool(pool) => pool::check(&spec, &pool.spec, problems),
        Resource::BlockAffinity(affinity) => pool::check_affinity(&spec, &affinity.spec, problems),
        Resource::BgpConfiguration(config) => bgp::check_configuration(&spec, config, problems),
        Resource::BgpPeer(peer) => bgp::check_peer(&spec, &peer.spec, problems),
        Resource::BgpFilter(filter) => bgp::check_filter(&spec, &filter.spec, problems),
        Resource::FelixConfiguration(config) => configuration::check_felix(&spec, config, problems),
        Resource::KubeControllersConfiguration(config) => {
            configuration::check_controllers(&spec, &config.spec, problems);
        }
        Resource::CalicoNodeStatus(status) => {
            configuration::check_node_status(&spec, &status.spec, problems);
        }
        Resource::ClusterInformation(_)
        | Resource::GlobalNetworkSet(_)
        | Resource::IpReservation(_)
        | Resource::IpamBlock(_)
        | Resource::IpamConfiguration(_)
        | Resource::IpamHandle(_)
        | Resource::LiveMigration(_)
        | Resource::NetworkSet(_) => {}
    }
}
