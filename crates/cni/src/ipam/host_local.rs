//! The configuration of the plugin `host-local`, in which a node's own networks can be asked for by a word.

use ipnet::IpNet;
use serde_json::{Map, Value};
use tortie_api::net::parse_cidr;

use crate::error::{Error, Result};

/// The words, whatever their case.
const IPV4: &str = "usepodcidr";
const IPV6: &str = "usepodcidripv6";

/// The networks that a node has for its pods, at most one of each family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PodCidrs {
    ipv4: Option<String>,
    ipv6: Option<String>,
}

impl PodCidrs {
    /// Of the networks that Kubernetes gave to the node.
    pub(super) fn of(cidrs: &[String]) -> Result<Self> {
        let mut found = Self::default();
        for cidr in cidrs {
            let parsed = parse_cidr(cidr).ok_or_else(|| {
                Error::config(format!("the node's podCIDR `{cidr}` is not a CIDR"))
            })?;
            let place = if parsed.is_ipv4() {
                &mut found.ipv4
            } else {
                &mut found.ipv6
            };
            *place = Some(cidr.clone());
        }
        if cidrs.len() > 1 && (found.ipv4.is_none() || found.ipv6.is_none()) {
            let message = format!(
                "the node's podCIDRs are of one family: {}",
                cidrs.join(", ")
            );
            return Err(Error::config(message));
        }
        Ok(found)
    }

    /// Networks that stand for any.
    pub(super) fn any() -> Self {
        Self {
            ipv4: Some("0.0.0.0/0".to_owned()),
            ipv6: Some("::/0".to_owned()),
        }
    }
}

/// Whether a configuration asks for the node's own networks.
pub(super) fn needs_pod_cidrs(config: &Value) -> bool {
    let mut copy = config.clone();
    // Without any networks to fill in, only a configuration that asks for some is refused.
    fill_in(&mut copy, &PodCidrs::default()).is_err()
}

/// Puts networks in place of the words that ask for them, and leaves all else as it is.
pub(super) fn fill_in(config: &mut Value, cidrs: &PodCidrs) -> Result<()> {
    let Some(Value::Object(ipam)) = config.get_mut("ipam") else {
        return Err(wrong("ipam", "must be an object"));
    };
    fill_in_one(ipam, cidrs)?;
    let sets = match ipam.get_mut("ranges") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(sets)) => sets,
        Some(_) => return Err(wrong("ipam.ranges", "must be a list of lists")),
    };
    for set in sets {
        let Value::Array(ranges) = set else {
            return Err(wrong("ipam.ranges", "must be a list of lists"));
        };
        for range in ranges {
            let Value::Object(range) = range else {
                return Err(wrong("ipam.ranges", "must be a list of lists of objects"));
            };
            fill_in_one(range, cidrs)?;
        }
    }
    Ok(())
}

fn fill_in_one(range: &mut Map<String, Value>, cidrs: &PodCidrs) -> Result<()> {
    let subnet = range
        .get("subnet")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let (cidr, family) = match subnet.to_ascii_lowercase().as_str() {
        IPV4 => (&cidrs.ipv4, 4),
        IPV6 => (&cidrs.ipv6, 6),
        _ => return Ok(()),
    };
    let cidr = cidr.as_ref().ok_or_else(|| {
        let message = format!(
            "network configuration: `ipam` has the subnet `{subnet}`, but the node has no IPv{family} podCIDR"
        );
        Error::config(message)
    })?;
    range.insert("subnet".to_owned(), cidr.clone().into());
    Ok(())
}

/// The routes that the container is to have; none if none are configured.
pub(super) fn routes(config: &Value) -> Result<Vec<IpNet>> {
    let routes = match config.pointer("/ipam/routes") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(routes)) => routes,
        Some(_) => return Err(wrong("ipam.routes", "must be a list")),
    };
    let mut found = Vec::new();
    for route in routes {
        // The gateway is always the node.
        let Some(destination) = route.get("dst") else {
            continue;
        };
        let parsed = destination.as_str().and_then(parse_cidr);
        let parsed = parsed.ok_or_else(|| {
            wrong(
                "ipam.routes",
                &format!("has the destination {destination}, which is not a CIDR"),
            )
        })?;
        found.push(parsed.network());
    }
    Ok(found)
}

fn wrong(key: &str, rule: &str) -> Error {
    Error::config(format!("network configuration: `{key}` {rule}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cidrs(list: &[&str]) -> Result<PodCidrs> {
        PodCidrs::of(&list.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_replaced_everywhere_and_all_else_stays() {
        let mut config = json!({"x": 1, "ipam": {"type": "host-local", "subnet": "usePodCidr", "y": 2, "ranges": [
            [{"subnet": "usePodCidrIPv6", "z": 3}], [{"subnet": "10.9.0.0/16"}]
        ]}});
        assert!(needs_pod_cidrs(&config));
        let both = cidrs(&["10.1.0.0/24", "fd00:1::/64"]).expect("networks");
        fill_in(&mut config, &both).expect("a configuration");
        let expected = json!({"x": 1, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "y": 2, "ranges": [
            [{"subnet": "fd00:1::/64", "z": 3}], [{"subnet": "10.9.0.0/16"}]
        ]}});
        assert_eq!(config, expected);
        assert!(!needs_pod_cidrs(&config));
    }

    #[test]
    fn a_family_that_the_node_does_not_have_is_an_error() {
        let mut config = json!({"ipam": {"subnet": "usePodCidrIPv6"}});
        let error = fill_in(&mut config, &cidrs(&["10.1.0.0/24"]).expect("a network"));
        assert!(error.expect_err("a refusal").to_string().contains("IPv6"));
        assert!(cidrs(&["10.1.0.0/24", "10.2.0.0/24"]).is_err());
        assert!(cidrs(&["10.1.0.0"]).is_err());
    }

    #[test]
    fn routes_are_read() {
        let config = json!({"ipam": {"routes": [{"dst": "10.0.0.1/8", "gw": "1.2.3.4"}, {}]}});
        let found = routes(&config).expect("routes");
        assert_eq!(found, ["10.0.0.0/8".parse::<IpNet>().expect("a network")]);
        assert!(routes(&json!({"ipam": {"routes": [{"dst": 1}]}})).is_err());
        assert!(routes(&json!({"ipam": {"routes": {}}})).is_err());
        assert!(routes(&json!({"ipam": {}})).expect("none").is_empty());
    }
}
