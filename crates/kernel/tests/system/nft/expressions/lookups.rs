//! Sets and maps, with names and inline.

use tortie_kernel::nft::{
    Base, Element, Expr, Family, Field, InlineSet, Key, MetaKey, Register, Set, SetReference,
    Value, Verdict,
};

use super::{FIRST, check, check_on, forward, mask, meta, tcp};
use crate::nft::support::{load, network, transport};

const ACCEPT: Expr = Expr::Verdict(Verdict::Accept);

/// The sets that each table of these tests has.
pub(super) fn sets() -> [Set; 3] {
    [
        Set::new("addresses", [Field::Ipv4Addr]),
        Set::new(
            "services",
            [Field::Ipv4Addr, Field::InetProto, Field::InetService],
        ),
        Set::verdict_map("gates", [Field::Ifname]),
    ]
}

fn named(name: &str, inverted: bool) -> Expr {
    Expr::Lookup {
        set: SetReference::Named(name.into()),
        from: FIRST,
        inverted,
    }
}

fn inline(field: Field, elements: impl IntoIterator<Item = Element>) -> Expr {
    Expr::Lookup {
        set: SetReference::Inline(InlineSet::new([field], elements)),
        from: FIRST,
        inverted: false,
    }
}

#[test]
fn named_sets() {
    check(
        [network(12, 4), named("addresses", false), ACCEPT],
        "ip saddr @addresses accept",
    );
    check(
        [network(16, 4), named("addresses", true), ACCEPT],
        "ip daddr != @addresses accept",
    );
    check(
        [
            network(12, 4),
            mask(Value::network32(0xffff_ffe0), Value::network32(0)),
            named("addresses", false),
        ],
        "ip saddr & 255.255.255.224 == @addresses",
    );
}

#[test]
fn keys_of_several_fields() {
    check(
        [
            network(16, 4),
            Expr::Meta {
                key: MetaKey::TransportProtocol,
                to: Register::at(1),
            },
            load(Base::Transport, 2, 2, Register::at(2)),
            named("services", false),
            ACCEPT,
        ],
        "ip daddr . meta l4proto . th dport @services accept",
    );
}

#[test]
fn verdict_maps() {
    check(
        [
            meta(MetaKey::InputInterfaceName),
            Expr::VerdictMap {
                map: SetReference::Named("gates".into()),
                from: FIRST,
            },
        ],
        "iifname vmap @gates",
    );
    let goto = |name: &str| {
        Element::single(Value::interface(name)).with_verdict(Verdict::Goto("other".into()))
    };
    check(
        [
            meta(MetaKey::OutputInterfaceName),
            Expr::VerdictMap {
                map: SetReference::Inline(InlineSet::new([Field::Ifname], [goto("cali1")])),
                from: FIRST,
            },
        ],
        "oifname vmap { \"cali1\" : goto other }",
    );
}

#[test]
fn inline_sets_of_ports_and_addresses() {
    let port = |port| Element::single(Value::network16(port));
    let [protocol, is_tcp] = tcp();
    check(
        [
            protocol.clone(),
            is_tcp.clone(),
            transport(2, 2),
            inline(Field::InetService, [port(443), port(80)]),
            ACCEPT,
        ],
        "tcp dport { 80, 443 } accept",
    );
    let range = Element::range(Value::network16(100), Value::network16(200));
    let last = Element::range(Value::network16(60_000), Value::network16(65_535));
    check(
        [
            protocol,
            is_tcp,
            transport(2, 2),
            inline(Field::InetService, [port(80), range, last]),
            ACCEPT,
        ],
        "tcp dport { 80, 100-200, 60000-65535 } accept",
    );
    let prefix = |text: &str| Element::prefix(text.parse().unwrap());
    check(
        [
            network(12, 4),
            inline(
                Field::Ipv4Addr,
                [prefix("10.0.0.0/24"), prefix("10.0.1.0/24")],
            ),
        ],
        "ip saddr { 10.0.0.0/24, 10.0.1.0/24 }",
    );
    check_on(
        &forward(Family::Ip6),
        [
            network(8, 16),
            inline(
                Field::Ipv6Addr,
                [prefix("fd00::/64"), prefix("fe80::1/128")],
            ),
        ],
        "ip6 saddr { fd00::/64, fe80::1 }",
    );
    check(
        [
            meta(MetaKey::InputInterfaceName),
            inline(
                Field::Ifname,
                [
                    Element::interface_prefix("cali"),
                    Element::single(Value::interface("eth0")),
                ],
            ),
        ],
        "iifname { \"cali*\", \"eth0\" }",
    );
}

#[test]
fn inline_sets_of_marks_and_protocols() {
    check(
        [
            meta(MetaKey::Mark),
            inline(
                Field::Mark,
                [0x20, 0x10].map(|mark| Element::single(Value::host32(mark))),
            ),
        ],
        "meta mark { 0x00000010, 0x00000020 }",
    );
    let concatenated = |a, port| {
        Element::single(Key::concatenated(&[
            Value::network32(a),
            Value::network16(port),
        ]))
    };
    let set = InlineSet::new(
        [Field::Ipv4Addr, Field::InetService],
        [concatenated(0x0a00_0001, 80)],
    );
    let [protocol, is_tcp] = tcp();
    check(
        [
            protocol,
            is_tcp,
            network(12, 4),
            load(Base::Transport, 2, 2, Register::at(1)),
            Expr::Lookup {
                set: SetReference::Inline(set),
                from: FIRST,
                inverted: false,
            },
        ],
        "ip saddr . tcp dport { 10.0.0.1 . 80 }",
    );
}
