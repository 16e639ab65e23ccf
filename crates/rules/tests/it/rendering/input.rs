//! Reads the cases: protobuf messages in their JSON form, and the configuration of the renderer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde_json::Value;
use tortie_api::rule::{Action, RuleMetadata};
use tortie_api::scalar::Protocol;
use tortie_config::{
    AllowAction, DenyAction, EndpointToHostAction, FailsafePort, TransportProtocol,
};
use tortie_engine::input::{DefaultAction, Icmp};
use tortie_engine::message::{Policy, PortRange, Profile, QosControls, Rule, RuleSide};
use tortie_rules::config::{Config, Marks, NatOutgoing, OpenStack, Tunnels, Wireguard};
use tortie_rules::rule::{Rate, RateUnit};
use tortie_rules::{
    Chain, Dataplane, Direction, EndpointMarks, Hook, HostDispatch, HostInterfaces, IpVersion,
    PolicyGroup, PolicyId, Renderer, SetLayout, Table, TierGroups, VerdictMap, Workload,
};

/// What a case asks for.
pub(crate) struct Case {
    pub(crate) ip_version: IpVersion,
    pub(crate) chains: Vec<Chain>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) maps: Vec<VerdictMap>,
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn read(input: &Value, dataplane: Dataplane) -> Case {
    let ip_version = match input["ipVersion"].as_u64() {
        Some(4) => IpVersion::V4,
        _ => IpVersion::V6,
    };
    let config = config(&input["rulesConfig"]);
    let mut marks = EndpointMarks::new(&config.marks);
    let ipvs = config.ipvs;
    let renderer = Renderer::new(Arc::new(config), dataplane, ip_version);
    let layouts = &|_: &_| SetLayout::default();
    let mut maps = Vec::new();
    let mut hooks = Vec::new();
    let mut chains;
    match text(&input["type"]) {
        "policy" => {
            let id = policy_id(&input["id"]);
            let policy = policy(&input["policy"]);
            chains = renderer.policy_chains(Table::Filter, &id, &policy, layouts);
        }
        "profile" => {
            let profile = Profile {
                inbound_rules: rules(&input["profile"]["inboundRules"]),
                outbound_rules: rules(&input["profile"]["outboundRules"]),
            };
            let name = text(&input["id"]["name"]);
            chains = renderer.profile_chains(Table::Filter, name, &profile, layouts);
        }
        "workloadEndpoint" => {
            let interface = text(&input["interface"]);
            let tiers = tiers(&input["tiers"], input);
            let qos = qos(&input["qosControls"]);
            chains = renderer.workload_chains(Workload {
                interface,
                admin_up: input["adminUp"].as_bool().unwrap_or_default(),
                tiers: &tiers,
                profiles: &profiles(input),
                qos: qos.as_ref(),
            });
            if ipvs {
                chains.push(renderer.endpoint_mark_chain(interface, &mut marks));
            }
            groups(&renderer, Table::Filter, &tiers, &mut chains);
        }
        "hostEndpoint" => {
            let interface = text(&input["interface"]);
            let of = |key: &str| tiers(&input[key], input);
            let (normal, forward) = (of("tiers"), of("forwardTiers"));
            let (untracked, pre_dnat) = (of("untrackedTiers"), of("preDnatTiers"));
            let profiles = profiles(input);
            chains = renderer.host_filter_chains(interface, &normal, &forward, &profiles);
            if ipvs {
                chains.push(renderer.endpoint_mark_chain(interface, &mut marks));
            }
            groups(&renderer, Table::Filter, &normal, &mut chains);
            groups(&renderer, Table::Filter, &forward, &mut chains);
            chains.push(renderer.host_mangle_ingress_chain(interface, &pre_dnat));
            chains.push(renderer.host_mangle_egress_chain(interface, &normal, &profiles));
            chains.extend(renderer.host_raw_chains(interface, &untracked));
            let ingress_only = pre_dnat.into_iter().map(|tier| TierGroups {
                egress: Vec::new(),
                ..tier
            });
            let pre_dnat: Vec<TierGroups> = ingress_only.collect();
            groups(&renderer, Table::Mangle, &pre_dnat, &mut chains);
            groups(&renderer, Table::Raw, &untracked, &mut chains);
        }
        "dispatch" => {
            let workloads: Vec<&str> = texts(&input["workloadInterfaces"]);
            let hosts: Vec<&str> = texts(&input["hostInterfaces"]);
            let default = match text(&input["defaultHostInterface"]) {
                "" => None,
                name => Some(name),
            };
            let interfaces = HostInterfaces {
                names: &hosts,
                default,
            };
            chains = renderer.workload_dispatch_chains(&workloads);
            for which in [
                HostDispatch::Filter,
                HostDispatch::Mangle,
                HostDispatch::Raw,
            ] {
                chains.extend(renderer.host_dispatch_chains(which, interfaces, interfaces));
            }
            maps = renderer.workload_dispatch_maps(&workloads).into();
        }
        "static" => {
            chains = renderer.fixed_chains();
            hooks = renderer.hooks();
            chains.push(renderer.nat_outgoing_chain(input["natOutgoingActive"] == true));
            if ip_version == IpVersion::V4 {
                chains.push(renderer.floating_dnat_chain(&addresses(&input["dnats"])));
                chains.push(renderer.floating_snat_chain(&addresses(&input["snats"])));
                let blocked: Vec<IpNet> = nets(&input["blockedCIDRs"]);
                chains.push(renderer.blocked_cidrs_chain(&blocked));
            }
        }
        other => panic!("an unknown type of case: {other}"),
    }
    Case {
        ip_version,
        chains,
        hooks,
        maps,
    }
}

fn groups(renderer: &Renderer, table: Table, tiers: &[TierGroups], chains: &mut Vec<Chain>) {
    let groups = tiers
        .iter()
        .flat_map(|tier| tier.ingress.iter().chain(&tier.egress));
    let groups = groups.filter(|group| !group.should_be_inlined());
    chains.extend(groups.map(|group| renderer.group_chain(table, group)));
}

fn tiers(value: &Value, input: &Value) -> Vec<TierGroups> {
    let selectors = &input["policySelectors"];
    let tiers = list(value).iter().map(|tier| {
        let groups = |key: &str, direction| {
            let ids: Vec<PolicyId> = list(&tier[key]).iter().map(policy_id).collect();
            let with_selectors = ids.iter().map(|id| (id, text(&selectors[id.to_string()])));
            let groups = PolicyGroup::divide(direction, with_selectors);
            groups.into_iter().map(Arc::new).collect()
        };
        TierGroups {
            name: text(&tier["name"]).into(),
            default_action: match text(&tier["defaultAction"]) {
                "Pass" => DefaultAction::Pass,
                _ => DefaultAction::Deny,
            },
            ingress: groups("ingressPolicies", Direction::Ingress),
            egress: groups("egressPolicies", Direction::Egress),
        }
    });
    tiers.collect()
}

fn profiles(input: &Value) -> Vec<String> {
    texts(&input["profileIds"])
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(text).collect()
}

fn policy_id(value: &Value) -> PolicyId {
    PolicyId {
        kind: text(&value["kind"]).parse().expect("a kind of policy"),
        namespace: text(&value["namespace"]).to_owned(),
        name: text(&value["name"]).to_owned(),
    }
}

fn policy(value: &Value) -> Policy {
    Policy {
        tier: text(&value["tier"]).to_owned(),
        namespace: text(&value["namespace"]).to_owned(),
        inbound_rules: rules(&value["inboundRules"]),
        outbound_rules: rules(&value["outboundRules"]),
        untracked: value["untracked"] == true,
        pre_dnat: value["preDnat"] == true,
        original_selector: text(&value["originalSelector"]).to_owned(),
        perf_hints: Vec::new(),
    }
}

fn rules(value: &Value) -> Vec<Rule> {
    list(value).iter().map(rule).collect()
}

fn rule(value: &Value) -> Rule {
    let side = |small: &str, capital: &str| {
        let of = |name: String| &value[name];
        RuleSide {
            nets: nets(of(format!("{small}Net"))),
            not_nets: nets(of(format!("not{capital}Net"))),
            ports: ports(of(format!("{small}Ports"))),
            not_ports: ports(of(format!("not{capital}Ports"))),
            sets: sets(of(format!("{small}IpSetIds"))),
            not_sets: sets(of(format!("not{capital}IpSetIds"))),
            named_port_sets: sets(of(format!("{small}NamedPortIpSetIds"))),
            not_named_port_sets: sets(of(format!("not{capital}NamedPortIpSetIds"))),
            port_sets: sets(of(format!("{small}IpPortSetIds"))),
            original: None,
        }
    };
    let annotations: BTreeMap<String, String> = value["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), text(value).to_owned()))
        .collect();
    Rule {
        action: match text(&value["action"]) {
            "" | "allow" => Action::Allow,
            "deny" => Action::Deny,
            "log" => Action::Log,
            "pass" | "next-tier" => Action::Pass,
            other => panic!("an unknown action: {other}"),
        },
        ip_version: match text(&value["ipVersion"]) {
            "IPV4" => Some(4),
            "IPV6" => Some(6),
            _ => None,
        },
        protocol: protocol(&value["protocol"]),
        not_protocol: protocol(&value["notProtocol"]),
        icmp: icmp(&value["icmpType"], &value["icmpTypeCode"]),
        not_icmp: icmp(&value["notIcmpType"], &value["notIcmpTypeCode"]),
        src: side("src", "Src"),
        dst: side("dst", "Dst"),
        http: None,
        metadata: (!annotations.is_empty()).then(|| {
            Box::new(RuleMetadata {
                annotations: annotations.into_iter().collect(),
            })
        }),
    }
}

fn protocol(value: &Value) -> Option<Protocol> {
    match (value["number"].as_u64(), value["name"].as_str()) {
        (Some(number), _) => Some(Protocol::Number(u8::try_from(number).expect("a protocol"))),
        (_, Some(name)) => Some(match name {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "icmp" => Protocol::Icmp,
            "icmpv6" => Protocol::Icmpv6,
            "sctp" => Protocol::Sctp,
            "udplite" => Protocol::UdpLite,
            other => Protocol::Unknown(other.into()),
        }),
        _ => None,
    }
}

fn icmp(kind: &Value, both: &Value) -> Option<Icmp> {
    let byte = |value: &Value| u8::try_from(value.as_u64().unwrap_or_default()).expect("a byte");
    if both.is_object() {
        return Some(Icmp {
            r#type: byte(&both["type"]),
            code: Some(byte(&both["code"])),
        });
    }
    kind.is_number().then(|| Icmp {
        r#type: byte(kind),
        code: None,
    })
}

fn nets(value: &Value) -> Vec<IpNet> {
    texts(value)
        .into_iter()
        .map(|net| net.parse().expect("a network"))
        .collect()
}

fn sets(value: &Value) -> Vec<tortie_engine::message::SetId> {
    texts(value)
        .into_iter()
        .map(|id| id.to_owned().into())
        .collect()
}

fn port(value: &Value) -> u16 {
    u16::try_from(value.as_u64().unwrap_or_default()).expect("a port")
}

fn ports(value: &Value) -> Vec<PortRange> {
    let ports = list(value).iter().map(|range| PortRange {
        first: port(&range["first"]),
        last: port(&range["last"]),
    });
    ports.collect()
}

fn qos(value: &Value) -> Option<QosControls> {
    let number = |key: &str| text(&value[key]).parse().unwrap_or_default();
    value.is_object().then(|| QosControls {
        ingress_packet_rate: number("IngressPacketRate"),
        egress_packet_rate: number("EgressPacketRate"),
        ingress_packet_burst: number("IngressPacketBurst"),
        egress_packet_burst: number("EgressPacketBurst"),
        ingress_max_connections: number("IngressMaxConnections"),
        egress_max_connections: number("EgressMaxConnections"),
        ..QosControls::default()
    })
}

fn addresses(value: &Value) -> BTreeMap<IpAddr, IpAddr> {
    let entries = value.as_object().into_iter().flatten();
    entries
        .map(|(from, to)| {
            let to = text(to).parse().expect("an address");
            (from.parse().expect("an address"), to)
        })
        .collect()
}

fn config(value: &Value) -> Config {
    let bits = |key: &str| u32::try_from(value[key].as_u64().unwrap_or_default()).expect("a mark");
    let flag = |key: &str| value[key] == true;
    let allow = |key: &str| match text(&value[key]) {
        "RETURN" => AllowAction::Return,
        _ => AllowAction::Accept,
    };
    let wireguard = |enabled: &str, name: &str, listening: &str| Wireguard {
        enabled: flag(enabled),
        interface: text(&value[name]).to_owned(),
        port: port(&value[listening]),
    };
    let range = |text: &str| {
        let (first, last) = text.split_once(':')?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        Some(PortRange { first, last })
    };
    Config {
        marks: Marks {
            accept: bits("MarkAccept"),
            pass: bits("MarkPass"),
            drop: bits("MarkDrop"),
            scratch0: bits("MarkScratch0"),
            scratch1: bits("MarkScratch1"),
            wireguard: bits("WireguardMark"),
            endpoint: bits("MarkEndpoint"),
        },
        workload_prefixes: texts(&value["WorkloadIfacePrefixes"])
            .into_iter()
            .map(str::to_owned)
            .collect(),
        filter_allow: allow("FilterAllowAction"),
        mangle_allow: allow("MangleAllowAction"),
        deny: match text(&value["FilterDenyAction"]) {
            "REJECT" => DenyAction::Reject,
            _ => DenyAction::Drop,
        },
        endpoint_to_host: match text(&value["EndpointToHostAction"]) {
            "DROP" => EndpointToHostAction::Drop,
            "ACCEPT" => EndpointToHostAction::Accept,
            _ => EndpointToHostAction::Return,
        },
        failsafe_inbound: failsafe(&value["FailsafeInboundHostPorts"]),
        failsafe_outbound: failsafe(&value["FailsafeOutboundHostPorts"]),
        service_loop: match text(&value["ServiceLoopPrevention"]) {
            "Drop" => Some(DenyAction::Drop),
            "Reject" => Some(DenyAction::Reject),
            _ => None,
        },
        disable_conntrack_invalid: flag("DisableConntrackInvalid"),
        log_prefix: text(&value["LogPrefix"]).to_owned(),
        log_rate: text(&value["LogActionRateLimit"])
            .split_once('/')
            .map(|(count, unit)| {
                let rate = Rate {
                    count: count.parse().expect("a number"),
                    unit: match unit {
                        "second" => RateUnit::Second,
                        "minute" => RateUnit::Minute,
                        "hour" => RateUnit::Hour,
                        _ => RateUnit::Day,
                    },
                };
                (rate, bits("LogActionRateLimitBurst"))
            }),
        flow_logs: flag("FlowLogsEnabled"),
        nat_outgoing: NatOutgoing {
            exclude_hosts: text(&value["NATOutgoingExclusions"]) == "IPPoolsAndHostIPs",
            ports: range(text(&value["NATPortRange"])),
            address: None,
            interface: value["IptablesNATOutgoingInterfaceFilter"]
                .as_str()
                .map(str::to_owned),
        },
        floating_addresses: false,
        tunnels: Tunnels {
            ipip: flag("IPIPEnabled"),
            vxlan: flag("VXLANEnabled"),
            vxlan_v6: flag("VXLANEnabledV6"),
            vxlan_port: port(&value["VXLANPort"]),
            wireguard: wireguard(
                "WireguardEnabled",
                "WireguardInterfaceName",
                "WireguardListeningPort",
            ),
            wireguard_v6: wireguard(
                "WireguardEnabledV6",
                "WireguardInterfaceNameV6",
                "WireguardListeningPortV6",
            ),
            ..Tunnels::default()
        },
        allow_vxlan_from_workloads: flag("AllowVXLANPacketsFromWorkloads"),
        allow_ipip_from_workloads: flag("AllowIPIPPacketsFromWorkloads"),
        ipvs: flag("KubeIPVSSupportEnabled"),
        node_ports: texts(&value["KubeNodePortRanges"])
            .into_iter()
            .filter_map(range)
            .collect(),
        openstack: flag("OpenStackSpecialCasesEnabled").then(|| OpenStack {
            metadata_address: text(&value["OpenStackMetadataIP"]).parse().ok(),
            metadata_port: port(&value["OpenStackMetadataPort"]),
        }),
    }
}

fn failsafe(value: &Value) -> Vec<FailsafePort> {
    let ports = list(value).iter().map(|entry| FailsafePort {
        protocol: match text(&entry["protocol"]) {
            "tcp" => TransportProtocol::Tcp,
            "udp" => TransportProtocol::Udp,
            other => panic!("an unknown protocol: {other}"),
        },
        port: port(&entry["port"]),
        network: entry["net"]
            .as_str()
            .map(|net| net.parse().expect("a network")),
    });
    ports.collect()
}
