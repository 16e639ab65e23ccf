//! Resources that ask for BGP, which a node alone does without.

use crate::bgp_configuration::BgpConfigurationSpec;
use crate::{BgpConfiguration, Resource};

/// Whether a resource asks for BGP. A `BGPConfiguration` with defaults alone does not: Calico's start makes one of these.
pub fn asks_for_bgp(resource: &Resource) -> bool {
    match resource {
        Resource::BgpPeer(_) => true,
        Resource::BgpConfiguration(configuration) => {
            let name = &configuration.metadata.name;
            let mut default: Resource =
                BgpConfiguration::new("", name, BgpConfigurationSpec::default()).into();
            default.set_defaults();
            let mut given = resource.clone();
            given.set_defaults();
            given.to_value()["spec"] != default.to_value()["spec"]
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(kind: &str, spec: &Value, expected: bool) {
        let value = json!({
            "apiVersion": "projectcalico.org/v3",
            "kind": kind,
            "metadata": {"name": "default"},
            "spec": spec,
        });
        let resource = Resource::decode_strict(&value).expect("a resource");
        assert_eq!(asks_for_bgp(&resource), expected, "{value}");
    }

    #[test]
    fn peers_ask_for_bgp_and_defaults_do_not() {
        check("BGPConfiguration", &json!({}), false);
        check("BGPConfiguration", &json!({"asNumber": 64513}), true);
        check(
            "BGPConfiguration",
            &json!({"serviceClusterIPs": [{"cidr": "10.96.0.0/12"}]}),
            true,
        );
        check(
            "BGPPeer",
            &json!({"peerIP": "10.0.0.1", "asNumber": 64512}),
            true,
        );
        check("BGPFilter", &json!({}), false);
        check("IPPool", &json!({"cidr": "10.0.0.0/16"}), false);
    }
}
