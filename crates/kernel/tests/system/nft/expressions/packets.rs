//! What is loaded from packets and compared.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tortie_kernel::nft::ChainKind;
use tortie_kernel::nft::{
    Base, Checksum, Comparison, Expr, Family, FibKey, FibResult, Hook, MetaKey, Value, Verdict,
};

use super::{FIRST, check, check_on, compare, equal, forward, ground, mask, meta, tcp};
use crate::nft::support::{network, transport};

const ACCEPT: Expr = Expr::Verdict(Verdict::Accept);

fn address(text: &str) -> Value {
    Value::address(text.parse().unwrap())
}

#[test]
fn addresses_of_the_network_header() {
    check(
        [network(12, 4), equal(address("10.65.0.1")), ACCEPT],
        "ip saddr 10.65.0.1 accept",
    );
    check(
        [
            network(16, 4),
            compare(Comparison::NotEqual, address("10.65.0.1")),
            ACCEPT,
        ],
        "ip daddr != 10.65.0.1 accept",
    );
    check_on(
        &forward(Family::Ip6),
        [network(8, 16), equal(address("fd00::1")), ACCEPT],
        "ip6 saddr fd00::1 accept",
    );
}

#[test]
fn prefixes_are_masked_unless_they_end_at_a_byte() {
    let netmask = Value::network32(0xffff_ffe0);
    check(
        [
            network(12, 4),
            mask(netmask, Value::network32(0)),
            equal(address("10.65.0.32")),
            ACCEPT,
        ],
        "ip saddr 10.65.0.32/27 accept",
    );
    let bytes = Ipv4Addr::new(10, 65, 0, 0).octets();
    check(
        [
            network(12, 2),
            equal(Value::from_bytes(&bytes[..2])),
            ACCEPT,
        ],
        "ip saddr 10.65.0.0/16 accept",
    );
    let netmask = IpAddr::V6(Ipv6Addr::from_bits(u128::MAX << 6));
    check_on(
        &forward(Family::Ip6),
        [
            network(24, 16),
            mask(Value::address(netmask), Value::from_bytes(&[0; 16])),
            equal(address("fd00::40")),
            ACCEPT,
        ],
        "ip6 daddr fd00::40/122 accept",
    );
}

#[test]
fn protocols_and_ports() {
    check(
        [
            meta(MetaKey::TransportProtocol),
            equal(Value::byte(17)),
            ACCEPT,
        ],
        "meta l4proto udp accept",
    );
    let [protocol, is_tcp] = tcp();
    check(
        [
            protocol.clone(),
            is_tcp.clone(),
            transport(2, 2),
            equal(Value::network16(80)),
            ACCEPT,
        ],
        "tcp dport 80 accept",
    );
    let ports = |inverted| Expr::Range {
        from: FIRST,
        inverted,
        first: Value::network16(100),
        last: Value::network16(200),
    };
    check(
        [
            protocol.clone(),
            is_tcp.clone(),
            transport(0, 2),
            ports(true),
        ],
        "tcp sport != 100-200",
    );
    // `nft` writes a range that is not inverted as two comparisons, and reads an expression of its own too.
    check(
        [
            protocol.clone(),
            is_tcp.clone(),
            transport(0, 2),
            compare(Comparison::GreaterOrEqual, Value::network16(100)),
            compare(Comparison::LessOrEqual, Value::network16(200)),
        ],
        "tcp sport 100-200",
    );
    for (how, text) in [
        (Comparison::Less, "<"),
        (Comparison::LessOrEqual, "<="),
        (Comparison::Greater, ">"),
        (Comparison::GreaterOrEqual, ">="),
    ] {
        check(
            [
                protocol.clone(),
                is_tcp.clone(),
                transport(2, 2),
                compare(how, Value::network16(1024)),
            ],
            &format!("tcp dport {text} 1024"),
        );
    }
}

#[test]
fn icmp_types() {
    check(
        [
            meta(MetaKey::TransportProtocol),
            equal(Value::byte(1)),
            transport(0, 1),
            equal(Value::byte(8)),
            ACCEPT,
        ],
        "icmp type echo-request accept",
    );
}

#[test]
fn interfaces_by_name_and_by_prefix() {
    check(
        [
            meta(MetaKey::InputInterfaceName),
            equal(Value::interface("cali12345")),
            ACCEPT,
        ],
        "iifname \"cali12345\" accept",
    );
    check(
        [
            meta(MetaKey::OutputInterfaceName),
            equal(Value::interface_prefix("cali")),
            ACCEPT,
        ],
        "oifname \"cali*\" accept",
    );
    check(
        [
            meta(MetaKey::InputInterface),
            equal(Value::host32(1)),
            ACCEPT,
        ],
        "iif \"lo\" accept",
    );
    check(
        [
            meta(MetaKey::OutputInterface),
            compare(Comparison::NotEqual, Value::host32(1)),
            ACCEPT,
        ],
        "oif != \"lo\" accept",
    );
}

#[test]
fn other_properties_of_packets() {
    check_on(
        &forward(Family::Inet),
        [
            meta(MetaKey::NetworkProtocol),
            equal(Value::byte(2)),
            ACCEPT,
        ],
        "meta nfproto ipv4 accept",
    );
    check_on(
        &ground(Family::Arp, ChainKind::Filter, Hook::Input, 0),
        [network(6, 2), equal(Value::network16(1))],
        "arp operation request",
    );
}

#[test]
fn marks_are_compared_and_set() {
    let none = Value::host32(0);
    check(
        [
            meta(MetaKey::Mark),
            mask(Value::host32(0x30), none),
            equal(Value::host32(0x10)),
            ACCEPT,
        ],
        "meta mark & 0x00000030 == 0x00000010 accept",
    );
    let set = Expr::MetaSet {
        key: MetaKey::Mark,
        from: FIRST,
    };
    check(
        [
            meta(MetaKey::Mark),
            mask(Value::host32(0xffff_ffef), Value::host32(0x10)),
            set.clone(),
        ],
        "meta mark set meta mark | 0x00000010",
    );
    check(
        [
            Expr::Immediate {
                to: FIRST,
                value: Value::host32(0x2000_0000),
            },
            set,
        ],
        "meta mark set 0x20000000",
    );
}

#[test]
fn dscp_is_written_with_its_checksum() {
    check(
        [
            network(0, 2),
            mask(Value::network16(0xff03), Value::network16(0x28)),
            Expr::PayloadSet {
                base: Base::Network,
                offset: 0,
                length: 2,
                from: FIRST,
                checksum: Checksum::Internet(10),
            },
        ],
        "ip dscp set af11",
    );
    check_on(
        &forward(Family::Ip6),
        [
            network(0, 2),
            mask(Value::network16(0xf03f), Value::network16(0x280)),
            Expr::PayloadSet {
                base: Base::Network,
                offset: 0,
                length: 2,
                from: FIRST,
                checksum: Checksum::None,
            },
        ],
        "ip6 dscp set af11",
    );
}

#[test]
fn the_routing_table_is_asked() {
    let ground = ground(Family::Ip, ChainKind::Filter, Hook::Prerouting, -300);
    check_on(
        &ground,
        [
            Expr::Fib {
                with: &[FibKey::Source, FibKey::Mark, FibKey::InputInterface],
                result: FibResult::Present,
                to: FIRST,
            },
            equal(Value::host32(0)),
            Expr::Verdict(Verdict::Drop),
        ],
        "fib saddr . mark . iif oif missing drop",
    );
    check_on(
        &ground,
        [
            Expr::Fib {
                with: &[FibKey::Destination],
                result: FibResult::AddressType,
                to: FIRST,
            },
            equal(Value::host32(2)),
        ],
        "fib daddr type local",
    );
    check_on(
        &ground,
        [
            Expr::Fib {
                with: &[FibKey::Source],
                result: FibResult::Interface,
                to: FIRST,
            },
            equal(Value::host32(1)),
        ],
        "fib saddr oif \"lo\"",
    );
    check_on(
        &ground,
        [
            Expr::Fib {
                with: &[FibKey::Source],
                result: FibResult::InterfaceName,
                to: FIRST,
            },
            equal(Value::interface("eth0")),
        ],
        "fib saddr oifname \"eth0\"",
    );
    check_on(
        &forward(Family::Ip),
        [
            Expr::Fib {
                with: &[FibKey::Source, FibKey::OutputInterface],
                result: FibResult::AddressType,
                to: FIRST,
            },
            compare(Comparison::NotEqual, Value::host32(2)),
        ],
        "fib saddr . oif type != local",
    );
}
