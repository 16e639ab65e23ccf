//! What the environment says of a node, in the variables of Calico's node.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use tortie_api::scalar::{AsNumber, felix_bool};
use tortie_files::places;
use tortie_variables as variables;

use crate::startup::autodetect::{Method, Version};
use crate::startup::pools::PoolSettings;

/// What the environment says of a node.
#[derive(Debug, Clone)]
pub struct Settings {
    pub name: String,
    /// How its IPv4 address is known.
    pub ipv4: Addressing,
    /// How its IPv6 address is known.
    pub ipv6: Addressing,
    /// Its AS number, if it has one of its own.
    pub as_number: Option<AsNumber>,
    /// Whether another node may not have the same address.
    pub check_addresses: bool,
    /// Whether it can do without any address.
    pub needs_address: bool,
    /// The pools that a cluster without any begins with; none: it begins without.
    pub pools: Option<PoolSettings>,
    /// What kind of cluster it is, as words joined by commas.
    pub cluster_type: String,
    /// Whether to wait for the datastore rather than to give up.
    pub wait_for_datastore: bool,
    /// The name of the Kubernetes node that this is, if it is one.
    pub kubernetes_node: Option<String>,
    /// The file that tells others the node's name.
    pub name_file: PathBuf,
}

/// How a node's address is known.
#[derive(Debug, Clone)]
pub enum Addressing {
    /// It is looked for at every start.
    Detect(Method),
    /// It is looked for if there is none yet.
    DetectOnce(Method),
    /// It is this one. Without the length of its network, that of the interface's is taken.
    Is(IpAddr, Option<IpNet>),
    /// It stays what it is, and there may be none.
    Keep,
}

/// A variable that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}=`{value}`: {reason}")]
pub struct SettingsError {
    pub variable: String,
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Settings {
    /// Reads the variables. `machine` is the name of the machine, for a node that is given none.
    pub fn from_environment(
        variables: &BTreeMap<String, String>,
        machine: &str,
    ) -> Result<Self, SettingsError> {
        let read = Variables(variables);
        let name_file = read
            .text(variables::CALICO_NODENAME_FILE)
            .unwrap_or(places::NODE_NAME);
        let name_file = PathBuf::from(name_file);
        Ok(Self {
            name: node_name(&read, &name_file, machine),
            ipv4: addressing(&read, Version::V4)?,
            ipv6: addressing(&read, Version::V6)?,
            as_number: read.parsed(variables::AS)?,
            check_addresses: !read.is_true(variables::DISABLE_NODE_IP_CHECK)?,
            needs_address: read.text(variables::CALICO_NETWORKING_BACKEND) != Some("none"),
            pools: if read.is_true(variables::NO_DEFAULT_POOLS)? {
                None
            } else {
                Some(PoolSettings::read(&read)?)
            },
            cluster_type: read.text(variables::CLUSTER_TYPE).unwrap_or("").to_owned(),
            wait_for_datastore: read.is_true(variables::WAIT_FOR_DATASTORE)?,
            kubernetes_node: read.text(variables::CALICO_K8S_NODE_REF).map(str::to_owned),
            name_file,
        })
    }
}

/// The environment.
pub(crate) struct Variables<'a>(&'a BTreeMap<String, String>);

impl<'a> Variables<'a> {
    /// A variable that is set to something.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let text = self.0.get(name).map(|text| text.trim());
        text.filter(|text| !text.is_empty())
    }

    pub(crate) fn wrong(&self, name: &str, reason: impl fmt::Display) -> SettingsError {
        SettingsError {
            variable: name.to_owned(),
            value: self.text(name).unwrap_or("").to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn parsed<T>(&self, name: &str) -> Result<Option<T>, SettingsError>
    where
        T: std::str::FromStr<Err: fmt::Display>,
    {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.map_err(|error| self.wrong(name, error))
    }

    pub(crate) fn is_true(&self, name: &str) -> Result<bool, SettingsError> {
        Ok(self.truth(name)?.unwrap_or(false))
    }

    pub(crate) fn truth(&self, name: &str) -> Result<Option<bool>, SettingsError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match felix_bool(text) {
            None => Err(self.wrong(name, "expected true or false")),
            truth => Ok(truth),
        }
    }
}

/// The name of the node: as given, as the node was called before, or as the machine is called.
fn node_name(read: &Variables<'_>, file: &std::path::Path, machine: &str) -> String {
    if let Some(name) = read.text(variables::NODENAME) {
        return name.to_owned();
    }
    let before = std::fs::read_to_string(file).unwrap_or_default();
    if !before.trim().is_empty() {
        return before.trim().to_owned();
    }
    read.text(variables::HOSTNAME)
        .unwrap_or(machine)
        .to_lowercase()
}

fn addressing(read: &Variables<'_>, version: Version) -> Result<Addressing, SettingsError> {
    let (name, method_name) = match version {
        Version::V4 => (variables::IP, variables::IP_AUTODETECTION_METHOD),
        Version::V6 => (variables::IP6, variables::IP6_AUTODETECTION_METHOD),
    };
    let method = || -> Result<Method, SettingsError> {
        Ok(read.parsed(method_name)?.unwrap_or(Method::FirstFound))
    };
    let Some(text) = read.text(name) else {
        return match version {
            Version::V4 => Ok(Addressing::DetectOnce(method()?)),
            Version::V6 => Ok(Addressing::Keep),
        };
    };
    match text.to_ascii_lowercase().as_str() {
        "autodetect" => return Ok(Addressing::Detect(method()?)),
        "none" => return Ok(Addressing::Keep),
        _ => {}
    }
    let net: Option<IpNet> = text.parse().ok();
    let address = net.map(|net| net.addr()).or_else(|| text.parse().ok());
    match address.filter(|address| version.has(address)) {
        Some(address) => Ok(Addressing::Is(address, net)),
        None => Err(read.wrong(
            name,
            format!("expected autodetect, none or an {version} address, with or without the length of its network"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Addressing, Settings};
    use crate::startup::autodetect::Method;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let mut all = BTreeMap::from([(
            "CALICO_NODENAME_FILE".to_owned(),
            "/nonexistent/nodename".to_owned(),
        )]);
        all.extend(
            variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Settings::from_environment(&all, "Machine").map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_means_what_calico_means() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.name, "machine");
        assert!(matches!(
            settings.ipv4,
            Addressing::DetectOnce(Method::FirstFound)
        ));
        assert!(matches!(settings.ipv6, Addressing::Keep));
        assert!(settings.check_addresses && settings.needs_address && settings.pools.is_some());
    }

    #[test]
    fn addresses_are_given_looked_for_or_kept() {
        let ipv4 = |value| read(&[("IP", value)]).map(|settings| settings.ipv4);
        assert!(matches!(ipv4("autodetect"), Ok(Addressing::Detect(_))));
        assert!(matches!(ipv4("none"), Ok(Addressing::Keep)));
        assert!(matches!(ipv4("192.0.2.1"), Ok(Addressing::Is(_, None))));
        assert!(matches!(
            ipv4("192.0.2.1/24"),
            Ok(Addressing::Is(_, Some(_)))
        ));
        let told = ipv4("2001:db8::1").unwrap_err();
        assert!(
            told.contains("IP=`2001:db8::1`") && told.contains("IPv4"),
            "{told}"
        );
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (name, value) in [
            ("AS", "70.70.70"),
            ("NO_DEFAULT_POOLS", "perhaps"),
            ("CALICO_IPV4POOL_CIDR", "10.0.0.0"),
            ("CALICO_IPV4POOL_BLOCK_SIZE", "19"),
            ("CALICO_IPV4POOL_VXLAN", "sometimes"),
        ] {
            let told = read(&[(name, value)]).unwrap_err();
            assert!(told.starts_with(&format!("{name}=`{value}`: ")), "{told}");
        }
        let told = read(&[("IP", "autodetect"), ("IP_AUTODETECTION_METHOD", "guess")]).unwrap_err();
        assert!(told.contains("first-found"), "{told}");
    }
}
