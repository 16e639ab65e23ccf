//! `WorkloadEndpoint`: one network interface of a pod, virtual machine or other workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::{Dscp, Protocol};

/// Identity, addresses and settings of a workload's interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadEndpointSpec {
    /// Orchestrator that made the workload, such as `k8s` or `openstack`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub orchestrator: String,
    /// Name of the workload, for orchestrators other than Kubernetes.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub workload: String,
    /// Node the workload runs on.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub node: String,
    /// ID of the container sandbox that owns the interface.
    #[serde(rename = "containerID", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "containerID"))]
    pub container_id: String,
    /// Name of the pod, for Kubernetes workloads.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub pod: String,
    /// Name of the interface inside the workload, such as `eth0`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub endpoint: String,
    /// Service account the pod runs under.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub service_account_name: String,
    /// Addresses of the interface, each as a /32 or /128.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "net"))]
    pub ip_networks: Vec<String>,
    /// Floating addresses mapped one-to-one onto addresses of the interface.
    #[serde(rename = "ipNATs", skip_serializing_if = "is_default")]
    pub ip_nats: Vec<IpNat>,
    /// Default gateway the workload uses for IPv4.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv4"))]
    pub ipv4_gateway: String,
    /// Default gateway the workload uses for IPv6.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv6"))]
    pub ipv6_gateway: String,
    /// Profiles applied in order when no policy covers the traffic.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub profiles: Vec<String>,
    /// Name of the host side of the interface, such as `cali0123456789a`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "interface"))]
    pub interface_name: String,
    /// MAC address of the workload side of the interface.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "mac"))]
    pub mac: String,
    /// Named ports that rules can refer to, and host ports mapped to the workload.
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<WorkloadEndpointPort>,
    /// Foreign source ranges the workload may send from.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "cidr"))]
    pub allow_spoofed_source_prefixes: Vec<String>,
    /// Limits on bandwidth, packets and connections, and packet marking.
    #[serde(skip_serializing_if = "is_default")]
    pub qos_controls: Option<QosControls>,
}

/// A port of a workload, named or mapped to the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "protocol", "port", "hostPort", "hostIP"]))]
pub struct WorkloadEndpointPort {
    /// Name that rules use in place of the number; may be empty for a host port.
    #[schemars(extend("x-check" = "portName"))]
    pub name: String,
    /// Protocol of the port: TCP, UDP or SCTP.
    pub protocol: Protocol,
    /// Port number inside the workload.
    #[schemars(extend("x-check" = "gt=0"))]
    pub port: u16,
    /// Port of the node that leads here; 0 for none.
    pub host_port: u16,
    /// Node address the host port is bound to; empty for all of them.
    #[serde(rename = "hostIP")]
    #[schemars(extend("x-check" = "net"))]
    pub host_ip: String,
}

/// One floating address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["internalIP", "externalIP"]))]
pub struct IpNat {
    /// Address of the workload that traffic is sent on to.
    #[serde(rename = "internalIP")]
    #[schemars(extend("x-check" = "ip"))]
    pub internal_ip: String,
    /// Address clients use to reach the workload.
    #[serde(rename = "externalIP")]
    #[schemars(extend("x-check" = "ip"))]
    pub external_ip: String,
}

/// Traffic limits of a workload; 0 means no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct QosControls {
    /// Rate limit for traffic to the workload, in bits per second.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_bandwidth: i64,
    /// Bits that may arrive at once above the rate. Default 4Gi when a bandwidth is set.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_burst: i64,
    /// Highest rate during an inbound burst, in bits per second; above the bandwidth.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_peakrate: i64,
    /// Bytes that may arrive at once at peak rate. Default one MTU.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_minburst: i64,
    /// Rate limit for traffic from the workload, in bits per second.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_bandwidth: i64,
    /// Bits that may leave at once above the rate. Default 4Gi when a bandwidth is set.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_burst: i64,
    /// Highest rate during an outbound burst, in bits per second; above the bandwidth.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_peakrate: i64,
    /// Bytes that may leave at once at peak rate. Default one MTU.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_minburst: i64,
    /// Limit for packets to the workload, per second.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_packet_rate: i64,
    /// Packets that may arrive at once above the packet rate. Default 5.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_packet_burst: i64,
    /// Limit for packets from the workload, per second.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_packet_rate: i64,
    /// Packets that may leave at once above the packet rate. Default 5.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_packet_burst: i64,
    /// Most connections to the workload open at one time.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_max_connections: i64,
    /// Most connections from the workload open at one time.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_max_connections: i64,
    /// DSCP mark for packets of the workload that leave the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub dscp: Option<Dscp>,
}
