//! Routes to workloads, and their neighbours.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::Serialize;
use tortie_config::RouteConfig;
use tortie_dataplane::DesiredState;
use tortie_rules::IpVersion;

/// A route to a workload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Route {
    destination: IpNet,
    interface: String,
    scope: &'static str,
    protocol: u8,
    metric: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<IpAddr>,
    /// The neighbour that the address belongs to, where that is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

/// The routes to the workloads of a node, once their interfaces are up; none where routes are left to others.
pub(super) fn wanted(
    world: &DesiredState,
    config: &RouteConfig,
    versions: &[IpVersion],
) -> Vec<Route> {
    let mut routes = Vec::new();
    if config.sync_disabled {
        return routes;
    }
    for (interface, endpoint) in world.active_workloads() {
        if endpoint.state != "active" {
            continue;
        }
        for net in endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets) {
            let is_v4 = net.addr().is_ipv4();
            let version = if is_v4 { IpVersion::V4 } else { IpVersion::V6 };
            if !versions.contains(&version) {
                continue;
            }
            let (metric, source) = if is_v4 {
                let source = config.device_source.map(IpAddr::V4);
                (config.normal_priority_v4, source)
            } else {
                let source = config.device_source_v6.map(IpAddr::V6);
                (config.normal_priority_v6, source)
            };
            routes.push(Route {
                destination: *net,
                interface: interface.to_string(),
                scope: "link",
                protocol: config.protocol,
                metric,
                source,
                mac: (is_v4 && !endpoint.mac.is_empty()).then(|| endpoint.mac.clone()),
            });
        }
    }
    routes
}
