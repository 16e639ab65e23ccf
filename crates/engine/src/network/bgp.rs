//! The cluster's BGP configuration, which the data plane gets much as it is.

use crate::input;
use crate::message::GlobalBgpConfig;

/// The message about the BGP configuration; all empty if there is none.
pub(super) fn message(config: Option<&input::BgpConfiguration>) -> GlobalBgpConfig {
    let config = config.cloned().unwrap_or_default();
    GlobalBgpConfig {
        service_cluster_cidrs: config.service_cluster_cidrs,
        service_external_cidrs: config.service_external_cidrs,
        service_load_balancer_cidrs: config.service_load_balancer_cidrs,
        local_workload_peering_ip_v4: config.local_workload_peering_ip_v4,
        local_workload_peering_ip_v6: config.local_workload_peering_ip_v6,
    }
}
