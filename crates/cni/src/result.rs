//! Results, in the forms of all versions of the specification.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tortie_api::net::parse_cidr;

use crate::version::CniVersion;

/// What routes may have since version 1.1.0.
const MORE: [&str; 5] = ["mtu", "advmss", "priority", "table", "scope"];

/// What a plugin did, in the form of the newest version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CniResult {
    /// The interfaces on both sides.
    pub interfaces: Vec<Interface>,
    /// The addresses of the container.
    pub ips: Vec<Address>,
    /// Where the container can send to.
    pub routes: Vec<Route>,
    /// Passed on as it came.
    pub dns: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    pub name: String,
    /// Its hardware address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
    /// The largest packet; since version 1.0.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The container's network namespace; empty on the node's side.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The place of its interface in the list of them.
    pub interface: Option<usize>,
    /// The address with the length of its network.
    pub address: IpNet,
    /// The next machine.
    pub gateway: Option<IpAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destinations; the address may have bits beyond the length.
    pub destination: IpNet,
    /// The next machine.
    pub gateway: Option<IpAddr>,
    /// What it has besides since version 1.1.0, as it came: numbers such as `mtu` and `priority`.
    pub more: Map<String, Value>,
}

impl CniResult {
    /// The result in the form of a version.
    pub fn to_json(&self, version: CniVersion) -> Value {
        let mut out = match version {
            CniVersion::V0_1_0 | CniVersion::V0_2_0 => self.by_family(),
            _ => self.by_interface(version),
        };
        out["cniVersion"] = version.as_str().into();
        out["dns"] = self.dns.clone().unwrap_or_else(|| json!({}));
        out
    }

    /// Reads a result of any version.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let written = value.get("cniVersion").and_then(Value::as_str);
        let is_by_family = value.get("ip4").is_some() || value.get("ip6").is_some();
        if let Some(written) = written {
            written
                .parse::<CniVersion>()
                .map_err(|error| error.to_string())?;
        }
        let mut result = if is_by_family {
            Self::parse_by_family(value)?
        } else {
            Self::parse_by_interface(value)?
        };
        result.dns = value.get("dns").filter(|dns| !dns.is_null()).cloned();
        Ok(result)
    }

    /// Up to 0.2.0: at most one address of each family, without interfaces.
    fn by_family(&self) -> Value {
        let mut out = json!({});
        for (key, is_ipv4) in [("ip4", true), ("ip6", false)] {
            let of_family = |address: &&Address| address.address.addr().is_ipv4() == is_ipv4;
            let Some(address) = self.ips.iter().find(of_family) else {
                continue;
            };
            let mut part = json!({ "ip": address.address.to_string() });
            add_gateway(&mut part, "gateway", address.gateway);
            let routes: Vec<Value> = self
                .routes
                .iter()
                .filter(|route| route.destination.addr().is_ipv4() == is_ipv4)
                .map(|route| route_json(route, CniVersion::V0_2_0))
                .collect();
            if !routes.is_empty() {
                part["routes"] = routes.into();
            }
            out[key] = part;
        }
        out
    }

    fn by_interface(&self, version: CniVersion) -> Value {
        let mut out = json!({});
        if !self.interfaces.is_empty() {
            let interfaces = self.interfaces.iter().cloned().map(|mut interface| {
                if version < CniVersion::V1_0_0 {
                    interface.mtu = None;
                }
                interface
            });
            out["interfaces"] = json!(interfaces.collect::<Vec<_>>());
        }
        let address = |address: &Address| {
            let mut part = json!({ "address": address.address.to_string() });
            if version < CniVersion::V1_0_0 {
                let family = if address.address.addr().is_ipv4() {
                    "4"
                } else {
                    "6"
                };
                part["version"] = family.into();
            }
            if let Some(interface) = address.interface {
                part["interface"] = interface.into();
            }
            add_gateway(&mut part, "gateway", address.gateway);
            part
        };
        if !self.ips.is_empty() {
            out["ips"] = self.ips.iter().map(address).collect::<Vec<_>>().into();
        }
        if !self.routes.is_empty() {
            out["routes"] = self
                .routes
                .iter()
                .map(|route| route_json(route, version))
                .collect::<Vec<_>>()
                .into();
        }
        out
    }

    fn parse_by_family(value: &Value) -> Result<Self, String> {
        let mut result = Self::default();
        for key in ["ip4", "ip6"] {
            let Some(part) = value.get(key).filter(|part| !part.is_null()) else {
                continue;
            };
            result.ips.push(Address {
                interface: None,
                address: network(part.get("ip"), key)?,
                gateway: gateway(part.get("gateway"))?,
            });
            result.routes.extend(read_routes(part.get("routes"))?);
        }
        Ok(result)
    }

    fn parse_by_interface(value: &Value) -> Result<Self, String> {
        let mut result = Self {
            routes: read_routes(value.get("routes"))?,
            ..Self::default()
        };
        if let Some(interfaces) = value.get("interfaces").filter(|list| !list.is_null()) {
            result.interfaces =
                Vec::deserialize(interfaces).map_err(|error| format!("`interfaces`: {error}"))?;
        }
        for part in list(value.get("ips"), "ips")? {
            let interface = part.get("interface").and_then(Value::as_u64);
            result.ips.push(Address {
                interface: interface.and_then(|number| usize::try_from(number).ok()),
                address: network(part.get("address"), "address")?,
                gateway: gateway(part.get("gateway"))?,
            });
        }
        Ok(result)
    }
}

fn route_json(route: &Route, version: CniVersion) -> Value {
    let mut part = json!({ "dst": route.destination.to_string() });
    add_gateway(&mut part, "gw", route.gateway);
    if version >= CniVersion::V1_1_0 {
        for (key, value) in &route.more {
            part[key] = value.clone();
        }
    }
    part
}

fn add_gateway(part: &mut Value, key: &str, gateway: Option<IpAddr>) {
    if let Some(gateway) = gateway {
        part[key] = gateway.to_string().into();
    }
}

/// Routes of a result or of a configuration.
pub(crate) fn read_routes(value: Option<&Value>) -> Result<Vec<Route>, String> {
    let read = |part: &Value| {
        let more = part.as_object().into_iter().flatten();
        let more = more.filter(|(key, value)| MORE.contains(&key.as_str()) && value.is_u64());
        Ok(Route {
            destination: network(part.get("dst"), "dst")?,
            gateway: gateway(part.get("gw"))?,
            more: more
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        })
    };
    list(value, "routes")?.iter().map(read).collect()
}

fn list<'a>(value: Option<&'a Value>, key: &str) -> Result<&'a [Value], String> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(format!("`{key}` is {other}, not a list")),
    }
}

fn network(value: Option<&Value>, key: &str) -> Result<IpNet, String> {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    parse_cidr(text)
        .and_then(|cidr| IpNet::new(cidr.ip(), cidr.prefix()).ok())
        .ok_or_else(|| {
            format!("`{key}` is `{text}`, not an address with the length of its network")
        })
}

fn gateway(value: Option<&Value>) -> Result<Option<IpAddr>, String> {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = text.parse();
    parsed
        .map(Some)
        .map_err(|_| format!("`{text}` is not an address"))
}

#[cfg(test)]
mod tests;
