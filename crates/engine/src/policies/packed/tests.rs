//! What is packed comes back as it was.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proptest::prelude::*;
use tortie_api::rule::{
    Action, HttpMatch, HttpPath, RuleMetadata, ServiceAccountMatch, ServiceMatch,
};
use tortie_api::scalar::{Port, Protocol};

use super::*;
use crate::input::{Entity, Icmp};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["", "[a-c]{1,3}", Just("all()".to_owned())]
}

fn any_net() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<u32>(), 0_u8..=32).prop_map(|(a, n)| IpNet::new_assert(Ipv4Addr::from(a).into(), n)),
        (any::<u128>(), 0_u8..=128)
            .prop_map(|(a, n)| IpNet::new_assert(Ipv6Addr::from(a).into(), n)),
    ]
}

fn any_port() -> impl Strategy<Value = Port> {
    prop_oneof![
        (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Port::Range(a.min(b), a.max(b))),
        "[a-c]{1,3}".prop_map(|name| Port::Named(name.into())),
    ]
}

fn any_protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        any::<u8>().prop_map(Protocol::Number),
        Just(Protocol::Tcp),
        Just(Protocol::Udp),
        Just(Protocol::Icmp),
        Just(Protocol::Icmpv6),
        Just(Protocol::Sctp),
        Just(Protocol::UdpLite),
        "[a-c]{1,3}".prop_map(|text| Protocol::Unknown(text.into())),
    ]
}

fn any_icmp() -> impl Strategy<Value = Icmp> {
    (any::<u8>(), any::<Option<u8>>()).prop_map(|(r#type, code)| Icmp { r#type, code })
}

prop_compose! {
    fn any_entity()(
        texts in prop::array::uniform5(any_text()),
        nets in prop::collection::vec(any_net(), 0..3),
        not_nets in prop::collection::vec(any_net(), 0..3),
        ports in prop::collection::vec(any_port(), 0..3),
        not_ports in prop::collection::vec(any_port(), 0..3),
        service in prop::option::of((any_text(), any_text())),
        accounts in prop::option::of((any_text(), prop::collection::vec(any_text(), 0..3))),
    ) -> Entity {
        let [selector, not_selector, original_selector, original_not_selector, original_namespace_selector] = texts;
        Entity {
            nets, not_nets, selector, not_selector, ports, not_ports,
            original_selector, original_not_selector, original_namespace_selector,
            service: service.map(|(name, namespace)| ServiceMatch { name, namespace }),
            original_service_accounts: accounts.map(|(selector, names)| ServiceAccountMatch { selector, names }),
        }
    }
}

prop_compose! {
    fn any_rule()(
        action in prop::sample::select(vec![Action::Allow, Action::Deny, Action::Log, Action::Pass]),
        ip_version in prop::option::of(prop::sample::select(vec![4_u8, 6])),
        protocol in prop::option::of(any_protocol()),
        not_protocol in prop::option::of(any_protocol()),
        icmp in prop::option::of(any_icmp()),
        not_icmp in prop::option::of(any_icmp()),
        source in any_entity(),
        destination in any_entity(),
        http in prop::option::of(prop::collection::vec(any_text(), 0..2)),
        metadata in prop::option::of(prop::collection::btree_map(any_text(), any_text(), 0..3)),
    ) -> Rule {
        Rule {
            action, ip_version, protocol, not_protocol, icmp, not_icmp, source, destination,
            http: http.map(|methods| HttpMatch {
                paths: methods.iter().map(|prefix| HttpPath { prefix: prefix.clone(), ..HttpPath::default() }).collect(),
                methods,
            }),
            metadata: metadata.map(|annotations| RuleMetadata { annotations }),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_come_back_as_they_were(
        selector in any_text(),
        inbound in prop::collection::vec(any_rule(), 0..4),
        outbound in prop::collection::vec(any_rule(), 0..4),
    ) {
        let packed = pack(&selector, &inbound, &outbound);
        prop_assert_eq!(unpack(&packed), (selector.as_str(), inbound, outbound));
    }
}

#[test]
fn a_text_that_occurs_again_takes_one_byte_more() {
    let rule = |selector: &str| Rule {
        source: Entity {
            selector: selector.to_owned(),
            ..Entity::default()
        },
        ..Rule::default()
    };
    let text = "a-selector-of-some-length == 'value'";
    let once = pack(text, &[], &[]).len();
    let thrice = pack(text, &[rule(text)], &[rule(text)]).len();
    assert!(thrice < once + 16, "{once} and {thrice} bytes");
}
