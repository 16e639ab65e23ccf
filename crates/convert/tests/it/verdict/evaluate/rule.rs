//! Whether a rule of Calico's policies and profiles matches a packet.

use std::net::IpAddr;

use tortie_api::rule::{EntityRule, IcmpFields, Rule, ServiceMatch};
use tortie_api::scalar::{Port, Protocol};
use tortie_engine::verdict::Flow;
use tortie_selector::Selector;

use super::Evaluator;
use super::party::{Labels, NAMESPACE, Party, SERVICE_ACCOUNT, net, same};
use crate::verdict::world::{Object, names};

/// A port that clients get, for packets that do not say theirs.
const CLIENT_PORT: u16 = 60_000;

/// One end of a packet.
struct End<'a> {
    address: IpAddr,
    port: Option<u16>,
    protocol: Option<&'a Protocol>,
    /// Rules can ask for ports behind a service only where packets go to.
    is_destination: bool,
}

impl Evaluator<'_> {
    /// ALL conditions of the rule hold. `namespace` is that of the policy; empty if it has none.
    pub(super) fn matches(&self, rule: &Rule, namespace: &str, flow: &Flow) -> bool {
        let version = if flow.destination.address.is_ipv4() {
            4
        } else {
            6
        };
        let protocol = flow.protocol.as_ref();
        // The name of a protocol that is of one IP version says the version, too; its number does not.
        let wanted_version = rule.ip_version.or(match rule.protocol {
            Some(Protocol::Icmp) => Some(4),
            Some(Protocol::Icmpv6) => Some(6),
            _ => None,
        });
        let source = End {
            address: flow.source.address,
            port: Some(flow.source_port.unwrap_or(CLIENT_PORT)),
            protocol,
            is_destination: false,
        };
        let destination = End {
            address: flow.destination.address,
            port: flow.destination_port,
            protocol,
            is_destination: true,
        };
        wanted_version.is_none_or(|wanted| wanted == version)
            && rule
                .protocol
                .as_ref()
                .is_none_or(|wanted| same(protocol, wanted))
            && rule
                .not_protocol
                .as_ref()
                .is_none_or(|unwanted| !same(protocol, unwanted))
            && rule
                .icmp
                .as_ref()
                .is_none_or(|wanted| is_icmp(wanted, flow))
            && rule
                .not_icmp
                .as_ref()
                .is_none_or(|unwanted| is_any_icmp(flow) && !is_icmp(unwanted, flow))
            && self.end_matches(&rule.source, rule.protocol.as_ref(), namespace, &source)
            && self.end_matches(
                &rule.destination,
                rule.protocol.as_ref(),
                namespace,
                &destination,
            )
    }

    /// ALL conditions on one end hold.
    fn end_matches(
        &self,
        rule: &EntityRule,
        protocol: Option<&Protocol>,
        namespace: &str,
        end: &End<'_>,
    ) -> bool {
        let is_in = |text: &String| net(text).contains(&end.address);
        let is_same_version = |text: &String| net(text).addr().is_ipv4() == end.address.is_ipv4();
        // ANY of the networks has the address.
        (rule.nets.is_empty() || rule.nets.iter().any(is_in))
            // NONE of the excluded networks has it. A rule that excludes networks is about their IP version alone.
            && !rule.not_nets.iter().any(is_in)
            && (rule.not_nets.is_empty() || rule.not_nets.iter().any(is_same_version))
            && rule.services.as_ref().is_none_or(|service| self.is_behind(service, namespace, end))
            && self.party_matches(rule, protocol, namespace, end)
    }

    /// Selectors and ports, which are about whoever has the address: nobody, one, or several at once.
    fn party_matches(
        &self,
        rule: &EntityRule,
        protocol: Option<&Protocol>,
        namespace: &str,
        end: &End<'_>,
    ) -> bool {
        let here = || self.parties.iter().filter(|party| party.has(end.address));
        let is_excluded = |party: &Party<'_>| {
            !rule.not_selector.is_empty() && holds(&rule.not_selector, &party.labels)
        };
        let accounts = rule.service_accounts.as_ref();
        let asks = !rule.selector.is_empty()
            || !rule.namespace_selector.is_empty()
            || accounts.is_some_and(|accounts| !accounts.names.is_empty() || !accounts.selector.is_empty())
            // What is excluded in a policy of a namespace is excluded among what is in the namespace.
            || (!rule.not_selector.is_empty() && !namespace.is_empty());
        let chosen: Vec<&Party<'_>> = if asks {
            here()
                .filter(|party| selects(rule, namespace, party) && !is_excluded(party))
                .collect()
        } else {
            here().collect()
        };
        // ANY party at the address is selected; without anything to select by, nobody has to be there.
        (!asks || !chosen.is_empty())
            // In a global policy that only excludes, NO party at the address may be excluded.
            && (asks || !here().any(is_excluded))
            // ANY port is this one, by number or because ANY selected party calls it so.
            && (rule.ports.is_empty() || rule.ports.iter().any(|port| is_port(port, protocol, end, &chosen)))
            // NONE of the excluded ports is this one.
            && !rule.not_ports.iter().any(|port| is_port(port, protocol, end, &chosen))
    }

    /// ANY slice of the service has the address; and, where packets go to, the protocol and port too.
    fn is_behind(&self, service: &ServiceMatch, namespace: &str, end: &End<'_>) -> bool {
        let namespace = if service.namespace.is_empty() {
            namespace
        } else {
            &service.namespace
        };
        let slices = self
            .world
            .objects
            .values()
            .filter_map(|object| match object {
                Object::Slice(slice) => Some(slice),
                _ => None,
            });
        let mut slices = slices.filter(|slice| {
            let labels = slice.metadata.labels.as_ref();
            let is_of = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
            names(&slice.metadata).0 == namespace && is_of == Some(&service.name)
        });
        slices.any(|slice| {
            let mut addresses = slice
                .endpoints
                .iter()
                .flatten()
                .flat_map(|endpoint| &endpoint.addresses);
            let mut ports = slice.ports.iter().flatten();
            addresses.any(|address| address.parse() == Ok(end.address))
                && (!end.is_destination
                    || ports.any(|port| {
                        let protocol: Protocol = port
                            .protocol
                            .as_deref()
                            .unwrap_or("TCP")
                            .parse()
                            .expect("any text parses");
                        same(end.protocol, &protocol)
                            && end.port.map(i32::from) == port.port
                            && port.port.is_some()
                    }))
        })
    }
}

/// ALL selectors of one side hold for a party.
fn selects(rule: &EntityRule, namespace: &str, party: &Party<'_>) -> bool {
    let accounts = rule.service_accounts.as_ref();
    // A policy of a namespace sees its own namespace, unless it says which ones.
    let is_visible = match rule.namespace_selector.as_str() {
        "" => namespace.is_empty() || party.is_in(namespace),
        "global()" => !party.labels.contains_key(NAMESPACE),
        selector => holds_for_namespace(selector, party),
    };
    is_visible
        && holds(&rule.selector, &party.labels)
        && accounts.is_none_or(|accounts| {
            let name = party.labels.get(SERVICE_ACCOUNT);
            (accounts.names.is_empty() || name.is_some_and(|name| accounts.names.contains(name)))
                && holds(&accounts.selector, &party.account_labels)
        })
}

/// Whether a selector holds for labels; an empty one always does.
pub(super) fn holds(selector: &str, labels: &Labels) -> bool {
    Selector::parse(selector)
        .expect("validation accepts it")
        .matches(labels)
}

/// Whether a selector of namespaces holds. What is in no namespace has no labels of one, and `all()`, which stands
/// for all namespaces, is false for it.
pub(super) fn holds_for_namespace(selector: &str, party: &Party<'_>) -> bool {
    let selector: String = Selector::parse(selector)
        .expect("validation accepts it")
        .into();
    holds(
        &selector.replace("all()", &format!("has({NAMESPACE})")),
        &party.namespace_labels,
    )
}

fn is_port(port: &Port, protocol: Option<&Protocol>, end: &End<'_>, chosen: &[&Party<'_>]) -> bool {
    let Some(number) = end.port else {
        return false;
    };
    match port {
        Port::Range(first, last) => (*first..=*last).contains(&number),
        Port::Named(name) => {
            let actual = end.protocol.and_then(Protocol::number);
            protocol.is_none_or(|wanted| same(end.protocol, wanted))
                && chosen
                    .iter()
                    .any(|party| party.names_port(name, actual, number))
        }
    }
}

/// It is ICMP as its IP version has it. A rule that excludes types of ICMP is about ICMP.
fn is_any_icmp(flow: &Flow) -> bool {
    let number = if flow.source.address.is_ipv4() { 1 } else { 58 };
    flow.protocol.as_ref().and_then(Protocol::number) == Some(number)
}

/// The type is this one, and the code if one is given.
fn is_icmp(fields: &IcmpFields, flow: &Flow) -> bool {
    flow.icmp.is_some_and(|actual| {
        fields.r#type == Some(actual.r#type.into())
            && fields
                .code
                .is_none_or(|code| actual.code.map(i64::from) == Some(code))
    })
}
