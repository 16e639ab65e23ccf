//! A node's end of flannel's tunnel, as flannel notes it in annotations of the node.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;

/// The end of the tunnel on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vtep {
    /// The node's pods.
    pub(super) network: Ipv4Net,
    /// The address of the tunnel's device: the first of the node's pods.
    pub(super) address: Ipv4Addr,
    /// Its hardware address.
    pub(super) mac: String,
    /// Where other nodes send packets of the tunnel to.
    pub(super) public: IpAddr,
}

#[derive(Deserialize)]
struct BackendData {
    #[serde(rename = "VtepMAC")]
    mac: String,
}

impl Vtep {
    /// Reads it off a node. The error says what is missing or wrong.
    pub(super) fn of(node: &Node, prefix: &str) -> Result<Self, String> {
        let cidr = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref());
        let cidr = cidr.filter(|cidr| !cidr.is_empty());
        let cidr = cidr.ok_or("it has no network for pods (spec.podCIDR)")?;
        let network: Ipv4Net = cidr.parse().map_err(|_| {
            format!("its network for pods (spec.podCIDR) is {cidr:?}, which is none of IPv4")
        })?;
        let annotation = |name: &str| {
            let name = format!("{prefix}/{name}");
            let annotations = node.metadata.annotations.as_ref();
            let found = annotations.and_then(|annotations| annotations.get(&name));
            found.ok_or_else(|| format!("the annotation {name} is missing"))
        };
        let backend = annotation("backend-type")?;
        if backend != "vxlan" {
            return Err(format!(
                "flannel's backend is {backend:?}; only vxlan can be moved"
            ));
        }
        let data = annotation("backend-data")?;
        let data: BackendData = serde_json::from_str(data)
            .map_err(|error| format!("{prefix}/backend-data: {data:?} cannot be read: {error}"))?;
        let public = annotation("public-ip")?;
        let public = public
            .parse()
            .map_err(|_| format!("{prefix}/public-ip: {public:?} is no address"))?;
        Ok(Self {
            address: network.addr(),
            network: network.trunc(),
            mac: data.mac,
            public,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PREFIX: &str = "flannel.alpha.coreos.com";

    fn node() -> Value {
        json!({
            "metadata": {"name": "n1", "annotations": {
                "flannel.alpha.coreos.com/backend-type": "vxlan",
                "flannel.alpha.coreos.com/backend-data": "{\"VNI\":1,\"VtepMAC\":\"56:1d:8d:30:79:97\"}",
                "flannel.alpha.coreos.com/public-ip": "172.16.101.96",
            }},
            "spec": {"podCIDR": "10.244.1.0/24"},
        })
    }

    fn vtep(node: &Value) -> Result<Vtep, String> {
        Vtep::of(&serde_json::from_value(node.clone()).unwrap(), PREFIX)
    }

    #[test]
    fn everything_is_in_the_annotations() {
        let vtep = vtep(&node()).unwrap();
        assert_eq!(vtep.address.to_string(), "10.244.1.0");
        assert_eq!(vtep.network.to_string(), "10.244.1.0/24");
        assert_eq!(
            (vtep.mac.as_str(), vtep.public.to_string().as_str()),
            ("56:1d:8d:30:79:97", "172.16.101.96")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        for (pointer, value, words) in [
            ("/spec/podCIDR", json!(""), "spec.podCIDR"),
            ("/spec/podCIDR", json!("fd00::/64"), "IPv4"),
            (
                "/metadata/annotations/flannel.alpha.coreos.com~1backend-type",
                json!("host-gw"),
                "only vxlan",
            ),
            (
                "/metadata/annotations/flannel.alpha.coreos.com~1backend-data",
                json!("{}"),
                "VtepMAC",
            ),
            (
                "/metadata/annotations/flannel.alpha.coreos.com~1public-ip",
                json!("here"),
                "no address",
            ),
        ] {
            let mut node = node();
            *node.pointer_mut(pointer).unwrap() = value;
            let message = vtep(&node).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
        let mut bare = node();
        bare["metadata"]["annotations"] = json!({});
        assert!(vtep(&bare).unwrap_err().contains("backend-type is missing"));
    }
}
