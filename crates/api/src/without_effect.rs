//! Resources that nobody acts on.

use crate::bgp_configuration::BgpConfigurationSpec;
use crate::{BgpConfiguration, Kind, Resource};

/// The kinds that nobody acts on, or not in full.
pub const KINDS: [Kind; 3] = [Kind::BgpConfiguration, Kind::BgpFilter, Kind::BgpPeer];

/// What does not happen although a resource asks for it, if it is one of these.
pub fn without_effect(resource: &Resource) -> Option<&'static str> {
    let is_asked = match resource {
        Resource::BgpPeer(_) | Resource::BgpFilter(_) => true,
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
    };
    is_asked.then_some("it is stored, and has no effect: nothing here speaks BGP yet")
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
        assert_eq!(without_effect(&resource).is_some(), expected, "{value}");
        assert!(!expected || KINDS.contains(&resource.kind()));
    }

    #[test]
    fn what_asks_for_bgp_is_named_and_defaults_are_not() {
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
        check("BGPFilter", &json!({}), true);
        check("IPPool", &json!({"cidr": "10.0.0.0/16"}), false);
    }
}
