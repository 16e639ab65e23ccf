//! What is known of connections.

use tortie_kernel::nft::{Comparison, CtKey, Direction, Expr, Family, Value, Verdict};

use super::{FIRST, check, check_on, compare, equal, forward, mask, tcp};

fn ct(key: CtKey, direction: Option<Direction>) -> Expr {
    Expr::Ct {
        key,
        direction,
        to: FIRST,
    }
}

#[test]
fn state_and_status_are_bits() {
    let none = Value::host32(0);
    let some_of = |bits| {
        [
            mask(Value::host32(bits), none),
            compare(Comparison::NotEqual, none),
        ]
    };
    let [masked, is_some] = some_of(2 | 4);
    check(
        [
            ct(CtKey::State, None),
            masked,
            is_some,
            Expr::Verdict(Verdict::Accept),
        ],
        "ct state established,related accept",
    );
    let [masked, is_some] = some_of(1);
    check(
        [
            ct(CtKey::State, None),
            masked,
            is_some,
            Expr::Verdict(Verdict::Drop),
        ],
        "ct state invalid drop",
    );
    let [masked, is_some] = some_of(1 << 5);
    check([ct(CtKey::Status, None), masked, is_some], "ct status dnat");
}

#[test]
fn marks_and_zones() {
    check(
        [
            ct(CtKey::Mark, None),
            mask(Value::host32(0xf0), Value::host32(0)),
            equal(Value::host32(0x10)),
        ],
        "ct mark & 0x000000f0 == 0x00000010",
    );
    check(
        [
            ct(CtKey::Mark, None),
            mask(Value::host32(0xffff_ff0f), Value::host32(0x10)),
            Expr::CtSet {
                key: CtKey::Mark,
                from: FIRST,
            },
        ],
        "ct mark set ct mark & 0xffffff1f | 0x00000010",
    );
    let zone = Value::from_bytes(&7_u16.to_ne_bytes());
    check([ct(CtKey::Zone, None), equal(zone)], "ct zone 7");
    check(
        [ct(CtKey::Zone, Some(Direction::Reply)), equal(zone)],
        "ct reply zone 7",
    );
}

#[test]
fn addresses_and_ports_of_a_direction() {
    let original = Some(Direction::Original);
    check(
        [ct(CtKey::Direction, None), equal(Value::byte(1))],
        "ct direction reply",
    );
    check(
        [ct(CtKey::TransportProtocol, None), equal(Value::byte(6))],
        "ct protocol tcp",
    );
    let [protocol, is_tcp] = tcp();
    check(
        [
            protocol.clone(),
            is_tcp.clone(),
            ct(CtKey::DestinationPort, original),
            equal(Value::network16(80)),
        ],
        "meta l4proto tcp ct original proto-dst 80",
    );
    check(
        [
            protocol,
            is_tcp,
            ct(CtKey::SourcePort, Some(Direction::Reply)),
            equal(Value::network16(80)),
        ],
        "meta l4proto tcp ct reply proto-src 80",
    );
    check(
        [
            ct(CtKey::SourceIp, original),
            equal(Value::network32(0x0a00_0001)),
        ],
        "ct original ip saddr 10.0.0.1",
    );
    check(
        [
            ct(CtKey::DestinationIp, original),
            equal(Value::network32(0x0a00_0001)),
        ],
        "ct original ip daddr 10.0.0.1",
    );
    for (key, text) in [
        (CtKey::SourceIp6, "saddr"),
        (CtKey::DestinationIp6, "daddr"),
    ] {
        check_on(
            &forward(Family::Ip6),
            [
                ct(key, original),
                equal(Value::address("fd00::1".parse().unwrap())),
            ],
            &format!("ct original ip6 {text} fd00::1"),
        );
    }
    check_on(
        &forward(Family::Inet),
        [ct(CtKey::NetworkProtocol, None), equal(Value::byte(2))],
        "ct l3proto ipv4",
    );
}

#[test]
fn connections_are_counted() {
    let count = |over| Expr::CtCount { count: 5, over };
    check(
        [count(true), Expr::Verdict(Verdict::Drop)],
        "ct count over 5 drop",
    );
    check(
        [count(false), Expr::Verdict(Verdict::Accept)],
        "ct count 5 accept",
    );
}
