//! What rules and sets do to real packets: one that the output hook drops is an error of the socket that sends it.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use tortie_kernel::nft::{
    Base, ChainKind, Comparison, Element, Expr, Field, Hook, InlineSet, Key, MetaKey, Place,
    Register, Rule, Set, SetReference, Transaction, Value, Verdict,
};

use crate::nft::support::{World, base_chain, in_world, load, network, table, transport};

const DROP: Expr = Expr::Verdict(Verdict::Drop);

/// Runs a test in a namespace where packets can be sent to 127.0.0.0/8, through the rules and sets that `fill` adds. Rules
/// go to chain `c`.
#[track_caller]
fn with_packets(fill: impl FnOnce(&mut Transaction) + Send, test: impl FnOnce(&mut World) + Send) {
    in_world(|world| {
        let up = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status()
            .unwrap();
        assert!(up.success());
        world
            .commit(|transaction| {
                transaction.add_table(&table());
                let chain = base_chain(ChainKind::Filter, Hook::Output, 0);
                transaction.add_base_chain(&table(), &chain);
                fill(transaction);
            })
            .unwrap();
        test(world);
    });
}

/// Whether a packet to this address and port can be sent.
fn passes(address: &str, port: u16) -> bool {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    match socket.send_to(b"x", (address, port)) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => false,
        Err(error) => panic!("{address}: {error}"),
    }
}

#[track_caller]
fn check(cases: &[(&str, u16, bool)]) {
    for (address, port, expected) in cases {
        assert_eq!(passes(address, *port), *expected, "{address} port {port}");
    }
}

fn drop_to(set: SetReference, before: impl IntoIterator<Item = Expr>) -> Rule {
    let lookup = Expr::Lookup {
        set,
        from: Register::FIRST,
        inverted: false,
    };
    Rule::new(before.into_iter().chain([lookup, DROP]))
}

fn prefix(text: &str) -> Element {
    Element::prefix(text.parse().unwrap())
}

#[test]
fn prefixes_hold_their_addresses_and_no_others() {
    let set = Set::interval("s", [Field::Ipv4Addr]);
    let rule = drop_to(SetReference::Named("s".into()), [network(16, 4)]);
    let fill = |transaction: &mut Transaction| {
        transaction.add_set(&table(), &set);
        transaction.add_rule(&table(), "c", Place::Last, &rule);
        let elements = ["127.1.0.0/24", "127.1.1.0/24", "127.1.9.9/32"].map(prefix);
        transaction.add_elements(&table(), &set, elements);
    };
    with_packets(fill, |world| {
        check(&[
            ("127.0.255.255", 1, true),
            ("127.1.0.0", 1, false),
            ("127.1.0.255", 1, false),
            ("127.1.1.0", 1, false),
            ("127.1.1.255", 1, false),
            ("127.1.2.0", 1, true),
            ("127.1.9.8", 1, true),
            ("127.1.9.9", 1, false),
            ("127.1.9.10", 1, true),
        ]);
        // The one that goes touches the one that stays.
        world
            .commit(|t| t.delete_elements(&table(), &set, [prefix("127.1.0.0/24")]))
            .unwrap();
        check(&[("127.1.0.255", 1, true), ("127.1.1.0", 1, false)]);
        world
            .commit(|t| {
                t.delete_elements(&table(), &set, [prefix("127.1.1.0/24")]);
                t.add_elements(&table(), &set, [prefix("127.1.0.0/23")]);
            })
            .unwrap();
        check(&[
            ("127.1.0.0", 1, false),
            ("127.1.1.255", 1, false),
            ("127.1.2.0", 1, true),
        ]);
    });
}

#[test]
fn masked_addresses_are_found_among_prefixes_of_one_length() {
    let set = Set::new("s", [Field::Ipv4Addr]);
    let mask = Expr::Bitwise {
        from: Register::FIRST,
        to: Register::FIRST,
        mask: Value::network32(0xffff_ffe0),
        xor: Value::network32(0),
    };
    let rule = drop_to(SetReference::Named("s".into()), [network(16, 4), mask]);
    let fill = |transaction: &mut Transaction| {
        transaction.add_set(&table(), &set);
        transaction.add_rule(&table(), "c", Place::Last, &rule);
        let network = Value::address("127.1.0.32".parse().unwrap());
        transaction.add_elements(&table(), &set, [Element::single(network)]);
    };
    with_packets(fill, |_| {
        check(&[
            ("127.1.0.31", 1, true),
            ("127.1.0.32", 1, false),
            ("127.1.0.63", 1, false),
            ("127.1.0.64", 1, true),
        ]);
    });
}

#[test]
fn services_and_inline_ports() {
    let set = Set::new("s", [Field::Ipv4Addr, Field::InetProto, Field::InetService]);
    let to_service = [
        network(16, 4),
        Expr::Meta {
            key: MetaKey::TransportProtocol,
            to: Register::at(1),
        },
        load(Base::Transport, 2, 2, Register::at(2)),
    ];
    let ports = InlineSet::new(
        [Field::InetService],
        [
            Element::single(Value::network16(80)),
            Element::range(Value::network16(100), Value::network16(200)),
            Element::range(Value::network16(65_000), Value::network16(65_535)),
        ],
    );
    let is_udp = [
        Expr::Meta {
            key: MetaKey::TransportProtocol,
            to: Register::FIRST,
        },
        Expr::Compare {
            from: Register::FIRST,
            how: Comparison::Equal,
            value: Value::byte(17),
        },
    ];
    let fill = |transaction: &mut Transaction| {
        transaction.add_set(&table(), &set);
        let rules = [
            drop_to(SetReference::Named("s".into()), to_service),
            drop_to(
                SetReference::Inline(ports),
                is_udp.into_iter().chain([transport(2, 2)]),
            ),
        ];
        for rule in &rules {
            transaction.add_rule(&table(), "c", Place::Last, rule);
        }
        let service = |protocol, port| {
            let address = Value::address("127.0.0.7".parse().unwrap());
            Element::single(Key::concatenated(&[
                address,
                Value::byte(protocol),
                Value::network16(port),
            ]))
        };
        transaction.add_elements(&table(), &set, [service(17, 53), service(6, 54)]);
    };
    with_packets(fill, |_| {
        check(&[
            ("127.0.0.7", 53, false),
            ("127.0.0.8", 53, true),
            ("127.0.0.7", 54, true),
            ("127.0.0.1", 79, true),
            ("127.0.0.1", 80, false),
            ("127.0.0.1", 81, true),
            ("127.0.0.1", 100, false),
            ("127.0.0.1", 200, false),
            ("127.0.0.1", 201, true),
            ("127.0.0.1", 65_535, false),
        ]);
    });
}

#[test]
fn interfaces_go_to_their_chains() {
    let exact = Set::verdict_map("exact", [Field::Ifname]);
    let wildcards = Set {
        interval: true,
        ..Set::verdict_map("wildcards", [Field::Ifname])
    };
    let dispatch = |map: &str| {
        Rule::new([
            Expr::Meta {
                key: MetaKey::OutputInterfaceName,
                to: Register::FIRST,
            },
            Expr::VerdictMap {
                map: SetReference::Named(map.into()),
                from: Register::FIRST,
            },
        ])
    };
    let goto = || Verdict::Goto("gate".into());
    let fill = |transaction: &mut Transaction| {
        transaction.add_chain(&table(), "gate");
        transaction.add_rule(&table(), "gate", Place::Last, &Rule::new([DROP]));
        for set in [&exact, &wildcards] {
            transaction.add_set(&table(), set);
            transaction.add_rule(&table(), "c", Place::Last, &dispatch(&set.name));
        }
    };
    with_packets(fill, |world| {
        check(&[("127.0.0.1", 1, true)]);
        let cases = [
            (&exact, Element::single(Value::interface("lo")), false),
            (&exact, Element::single(Value::interface("lo1")), true),
            (&wildcards, Element::interface_prefix("l"), false),
            (&wildcards, Element::interface_prefix("lo"), false),
            (&wildcards, Element::interface_prefix("lo1"), true),
            (&wildcards, Element::interface_prefix("m"), true),
        ];
        for (set, element, expected) in cases {
            let element = element.with_verdict(goto());
            world
                .commit(|t| t.add_elements(&table(), set, [element.clone()]))
                .unwrap();
            assert_eq!(passes("127.0.0.1", 1), expected, "{element:?}");
            world
                .commit(|t| t.delete_elements(&table(), set, [element]))
                .unwrap();
            check(&[("127.0.0.1", 1, true)]);
        }
    });
}
