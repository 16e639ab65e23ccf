//! What the configuration means for the engine and for the rules.

use std::net::IpAddr;

use tortie_api::scalar::Protocol;
use tortie_api::validate::NEEDED_MARK_BITS;
use tortie_dataplane::iptables;
use tortie_engine::message::Encapsulation;
use tortie_engine::{ClusterRoutes, Overlaps, RouteSource as EngineRouteSource};
use tortie_rules::config::{self as rules, Allow, Deny, EndpointToHost, Marks};
use tortie_rules::rule::{PortRange, Rate, RateUnit};
use tortie_rules::{Dataplane, IpVersion};

use tortie_config::{
    AllowAction, BackendConfig, ChainInsertMode, Config, DenyAction, EndpointToHostAction,
    FailsafePort, IptablesBackend, NatOutgoingExclusions, ProgramClusterRoutes, RouteSource,
    ServiceLoopPrevention, SourceSpoofing, TransportProtocol,
};

/// The mask for packet marks is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {mask:#010x} has {} bits, and rules need {NEEDED_MARK_BITS}", mask.count_ones())]
pub struct TooFewMarks {
    pub(crate) parameter: &'static str,
    mask: u32,
}

/// What the engine is told before it starts.
pub fn engine_config(config: &Config, node: &str, dataplane: Dataplane) -> tortie_engine::Config {
    tortie_engine::Config {
        overlaps: match dataplane {
            Dataplane::Nftables => Overlaps::AddressesSent,
            Dataplane::Iptables => Overlaps::Sent,
        },
        allow_source_spoofing: config.policy.source_spoofing == SourceSpoofing::Any,
        ipip_enabled: config.encap.ipip,
        vxlan_enabled: config.encap.vxlan,
        cluster_routes: match config.routes.program_cluster_routes {
            ProgramClusterRoutes::Enabled => ClusterRoutes::Enabled,
            ProgramClusterRoutes::Disabled => ClusterRoutes::Disabled,
            ProgramClusterRoutes::IpipOnly => ClusterRoutes::EnabledIpipOnly,
            ProgramClusterRoutes::NoEncapOnly => ClusterRoutes::EnabledNoEncapOnly,
        },
        route_source: match config.routes.source {
            RouteSource::CalicoIpam => EngineRouteSource::CalicoIpam,
            RouteSource::WorkloadIps => EngineRouteSource::WorkloadIps,
        },
        ..tortie_engine::Config::for_node(node)
    }
}

/// What rules depend on besides policies.
pub fn rules_config(
    config: &Config,
    dataplane: Dataplane,
    encapsulation: Encapsulation,
) -> Result<rules::Config, TooFewMarks> {
    let is_nftables = dataplane == Dataplane::Nftables;
    let backend: &BackendConfig = config.tables.backend(is_nftables);
    let marks = Marks::from_mask(backend.mark_mask, false).ok_or(TooFewMarks {
        parameter: if is_nftables {
            "NftablesMarkMask"
        } else {
            "IptablesMarkMask"
        },
        mask: backend.mark_mask,
    })?;
    let policy = &config.policy;
    Ok(rules::Config {
        marks,
        workload_prefixes: config.interfaces.prefixes.clone(),
        filter_allow: allow(backend.filter_allow),
        mangle_allow: allow(backend.mangle_allow),
        deny: match backend.filter_deny {
            DenyAction::Drop => Deny::Drop,
            DenyAction::Reject => Deny::Reject,
        },
        endpoint_to_host: match policy.endpoint_to_host {
            EndpointToHostAction::Drop => EndpointToHost::Drop,
            EndpointToHostAction::Return => EndpointToHost::Return,
            EndpointToHostAction::Accept => EndpointToHost::Accept,
        },
        failsafe_inbound: config.failsafe.inbound.iter().map(failsafe).collect(),
        failsafe_outbound: config.failsafe.outbound.iter().map(failsafe).collect(),
        service_loop: match policy.service_loop_prevention {
            ServiceLoopPrevention::Drop => Some(Deny::Drop),
            ServiceLoopPrevention::Reject => Some(Deny::Reject),
            ServiceLoopPrevention::Disabled => None,
        },
        disable_conntrack_invalid: policy.allow_conntrack_invalid,
        log_prefix: policy.log.prefix.clone(),
        log_rate: policy
            .log
            .rate_limit
            .as_deref()
            .and_then(rate)
            .map(|rate| (rate, policy.log.rate_limit_burst)),
        flow_logs: false,
        nat_outgoing: rules::NatOutgoing {
            exclude_hosts: config.nat.outgoing_exclusions
                == NatOutgoingExclusions::IpPoolsAndHostIps,
            ports: config.nat.ports.map(port_range),
            address: config.nat.outgoing_address.map(IpAddr::V4),
            interface: config.nat.outgoing_interface.clone(),
        },
        floating_addresses: config.nat.floating_ips || config.is_openstack(),
        tunnels: tunnels(config, encapsulation),
        allow_vxlan_from_workloads: config.encap.allow_vxlan_from_workloads,
        allow_ipip_from_workloads: config.encap.allow_ipip_from_workloads,
        ipvs: false,
        node_ports: config
            .nat
            .node_ports
            .iter()
            .copied()
            .map(port_range)
            .collect(),
        openstack: config.is_openstack().then(|| rules::OpenStack {
            metadata_address: config
                .metadata
                .address
                .as_ref()
                .and_then(|address| address.parse().ok()),
            metadata_port: config.metadata.port,
        }),
        istio_dscp: None,
    })
}

/// How iptables is driven.
pub(crate) fn iptables_options(config: &Config, ip_version: IpVersion) -> iptables::Options {
    let tables = &config.tables;
    iptables::Options {
        backend: match tables.iptables_backend {
            IptablesBackend::Legacy => iptables::Backend::Only(iptables::Variant::Legacy),
            IptablesBackend::Nft => iptables::Backend::Only(iptables::Variant::Nft),
            IptablesBackend::Auto => iptables::Backend::Auto,
        },
        insert_mode: match tables.chain_insert_mode {
            ChainInsertMode::Insert => iptables::InsertMode::Insert,
            ChainInsertMode::Append => iptables::InsertMode::Append,
        },
        lock_probe_interval: tables.iptables_lock_probe,
        max_ipset_size: config.ip_sets.max_size,
        ..iptables::Options::new(ip_version)
    }
}

fn tunnels(config: &Config, encapsulation: Encapsulation) -> rules::Tunnels {
    let encap = &config.encap;
    rules::Tunnels {
        ipip: encapsulation.ipip_enabled,
        ipip_address: encap.ipip_address.map(IpAddr::V4),
        vxlan: encapsulation.vxlan_enabled,
        vxlan_address: encap.vxlan_address.map(IpAddr::V4),
        vxlan_v6: encapsulation.vxlan_enabled_v6,
        vxlan_address_v6: encap.vxlan_address_v6.map(IpAddr::V6),
        vxlan_port: encap.vxlan_port,
        ..rules::Tunnels::default()
    }
}

fn allow(action: AllowAction) -> Allow {
    match action {
        AllowAction::Accept => Allow::Accept,
        AllowAction::Return => Allow::Return,
    }
}

fn failsafe(port: &FailsafePort) -> rules::FailsafePort {
    rules::FailsafePort {
        protocol: match port.protocol {
            TransportProtocol::Tcp => Protocol::Tcp,
            TransportProtocol::Udp => Protocol::Udp,
        },
        port: port.port,
        net: port.network,
    }
}

fn port_range(range: tortie_config::PortRange) -> PortRange {
    PortRange {
        first: range.first,
        last: range.last,
    }
}

/// A rate as the parameter gives it: `5/minute`.
fn rate(text: &str) -> Option<Rate> {
    let (count, unit) = text.split_once('/')?;
    Some(Rate {
        count: count.parse().ok()?,
        unit: match unit {
            "second" => RateUnit::Second,
            "minute" => RateUnit::Minute,
            "hour" => RateUnit::Hour,
            "day" => RateUnit::Day,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tortie_config::{Sources, resolve};

    fn derived(parameters: &[(&str, &str)]) -> Result<rules::Config, TooFewMarks> {
        let mut sources = Sources::default();
        for (name, value) in parameters {
            sources
                .datastore
                .global
                .insert((*name).to_owned(), (*value).to_owned());
        }
        let resolved = resolve(&sources);
        assert_eq!(resolved.problems, []);
        rules_config(
            &resolved.config,
            Dataplane::Iptables,
            Encapsulation::default(),
        )
    }

    #[test]
    fn defaults_are_the_renderers_own() {
        assert_eq!(derived(&[]), Ok(rules::Config::default()));
    }

    #[test]
    fn parameters_reach_the_renderer() {
        let config = derived(&[
            ("IptablesFilterAllowAction", "RETURN"),
            ("IptablesFilterDenyAction", "REJECT"),
            ("LogActionRateLimit", "10/minute"),
            ("DefaultEndpointToHostAction", "ACCEPT"),
            ("ServiceLoopPrevention", "Disabled"),
            ("FailsafeInboundHostPorts", "tcp:10.0.0.0/8:22"),
            ("NATPortRange", "1000:2000"),
            ("InterfacePrefix", "eni,cali"),
        ])
        .expect("enough marks");
        assert_eq!(config.filter_allow, Allow::Return);
        assert_eq!(config.deny, Deny::Reject);
        let rate = Rate {
            count: 10,
            unit: RateUnit::Minute,
        };
        assert_eq!(config.log_rate, Some((rate, 5)));
        assert_eq!(config.endpoint_to_host, EndpointToHost::Accept);
        assert_eq!(config.service_loop, None);
        assert_eq!(config.failsafe_inbound.len(), 1);
        assert_eq!(config.failsafe_inbound[0].net, "10.0.0.0/8".parse().ok());
        assert_eq!(
            config.nat_outgoing.ports.map(|ports| ports.last),
            Some(2000)
        );
        assert_eq!(config.workload_prefixes, ["eni", "cali"]);
    }

    #[test]
    fn a_mask_with_too_few_bits_is_refused() {
        let error = derived(&[("IptablesMarkMask", "0xf0000000")]).expect_err("four bits");
        assert_eq!(
            error.to_string(),
            "IptablesMarkMask: 0xf0000000 has 4 bits, and rules need 5"
        );
    }
}
