//! The configuration of `portmap`.

use std::net::IpAddr;

use serde::Deserialize;
use tortie_api::net::parse_ip;

use super::conditions::{self, Condition};
use crate::error::{Code, Error, Result};
use crate::plugins::Call;

/// What an ADD needs to know.
pub(super) struct Settings {
    pub(super) mappings: Vec<Mapping>,
    /// Whether connections get the node's address as their source where answers would not come back otherwise.
    pub(super) is_source_changed: bool,
    /// Whether all connections get it.
    pub(super) is_every_source_changed: bool,
    conditions_v4: Vec<Condition>,
    conditions_v6: Vec<Condition>,
}

/// A port of the node that leads to one of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The number of the transport protocol.
    pub(super) protocol: u8,
    /// The node's address; all of them if there is none.
    pub(super) node: Option<IpAddr>,
    pub(super) node_port: u16,
    pub(super) port: u16,
    /// The family that it is for; both if there is none.
    is_ipv4: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Written {
    backend: String,
    snat: Option<bool>,
    masq_all: bool,
    mark_masq_bit: Option<i64>,
    external_set_mark_chain: String,
    conditions_v4: Vec<String>,
    conditions_v6: Vec<String>,
    runtime_config: Runtime,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Runtime {
    port_mappings: Vec<WrittenMapping>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WrittenMapping {
    host_port: i64,
    container_port: i64,
    protocol: String,
    #[serde(rename = "hostIP")]
    host_ip: String,
}

impl Settings {
    pub(super) fn read(call: &Call<'_>) -> Result<Self> {
        let written: Written = call.settings()?;
        if !["", "nftables", "iptables"].contains(&written.backend.as_str()) {
            let rule = format!("is `{}`: expected `nftables`", written.backend);
            return Err(wrong("backend", &rule));
        }
        if !written.external_set_mark_chain.is_empty() {
            let message = "network configuration: `externalSetMarkChain` is a chain of iptables, and ports are mapped with nftables, which needs no mark: leave it out";
            return Err(Error::new(Code::UnsupportedField, message));
        }
        if written
            .mark_masq_bit
            .is_some_and(|bit| !(0..=31).contains(&bit))
        {
            return Err(wrong("markMasqBit", "must be from 0 to 31"));
        }
        let mappings = written.runtime_config.port_mappings.iter().enumerate();
        Ok(Self {
            mappings: mappings
                .map(|(place, mapping)| mapping.read(place))
                .collect::<Result<_>>()?,
            is_source_changed: written.snat.unwrap_or(true),
            is_every_source_changed: written.masq_all,
            conditions_v4: conditions::read("conditionsV4", &written.conditions_v4, true)?,
            conditions_v6: conditions::read("conditionsV6", &written.conditions_v6, false)?,
        })
    }

    /// What else must hold for a connection to be led to the container.
    pub(super) fn conditions(&self, is_ipv4: bool) -> &[Condition] {
        if is_ipv4 {
            &self.conditions_v4
        } else {
            &self.conditions_v6
        }
    }

    /// The mappings for a family.
    pub(super) fn mappings_of(&self, is_ipv4: bool) -> impl Iterator<Item = &Mapping> {
        let mappings = self.mappings.iter();
        mappings.filter(move |mapping| mapping.is_ipv4.is_none_or(|only| only == is_ipv4))
    }
}

/// The container's first address of each family.
pub(super) fn addresses(call: &Call<'_>) -> Vec<IpAddr> {
    let Some(previous) = &call.previous else {
        return Vec::new();
    };
    let result = &previous.result;
    let is_elsewhere = |place: usize| {
        let interface = result.interfaces.get(place);
        interface.is_some_and(|interface| {
            interface.name != call.request.interface || interface.sandbox.is_empty()
        })
    };
    let inside = result
        .ips
        .iter()
        .filter(|ip| !ip.interface.is_some_and(is_elsewhere));
    let inside: Vec<IpAddr> = inside.map(|ip| ip.address.addr()).collect();
    let of_family = |is_ipv4| {
        let mut all = inside.iter().copied();
        all.find(|address| address.is_ipv4() == is_ipv4)
    };
    [of_family(true), of_family(false)]
        .into_iter()
        .flatten()
        .collect()
}

impl WrittenMapping {
    fn read(&self, place: usize) -> Result<Mapping> {
        let key = format!("runtimeConfig.portMappings[{place}]");
        let port = |name: &str, number: i64| {
            let port = u16::try_from(number).ok().filter(|port| *port != 0);
            port.ok_or_else(|| {
                wrong(
                    &key,
                    &format!("has the {name} {number}: expected 1 to 65535"),
                )
            })
        };
        let protocol = match self.protocol.to_ascii_lowercase().as_str() {
            "" | "tcp" => super::rules::TCP,
            "udp" => super::rules::UDP,
            "sctp" => super::rules::SCTP,
            other => {
                let rule = format!("has the protocol `{other}`: expected tcp, udp or sctp");
                return Err(wrong(&key, &rule));
            }
        };
        let node = match self.host_ip.as_str() {
            "" => None,
            text => Some(parse_ip(text).ok_or_else(|| {
                wrong(
                    &key,
                    &format!("has the hostIP `{text}`, which is not an address"),
                )
            })?),
        };
        Ok(Mapping {
            protocol,
            node: node.filter(|node| !node.is_unspecified()),
            node_port: port("hostPort", self.host_port)?,
            port: port("containerPort", self.container_port)?,
            is_ipv4: node.map(|node| node.is_ipv4()),
        })
    }
}

fn wrong(key: &str, rule: &str) -> Error {
    Error::config(format!("network configuration: `{key}` {rule}"))
}
