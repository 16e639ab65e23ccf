//! Policies and profiles as the data plane gets them: selectors and named ports replaced by sets.

use ipnet::IpNet;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tortie_api::rule::{Action, HttpMatch, RuleMetadata, ServiceAccountMatch, ServiceMatch};
use tortie_api::scalar::Protocol;
use tortie_config::PortRange;

use super::SetId;
use crate::input::Icmp;
use crate::is_default;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The tier that it is in.
    #[serde(skip_serializing_if = "is_default")]
    pub tier: String,
    /// Its namespace; empty for a global one.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Rules for packets to the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub inbound_rules: Vec<Rule>,
    /// Rules for packets from the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub outbound_rules: Vec<Rule>,
    /// Applies before connection tracking.
    #[serde(skip_serializing_if = "is_default")]
    pub untracked: bool,
    /// Applies before destination NAT.
    #[serde(skip_serializing_if = "is_default")]
    pub pre_dnat: bool,
    /// The endpoints that it applies to.
    #[serde(skip_serializing_if = "is_default")]
    pub original_selector: String,
    /// `AssumeNeededOnEveryNode`, if that was asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub perf_hints: Vec<&'static str>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// Rules for packets to the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub inbound_rules: Vec<Rule>,
    /// Rules for packets from the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub outbound_rules: Vec<Rule>,
}

/// A rule: all conditions that are set must hold for the action to happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    /// What happens to a packet that matches.
    pub action: Action,
    /// 4 or 6; either where not given.
    pub ip_version: Option<u8>,
    pub protocol: Option<Protocol>,
    /// Not this protocol.
    pub not_protocol: Option<Protocol>,
    /// This ICMP message.
    pub icmp: Option<Icmp>,
    /// Not this ICMP message.
    pub not_icmp: Option<Icmp>,
    /// Where the packet comes from.
    pub src: RuleSide,
    /// Where the packet goes to.
    pub dst: RuleSide,
    /// Conditions that only a proxy can check.
    pub http: Option<Box<HttpMatch>>,
    /// Notes that do not take part in matching.
    pub metadata: Option<Box<RuleMetadata>>,
}

/// Conditions on one end of a connection.
///
/// Ports and named ports are alternatives to each other, and so are networks; all else must hold together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleSide {
    /// In one of these networks.
    pub nets: Vec<IpNet>,
    /// In none of these networks.
    pub not_nets: Vec<IpNet>,
    /// One of these ports, or in one of [`Self::named_port_sets`].
    pub ports: Vec<PortRange>,
    /// None of these ports.
    pub not_ports: Vec<PortRange>,
    /// In each of these sets.
    pub sets: Vec<SetId>,
    /// In none of these sets.
    pub not_sets: Vec<SetId>,
    /// Address and port in one of these sets, or one of [`Self::ports`].
    pub named_port_sets: Vec<SetId>,
    /// Address and port in none of these sets.
    pub not_named_port_sets: Vec<SetId>,
    /// Address and port in each of these sets, which stand for services; only for destinations.
    pub port_sets: Vec<SetId>,
    /// What the user wrote, for people and for proxies; `None` where all of it is empty.
    pub original: Option<Box<Original>>,
}

/// The conditions as the user wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Original {
    pub selector: String,
    pub not_selector: String,
    pub namespace_selector: String,
    pub service_accounts: Option<ServiceAccountMatch>,
    pub service: Option<ServiceMatch>,
}

// === impl Rule ===

impl Rule {
    /// All sets that it looks into.
    pub fn sets(&self) -> impl Iterator<Item = &SetId> {
        [&self.src, &self.dst].into_iter().flat_map(|side| {
            let addresses = side.sets.iter().chain(&side.not_sets);
            let ports = side.port_sets.iter().chain(&side.named_port_sets);
            addresses.chain(ports).chain(&side.not_named_port_sets)
        })
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", action_name(self.action))?;
        match self.ip_version {
            Some(4) => map.serialize_entry("ipVersion", "IPV4")?,
            Some(6) => map.serialize_entry("ipVersion", "IPV6")?,
            _ => {}
        }
        for (key, protocol) in [
            ("protocol", &self.protocol),
            ("notProtocol", &self.not_protocol),
        ] {
            if let Some(protocol) = protocol {
                map.serialize_entry(key, &ProtocolForm(protocol))?;
            }
        }
        for (type_key, both_key, icmp) in [
            ("icmpType", "icmpTypeCode", self.icmp),
            ("notIcmpType", "notIcmpTypeCode", self.not_icmp),
        ] {
            match icmp {
                Some(Icmp { code: None, r#type }) => map.serialize_entry(type_key, &r#type)?,
                Some(both) => map.serialize_entry(both_key, &both)?,
                None => {}
            }
        }
        self.src.serialize_into("src", "Src", &mut map)?;
        self.dst.serialize_into("dst", "Dst", &mut map)?;
        if let Some(http) = &self.http {
            map.serialize_entry("httpMatch", http)?;
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.end()
    }
}

impl RuleSide {
    fn serialize_into<M: serde::ser::SerializeMap>(
        &self,
        side: &str,
        capital: &str,
        map: &mut M,
    ) -> Result<(), M::Error> {
        fn list<M: serde::ser::SerializeMap, T: Serialize>(
            map: &mut M,
            key: &str,
            items: &[T],
        ) -> Result<(), M::Error> {
            if items.is_empty() {
                return Ok(());
            }
            map.serialize_entry(key, items)
        }
        fn text<M: serde::ser::SerializeMap>(
            map: &mut M,
            key: &str,
            text: &str,
        ) -> Result<(), M::Error> {
            if text.is_empty() {
                return Ok(());
            }
            map.serialize_entry(key, text)
        }
        list(map, &format!("{side}Net"), &self.nets)?;
        list(map, &format!("not{capital}Net"), &self.not_nets)?;
        list(map, &format!("{side}Ports"), &self.ports)?;
        list(map, &format!("not{capital}Ports"), &self.not_ports)?;
        list(map, &format!("{side}IpSetIds"), &self.sets)?;
        list(map, &format!("not{capital}IpSetIds"), &self.not_sets)?;
        list(
            map,
            &format!("{side}NamedPortIpSetIds"),
            &self.named_port_sets,
        )?;
        list(
            map,
            &format!("not{capital}NamedPortIpSetIds"),
            &self.not_named_port_sets,
        )?;
        list(map, &format!("{side}IpPortSetIds"), &self.port_sets)?;
        let Some(original) = &self.original else {
            return Ok(());
        };
        text(
            map,
            &format!("original{capital}Selector"),
            &original.selector,
        )?;
        text(
            map,
            &format!("originalNot{capital}Selector"),
            &original.not_selector,
        )?;
        text(
            map,
            &format!("original{capital}NamespaceSelector"),
            &original.namespace_selector,
        )?;
        if let Some(accounts) = &original.service_accounts {
            map.serialize_entry(&format!("{side}ServiceAccountMatch"), accounts)?;
        }
        if let Some(service) = &original.service {
            text(map, &format!("original{capital}Service"), &service.name)?;
            text(
                map,
                &format!("original{capital}ServiceNamespace"),
                &service.namespace,
            )?;
        }
        Ok(())
    }
}

/// How an action is spelled in messages.
pub(crate) fn action_name(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Deny => "deny",
        Action::Log => "log",
        Action::Pass => "next-tier",
    }
}

struct ProtocolForm<'a>(&'a Protocol);

impl Serialize for ProtocolForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0 {
            Protocol::Number(number) => map.serialize_entry("number", number)?,
            named => map.serialize_entry("name", &named.to_string().to_lowercase())?,
        }
        map.end()
    }
}
