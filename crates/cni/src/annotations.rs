//! What annotations of a pod and its namespace ask for.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tortie_api::net::{parse_cidr, parse_ip};
use tortie_kernel::link::Mac;

use crate::config::NetworkConfig;
use crate::error::{Error, Result};

const PREFIX: &str = "cni.projectcalico.org/";

type Annotations = BTreeMap<String, String>;

/// What annotations ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Pools for IPv4, by CIDR or name.
    pub(crate) ipv4_pools: Option<Vec<String>>,
    /// Pools for IPv6, by CIDR or name.
    pub(crate) ipv6_pools: Option<Vec<String>>,
    /// Whether to have an IPv4 and an IPv6 address.
    pub(crate) families: Option<(bool, bool)>,
    /// Which addresses to have, and whether account is to be kept of them.
    pub(crate) addresses: Option<WishedAddresses>,
    /// The hardware address in the container.
    pub(crate) mac: Option<Mac>,
    /// Addresses that lead to the pod.
    pub(crate) floating: Vec<IpAddr>,
    /// Foreign sources that the pod may send from.
    pub(crate) source_prefixes: Vec<String>,
}

/// Which addresses to have: at most one of each family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WishedAddresses {
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether account is to be kept of them.
    pub(crate) with_ipam: bool,
}

impl Wishes {
    /// Reads the annotations of a pod and its namespace; where both say something, the pod's counts.
    pub(crate) fn read(
        pod: &Annotations,
        namespace: &Annotations,
        config: &NetworkConfig,
    ) -> Result<Self> {
        let mut wishes = Self {
            addresses: addresses(pod, config)?,
            mac: mac(pod)?,
            floating: floating(pod, config)?,
            source_prefixes: source_prefixes(pod)?,
            ..Self::default()
        };
        if config.is_calico_ipam() {
            let text = |name: &str| value(pod, name).or_else(|| value(namespace, name));
            let list = |name: &str| text(name).map(|text| string_list(name, text)).transpose();
            wishes.ipv4_pools = list("ipv4pools")?;
            wishes.ipv6_pools = list("ipv6pools")?;
            wishes.families = text("ipFamilies").map(families).transpose()?;
        }
        Ok(wishes)
    }
}

fn value<'a>(annotations: &'a Annotations, name: &str) -> Option<&'a str> {
    let found = annotations.get(&format!("{PREFIX}{name}"));
    found.map(String::as_str).filter(|text| !text.is_empty())
}

fn wrong(name: &str, text: &str, rule: &str) -> Error {
    Error::config(format!("annotation `{PREFIX}{name}` is `{text}`: {rule}"))
}

fn string_list(name: &str, text: &str) -> Result<Vec<String>> {
    let list: Option<Vec<String>> = serde_json::from_str(text)
        .map_err(|_| wrong(name, text, "it must be a JSON list of strings"))?;
    Ok(list.unwrap_or_default())
}

fn families(text: &str) -> Result<(bool, bool)> {
    let name = "ipFamilies";
    let list = string_list(name, text)?;
    let mut found = (false, false);
    for family in &list {
        match family.as_str() {
            "IPv4" => found.0 = true,
            "IPv6" => found.1 = true,
            _ => return Err(wrong(name, text, "it may have `IPv4` and `IPv6` only")),
        }
    }
    Ok(found)
}

fn addresses(pod: &Annotations, config: &NetworkConfig) -> Result<Option<WishedAddresses>> {
    let with = value(pod, "ipAddrs");
    let without = value(pod, "ipAddrsNoIpam");
    let (name, text, with_ipam) = match (with, without) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = format!(
                "can't have both annotations `{PREFIX}ipAddrs` and `{PREFIX}ipAddrsNoIpam` at the same time"
            );
            return Err(Error::config(message));
        }
        (Some(text), None) => ("ipAddrs", text, true),
        (None, Some(text)) => ("ipAddrsNoIpam", text, false),
    };
    if !config.is_calico_ipam() {
        let rule = format!(
            "it cannot be used with the IPAM plugin `{}`",
            config.ipam.r#type
        );
        return Err(wrong(name, text, &rule));
    }
    if !with_ipam && !config.feature_control.ip_addrs_no_ipam {
        let rule = "requested feature is not enabled: feature_control.ip_addrs_no_ipam";
        return Err(wrong(name, text, rule));
    }
    let list = string_list(name, text)?;
    if list.is_empty() {
        return Err(wrong(name, text, "it must have an address"));
    }
    let mut addresses: Vec<IpAddr> = Vec::new();
    for item in &list {
        let address = parse_ip(item)
            .ok_or_else(|| wrong(name, text, &format!("`{item}` is not an address")))?;
        let same = |other: &IpAddr| other.is_ipv4() == address.is_ipv4();
        if addresses.iter().any(same) {
            let family = if address.is_ipv4() { 4 } else { 6 };
            let rule = format!("cannot have more than one IPv{family} address");
            return Err(wrong(name, text, &rule));
        }
        addresses.push(address);
    }
    Ok(Some(WishedAddresses {
        addresses,
        with_ipam,
    }))
}

fn mac(pod: &Annotations) -> Result<Option<Mac>> {
    let Some(text) = value(pod, "hwAddr") else {
        return Ok(None);
    };
    let parsed = text.parse();
    parsed.map(Some).map_err(|_| {
        wrong(
            "hwAddr",
            text,
            "it must be a hardware address such as 1c:0c:0a:c0:ff:ee",
        )
    })
}

fn floating(pod: &Annotations, config: &NetworkConfig) -> Result<Vec<IpAddr>> {
    let name = "floatingIPs";
    let Some(text) = value(pod, name) else {
        return Ok(Vec::new());
    };
    if !config.feature_control.floating_ips {
        let rule = "requested feature is not enabled: feature_control.floating_ips";
        return Err(wrong(name, text, rule));
    }
    let parse = |item: &String| {
        parse_ip(item).ok_or_else(|| wrong(name, text, &format!("`{item}` is not an address")))
    };
    string_list(name, text)?.iter().map(parse).collect()
}

fn source_prefixes(pod: &Annotations) -> Result<Vec<String>> {
    let name = "allowedSourcePrefixes";
    let Some(text) = value(pod, name) else {
        return Ok(Vec::new());
    };
    let parse = |item: &String| {
        let cidr = parse_cidr(item);
        let network = cidr.map(|cidr| cidr.network().to_string());
        network.ok_or_else(|| {
            wrong(
                name,
                text,
                &format!("`{item}` is not a CIDR such as 10.0.0.0/8"),
            )
        })
    };
    string_list(name, text)?.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        let named = |(name, value): &(&str, &str)| (format!("{PREFIX}{name}"), (*value).to_owned());
        pairs.iter().map(named).collect()
    }

    fn config(more: &str) -> NetworkConfig {
        let text = format!(r#"{{"name": "n", "ipam": {{"type": "calico-ipam"}}{more}}}"#);
        NetworkConfig::parse(text.as_bytes()).expect("a configuration")
    }

    const ALL: &str = r#", "feature_control": {"ip_addrs_no_ipam": true, "floating_ips": true}"#;

    fn read(pod: &[(&str, &str)], namespace: &[(&str, &str)], more: &str) -> Result<Wishes> {
        Wishes::read(&annotations(pod), &annotations(namespace), &config(more))
    }

    #[test]
    fn the_pod_counts_before_its_namespace() {
        let namespace = [
            ("ipv4pools", r#"["a"]"#),
            ("ipv6pools", r#"["b"]"#),
            ("ipFamilies", r#"["IPv6"]"#),
        ];
        let wishes = read(&[("ipv4pools", r#"["c"]"#)], &namespace, "").expect("wishes");
        assert_eq!(wishes.ipv4_pools, Some(vec!["c".to_owned()]));
        assert_eq!(wishes.ipv6_pools, Some(vec!["b".to_owned()]));
        assert_eq!(wishes.families, Some((false, true)));
    }

    #[test]
    fn everything_else_is_the_pods() {
        let pod = [
            ("ipAddrsNoIpam", r#"["10.0.0.1", "fd00::1"]"#),
            ("hwAddr", "1c:0c:0a:c0:ff:ee"),
            ("floatingIPs", r#"["192.0.2.1"]"#),
            ("allowedSourcePrefixes", r#"["10.1.2.3/8"]"#),
        ];
        let wishes = read(&pod, &[], ALL).expect("wishes");
        let addresses = wishes.addresses.expect("addresses");
        assert!(!addresses.with_ipam && addresses.addresses.len() == 2);
        assert_eq!(wishes.mac.expect("a MAC").to_string(), "1c:0c:0a:c0:ff:ee");
        assert_eq!(wishes.floating.len(), 1);
        assert_eq!(wishes.source_prefixes, ["10.0.0.0/8"]);
    }

    #[track_caller]
    fn refused(pod: &[(&str, &str)], more: &str, expected: &str) {
        let error = read(pod, &[], more).expect_err("a refusal");
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused(&[("ipv4pools", "a")], "", "ipv4pools` is `a`");
        refused(&[("ipFamilies", r#"["IPv5"]"#)], "", "IPv5");
        refused(
            &[("ipAddrs", r#"["10.0.0.1"]"#), ("ipAddrsNoIpam", "[]")],
            ALL,
            "both",
        );
        refused(&[("ipAddrs", "[]")], "", "must have an address");
        refused(
            &[("ipAddrs", r#"["10.0.0.1", "10.0.0.2"]"#)],
            "",
            "more than one IPv4",
        );
        refused(&[("ipAddrs", r#"["10.0.0.256"]"#)], "", "`10.0.0.256`");
        refused(
            &[("ipAddrsNoIpam", r#"["10.0.0.1"]"#)],
            "",
            "ip_addrs_no_ipam",
        );
        refused(&[("floatingIPs", r#"["192.0.2.1"]"#)], "", "floating_ips");
        refused(&[("hwAddr", "x")], "", "hwAddr` is `x`");
        refused(
            &[("allowedSourcePrefixes", r#"["10.0.0.1"]"#)],
            "",
            "`10.0.0.1`",
        );
    }
}
