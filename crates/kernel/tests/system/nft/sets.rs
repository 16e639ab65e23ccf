//! Sets and maps: their forms, and elements added, deleted and read.

use std::net::{IpAddr, Ipv4Addr};

use tortie_kernel::nft::{
    Element, Expr, Family, Field, InlineSet, Key, MetaKey, Place, Register, Rule, Set,
    SetReference, Table, Value, Verdict,
};

use crate::nft::support::{World, in_world, table};

fn address(index: u32) -> Element {
    Element::single(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + index)))
}

fn prefix(text: &str) -> Element {
    Element::prefix(text.parse().unwrap())
}

/// Runs a test in a namespace whose table has this set.
#[track_caller]
fn with_set<T: Send>(set: &Set, test: impl FnOnce(&mut World) -> T + Send) -> T {
    in_world(|world| {
        world
            .commit(|transaction| {
                transaction.add_table(&table());
                transaction.add_chain(&table(), "other");
                transaction.add_set(&table(), set);
            })
            .unwrap();
        test(world)
    })
}

impl World {
    #[track_caller]
    fn add(&mut self, set: &Set, elements: Vec<Element>) {
        self.commit(|transaction| transaction.add_elements(&table(), set, elements))
            .unwrap();
    }

    #[track_caller]
    fn delete(&mut self, set: &Set, elements: Vec<Element>) {
        self.commit(|transaction| transaction.delete_elements(&table(), set, elements))
            .unwrap();
    }

    #[track_caller]
    fn elements(&mut self, set: &Set) -> Vec<Element> {
        self.socket.elements(&table(), set).unwrap()
    }
}

/// Checks that a set with these elements is listed so by `nft` and read back as it was added, that `nft` makes the same set
/// of its listing, and that each element can be deleted.
#[track_caller]
fn check(set: &Set, mut elements: Vec<Element>, lines: &[&str]) {
    elements.sort();
    with_set(set, |world| {
        world.add(set, elements.clone());
        let kind = if set.verdicts { "map" } else { "set" };
        let listing = world.nft(&["list", kind, "ip", "t", &set.name]);
        for line in lines {
            assert!(
                listing.lines().any(|l| l.trim() == *line),
                "no line `{line}` in\n{listing}"
            );
        }
        assert_eq!(world.elements(set), elements);
        let sets = world.socket.sets(&table()).unwrap();
        assert!(sets[0].is(set), "{sets:?}");

        world
            .commit(|transaction| transaction.delete_set(&table(), &set.name))
            .unwrap();
        world.nft_load(&listing);
        assert_eq!(world.elements(set), elements, "as nft made it");

        for element in &elements {
            world.delete(set, vec![element.clone()]);
        }
        assert_eq!(world.elements(set), []);
    });
}

#[test]
fn addresses() {
    check(
        &Set::new("s", [Field::Ipv4Addr]),
        vec![address(1), address(2)],
        &["type ipv4_addr", "elements = { 10.0.0.1, 10.0.0.2 }"],
    );
    check(
        &Set::new("s", [Field::Ipv6Addr]),
        vec![prefix("fd00::1/128")],
        &["type ipv6_addr", "elements = { fd00::1 }"],
    );
    let bounded = Set {
        max_size: Some(1000),
        ..Set::new("s", [Field::Ipv4Addr])
    };
    check(
        &bounded,
        vec![address(1)],
        &["type ipv4_addr", "size 1000", "elements = { 10.0.0.1 }"],
    );
}

#[test]
fn ports_marks_protocols_and_interfaces() {
    let single = |value| vec![Element::single(value)];
    check(
        &Set::new("s", [Field::InetService]),
        single(Value::network16(80)),
        &["type inet_service", "elements = { 80 }"],
    );
    check(
        &Set::new("s", [Field::InetProto]),
        single(Value::byte(6)),
        &["type inet_proto", "elements = { tcp }"],
    );
    check(
        &Set::new("s", [Field::Mark]),
        single(Value::host32(0x10)),
        &["type mark", "elements = { 0x00000010 }"],
    );
    check(
        &Set::new("s", [Field::Ifname]),
        single(Value::interface("cali1")),
        &["type ifname", "elements = { \"cali1\" }"],
    );
}

#[test]
fn services() {
    let service = |port| {
        Element::single(Key::concatenated(&[
            Value::network32(0x0a00_0001),
            Value::byte(17),
            Value::network16(port),
        ]))
    };
    check(
        &Set::new("s", [Field::Ipv4Addr, Field::InetProto, Field::InetService]),
        vec![service(53), service(80)],
        &[
            "type ipv4_addr . inet_proto . inet_service",
            "elements = { 10.0.0.1 . udp . 53,",
            "10.0.0.1 . udp . 80 }",
        ],
    );
}

#[test]
fn prefixes_that_touch_and_that_reach_the_end() {
    check(
        &Set::interval("s", [Field::Ipv4Addr]),
        vec![
            prefix("0.0.0.0/8"),
            prefix("10.0.0.0/24"),
            prefix("10.0.1.0/24"),
            prefix("10.0.3.7/32"),
            prefix("224.0.0.0/3"),
        ],
        &[
            "type ipv4_addr",
            "flags interval",
            "elements = { 0.0.0.0/8, 10.0.0.0/24,",
            "10.0.1.0/24, 10.0.3.7,",
            "224.0.0.0/3 }",
        ],
    );
    check(
        &Set::interval("s", [Field::Ipv6Addr]),
        vec![prefix("fd00::/64"), prefix("fe80::/10")],
        &["type ipv6_addr", "elements = { fd00::/64,", "fe80::/10 }"],
    );
    check(
        &Set::interval("s", [Field::Ipv4Addr]),
        vec![prefix("0.0.0.0/0")],
        &["elements = { 0.0.0.0/0 }"],
    );
    check(
        &Set::interval("s", [Field::InetService]),
        vec![Element::range(Value::network16(100), Value::network16(200))],
        &["type inet_service", "elements = { 100-200 }"],
    );
}

#[test]
fn ranges_in_several_fields() {
    let pair = |a: u32, b: u32| Key::concatenated(&[Value::network32(a), Value::network32(b)]);
    check(
        &Set::interval("s", [Field::Ipv4Addr, Field::Ipv4Addr]),
        vec![
            Element::range(
                pair(0x0a00_0000, 0x0b00_0000),
                pair(0x0a00_00ff, 0x0b00_0000),
            ),
            Element::range(
                pair(0x0a01_0000, 0x0b00_0000),
                pair(0x0a01_00ff, 0x0b00_ffff),
            ),
        ],
        &[
            "type ipv4_addr . ipv4_addr",
            "flags interval",
            "elements = { 10.0.0.0/24 . 11.0.0.0,",
            "10.1.0.0/24 . 11.0.0.0/16 }",
        ],
    );
}

#[test]
fn verdicts_by_interface() {
    let gate = |name: &str, verdict| Element::single(Value::interface(name)).with_verdict(verdict);
    check(
        &Set::verdict_map("s", [Field::Ifname]),
        vec![
            gate("cali1", Verdict::Goto("other".into())),
            gate("cali2", Verdict::Jump("other".into())),
            gate("cali3", Verdict::Drop),
        ],
        &[
            "type ifname : verdict",
            "elements = { \"cali1\" : goto other,",
            "\"cali2\" : jump other,",
            "\"cali3\" : drop }",
        ],
    );
    let wildcards = Set {
        interval: true,
        ..Set::verdict_map("s", [Field::Ifname])
    };
    check(
        &wildcards,
        vec![
            Element::interface_prefix("cali").with_verdict(Verdict::Goto("other".into())),
            gate("eth0", Verdict::Accept),
        ],
        &[
            "type ifname : verdict",
            "flags interval",
            "elements = { \"cali*\" : goto other,",
            "\"eth0\" : accept }",
        ],
    );
}

#[test]
fn a_hundred_thousand_addresses() {
    let set = Set::new("s", [Field::Ipv4Addr]);
    let all: Vec<Element> = (0..100_000).map(address).collect();
    let more: Vec<Element> = (100_000..100_100).map(address).collect();
    with_set(&set, |world| {
        world.add(&set, all.clone());
        assert!(world.elements(&set) == all);
        world.add(&set, more.clone());
        assert_eq!(world.elements(&set).len(), 100_100);
        world.delete(&set, more);
        assert!(world.elements(&set) == all);
        world
            .commit(|transaction| transaction.flush_set(&table(), "s"))
            .unwrap();
        assert_eq!(world.elements(&set), []);
    });
}

#[test]
fn adding_again_changes_nothing_and_a_refusal_adds_nothing() {
    let set = Set::new("s", [Field::Ipv4Addr]);
    with_set(&set, |world| {
        world.add(&set, vec![address(1), address(2)]);
        world.add(&set, vec![address(2), address(3)]);
        assert_eq!(world.elements(&set).len(), 3);
        let result = world.commit(|transaction| {
            transaction.add_elements(&table(), &set, (10..20_000).map(address));
            transaction.delete_elements(&table(), &set, [address(4)]);
        });
        assert_eq!(result.unwrap_err().errno(), Some(libc::ENOENT));
        assert_eq!(world.elements(&set).len(), 3);
    });
}

#[test]
fn inline_sets_come_and_go_with_their_rules() {
    let rule = |count: u32| {
        Rule::new([
            Expr::Payload {
                base: tortie_kernel::nft::Base::Network,
                offset: 12,
                length: 4,
                to: Register::FIRST,
            },
            Expr::Lookup {
                set: SetReference::Inline(InlineSet::new(
                    [Field::Ipv4Addr],
                    (0..count).map(address),
                )),
                from: Register::FIRST,
                inverted: true,
            },
            Expr::Meta {
                key: MetaKey::Mark,
                to: Register::FIRST,
            },
            Expr::Lookup {
                set: SetReference::Inline(InlineSet::new(
                    [Field::Mark],
                    [Element::single(Value::host32(1))],
                )),
                from: Register::FIRST,
                inverted: false,
            },
        ])
    };
    with_set(&Set::new("named", [Field::Ipv4Addr]), |world| {
        world
            .commit(|transaction| {
                for count in 1..30 {
                    transaction.add_rule(&table(), "other", Place::Last, &rule(count));
                }
            })
            .unwrap();
        let (first, last) = (rule(1).encode(), rule(29).encode());
        let rules = world.rules(&table(), Some("other"));
        assert!(tortie_kernel::nft::same_rule(&first, &rules[0].expressions));
        assert!(tortie_kernel::nft::same_rule(&last, &rules[28].expressions));
        let lines = world.listed_rules(&table(), "other");
        let addresses = (0..3)
            .map(|i| format!("10.0.0.{i}"))
            .collect::<Vec<_>>()
            .join(", ");
        assert_eq!(
            lines[2].0,
            format!("ip saddr != {{ {addresses} }} meta mark {{ 0x00000001 }}")
        );
        assert_eq!(
            world.socket.sets(&table()).unwrap().len(),
            1,
            "inline sets have no names"
        );
        world
            .commit(|transaction| transaction.flush_chain(&table(), "other"))
            .unwrap();
        assert!(!world.nft(&["list", "ruleset"]).contains("__set"));
    });
}

#[test]
fn a_set_of_another_form_is_told_apart() {
    let set = Set::new("s", [Field::Ipv4Addr]);
    let others = [
        Set::interval("s", [Field::Ipv4Addr]),
        Set::verdict_map("s", [Field::Ipv4Addr]),
        Set::new("s", [Field::Mark]),
        Set::new("s", [Field::Ipv4Addr, Field::InetService]),
        Set::new("another", [Field::Ipv4Addr]),
        Set {
            max_size: Some(5),
            ..set.clone()
        },
    ];
    with_set(&set, |world| {
        let sets = world.socket.sets(&table()).unwrap();
        assert!(sets[0].is(&set));
        for other in &others {
            assert!(!sets[0].is(other), "{other:?}");
        }
        assert_eq!(
            world
                .socket
                .sets(&Table::new(Family::Ip, "missing"))
                .unwrap(),
            []
        );
    });
}
