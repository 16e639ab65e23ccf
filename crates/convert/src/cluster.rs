//! What concerns the cluster as a whole: its identity, its BGP configuration and peers, and machines on the move.

use tortie_api::bgp_configuration::{BgpConfigurationSpec, ServiceIpBlock};
use tortie_api::bgp_peer::BgpPeerSpec;
use tortie_api::cluster_information::ClusterInformationSpec;
use tortie_api::live_migration::{
    LiveMigrationSource, LiveMigrationTarget, WorkloadEndpointIdentifier,
};
use tortie_api::{LiveMigration as ApiLiveMigration, Path, Problems};
use tortie_config::from_cluster_information;

use super::read;
use tortie_engine::input::{
    BgpConfiguration, BgpPeer, Cluster, LiveMigration, MigrationSource, MigrationTarget,
    WorkloadEndpointKey,
};

/// Converts what is known of the cluster.
pub(super) fn cluster(spec: &ClusterInformationSpec) -> Cluster {
    Cluster {
        parameters: from_cluster_information(spec),
        datastore_ready: spec.datastore_ready,
    }
}

/// Converts the BGP configuration.
pub(super) fn bgp_configuration(spec: &BgpConfigurationSpec) -> BgpConfiguration {
    let cidrs = |blocks: &[ServiceIpBlock]| blocks.iter().map(|block| block.cidr.clone()).collect();
    BgpConfiguration {
        service_cluster_cidrs: cidrs(&spec.service_cluster_ips),
        service_external_cidrs: cidrs(&spec.service_external_ips),
        service_load_balancer_cidrs: cidrs(&spec.service_load_balancer_ips),
        local_workload_peering_ip_v4: spec.local_workload_peering_ipv4.clone(),
        local_workload_peering_ip_v6: spec.local_workload_peering_ipv6.clone(),
    }
}

/// Converts a BGP peer.
pub(super) fn bgp_peer(spec: &BgpPeerSpec, problems: &mut Problems) -> Option<BgpPeer> {
    let root = Path::ROOT;
    let at = root.field("spec");
    let nodes = read::selector(&at.field("nodeSelector"), &spec.node_selector, problems);
    let workloads = read::selector(
        &at.field("localWorkloadSelector"),
        &spec.local_workload_selector,
        problems,
    );
    nodes?;
    workloads?;
    Some(BgpPeer {
        node: spec.node.clone(),
        node_selector: spec.node_selector.clone(),
        local_workload_selector: spec.local_workload_selector.clone(),
    })
}

/// Converts the move of a machine.
pub(super) fn live_migration(
    migration: &ApiLiveMigration,
    problems: &mut Problems,
) -> Option<LiveMigration> {
    let spec = &migration.spec;
    if let Some(selector) = spec.target.as_ref().and_then(|t| t.selector.as_ref()) {
        let root = Path::ROOT;
        let at = root.field("spec");
        read::selector(&at.field("target").field("selector"), selector, problems)?;
    }
    Some(LiveMigration {
        uid: migration.metadata.uid.clone(),
        source: spec.source.as_ref().and_then(source),
        target: spec.target.as_ref().and_then(target),
    })
}

fn source(source: &LiveMigrationSource) -> Option<MigrationSource> {
    if let Some(workload) = &source.workload {
        return Some(MigrationSource::Workload {
            node: workload.hostname.clone(),
            orchestrator: workload.orchestrator_id.clone(),
            workload: workload.workload_id.clone(),
        });
    }
    let endpoint = source.workload_endpoint.as_ref();
    endpoint.map(|endpoint| MigrationSource::Endpoint(key(endpoint)))
}

fn target(target: &LiveMigrationTarget) -> Option<MigrationTarget> {
    if let Some(selector) = target.selector.as_ref().filter(|text| !text.is_empty()) {
        return Some(MigrationTarget::Selector(selector.clone()));
    }
    let endpoint = target.workload_endpoint.as_ref();
    endpoint.map(|endpoint| MigrationTarget::Endpoint(key(endpoint)))
}

fn key(endpoint: &WorkloadEndpointIdentifier) -> WorkloadEndpointKey {
    WorkloadEndpointKey {
        node: endpoint.hostname.clone(),
        orchestrator: endpoint.orchestrator_id.clone(),
        workload: endpoint.workload_id.clone(),
        endpoint: endpoint.endpoint_id.clone(),
    }
}
