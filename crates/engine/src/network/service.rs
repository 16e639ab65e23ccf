//! Services and the cluster's BGP configuration, which the data plane gets much as they are.

use crate::input;
use crate::message::{GlobalBgpConfig, Service, ServicePort};

/// The message about a service.
pub(super) fn service(name: &input::ObjectName, service: &input::Service) -> Service {
    Service {
        name: name.name.clone(),
        namespace: name.namespace.clone(),
        r#type: service.r#type.clone(),
        cluster_ips: service.cluster_ips.clone(),
        load_balancer_ip: service.load_balancer_ip.clone(),
        external_ips: service.external_ips.clone(),
        ports: service.ports.iter().map(port).collect(),
        load_balancer_ingress_ips: service.load_balancer_ingress_ips.clone(),
    }
}

fn port(port: &input::ServicePort) -> ServicePort {
    // Kubernetes' default is TCP.
    let protocol = match port.protocol.as_str() {
        "UDP" => "UDP",
        "SCTP" => "SCTP",
        _ => "TCP",
    };
    ServicePort {
        protocol: protocol.to_owned(),
        port: port.port,
        node_port: port.node_port,
    }
}

/// The message about the BGP configuration; all empty if there is none.
pub(super) fn bgp(config: Option<&input::BgpConfiguration>) -> GlobalBgpConfig {
    let config = config.cloned().unwrap_or_default();
    GlobalBgpConfig {
        service_cluster_cidrs: config.service_cluster_cidrs,
        service_external_cidrs: config.service_external_cidrs,
        service_load_balancer_cidrs: config.service_load_balancer_cidrs,
        local_workload_peering_ip_v4: config.local_workload_peering_ip_v4,
        local_workload_peering_ip_v6: config.local_workload_peering_ip_v6,
    }
}
