//! What the plugins before this one had as their result.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::result::{CniResult, Interface};
use crate::version::CniVersion;

/// A result that is passed on.
pub(super) struct Previous {
    /// In the form of the configuration's version, with all that it said.
    value: Value,
    pub(super) result: CniResult,
}

impl Previous {
    pub(super) fn read(mut value: Value, version: CniVersion) -> Result<Self> {
        let result = CniResult::parse(&value).map_err(|error| {
            Error::config(format!("network configuration: `prevResult`: {error}"))
        })?;
        let written = value.get("cniVersion").and_then(Value::as_str);
        if written.is_some_and(|written| !written.is_empty() && written != version.as_str()) {
            value = result.to_json(version);
        }
        value["cniVersion"] = version.as_str().into();
        if value.get("dns").is_none() {
            value["dns"] = json!({});
        }
        Ok(Self { value, result })
    }

    /// The result as it came.
    pub(super) fn value(&self) -> Value {
        self.value.clone()
    }

    /// The result with one more interface.
    pub(super) fn with_interface(&self, interface: &Interface) -> Value {
        let mut value = self.value.clone();
        let added = json!(interface);
        match value.get_mut("interfaces").and_then(Value::as_array_mut) {
            Some(interfaces) => interfaces.push(added),
            None => value["interfaces"] = json!([added]),
        }
        value
    }

    /// The result with another hardware address of an interface.
    pub(super) fn with_mac(&self, name: &str, mac: &str) -> Value {
        let mut value = self.value.clone();
        let interfaces = value.get_mut("interfaces").and_then(Value::as_array_mut);
        for interface in interfaces.into_iter().flatten() {
            if interface["name"] == name {
                interface["mac"] = mac.into();
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_keeps_what_is_not_known() {
        let given = json!({"cniVersion": "1.1.0", "ips": [{"address": "10.0.0.1/32", "x": 1}], "more": [2]});
        let previous = Previous::read(given, CniVersion::V1_1_0).expect("a result");
        let expected = json!({"cniVersion": "1.1.0", "ips": [{"address": "10.0.0.1/32", "x": 1}], "more": [2], "dns": {}});
        assert_eq!(previous.value(), expected);
        let interface = Interface {
            name: "a".to_owned(),
            mac: "00:00:00:00:00:01".to_owned(),
            ..Interface::default()
        };
        let value = previous.with_interface(&interface);
        assert_eq!(
            value["interfaces"],
            json!([{"name": "a", "mac": "00:00:00:00:00:01"}])
        );
    }

    #[test]
    fn another_version_is_converted() {
        let given =
            json!({"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "10.0.0.1/32"}]});
        let previous = Previous::read(given, CniVersion::V1_0_0).expect("a result");
        assert_eq!(previous.value()["ips"], json!([{"address": "10.0.0.1/32"}]));
        assert!(Previous::read(json!({"ips": 1}), CniVersion::V1_0_0).is_err());
    }
}
