//! `HostEndpoint`: an interface of a node, so that policy can cover the host itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::Protocol;

/// Interface of a host and what belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HostEndpointSpec {
    /// Name of the node whose interface this is.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 253, "x-check" = "name"))]
    pub node: String,
    /// Linux name of the interface; `*` covers all interfaces of the host.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 15, "x-check" = "interface"))]
    pub interface_name: String,
    /// Addresses of the interface; they identify it when no name is given and fill IP sets.
    #[serde(rename = "expectedIPs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-repeats" = true, "x-check" = "ip"))]
    pub expected_ips: Vec<String>,
    /// Profiles applied in order when no policy covers the traffic.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-check" = "name"))]
    pub profiles: Vec<String>,
    /// Named ports that rules can refer to on this endpoint.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<EndpointPort>,
}

/// A port of an endpoint with a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "protocol", "port"]))]
pub struct EndpointPort {
    /// Name that rules use in place of the number.
    #[schemars(extend("x-check" = "portName"))]
    pub name: String,
    /// Protocol of the port: TCP, UDP or SCTP.
    pub protocol: Protocol,
    /// Port number the name stands for.
    #[schemars(extend("minimum" = 1, "maximum" = 65535, "x-check" = "gt=0"))]
    pub port: u16,
}
