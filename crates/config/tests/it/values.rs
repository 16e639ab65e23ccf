//! What values of each kind are accepted, and what they are read as.

use std::{collections::BTreeMap, time::Duration};

use tortie_config::{
    FailsafePort, Kind, PortRange, TableRange, TransportProtocol, Value, parameters,
};

#[track_caller]
fn accepted(kind: Kind, cases: impl IntoIterator<Item = (&'static str, Value)>) {
    for (text, expected) in cases {
        assert_eq!(kind.parse(text), Ok(expected), "{kind:?}: {text:?}");
    }
}

#[track_caller]
fn refused<'a>(kind: Kind, texts: impl IntoIterator<Item = &'a str>) {
    for text in texts {
        assert!(kind.parse(text).is_err(), "{kind:?} accepts {text:?}");
    }
    assert!(!kind.expected().is_empty());
}

fn texts(texts: &[&str]) -> Value {
    Value::Texts(texts.iter().map(|&text| text.to_owned()).collect())
}

fn tables(ranges: &[(u32, u32)]) -> Value {
    let range = |&(first, last): &(u32, u32)| TableRange { first, last };
    Value::TableRanges(ranges.iter().map(range).collect())
}

#[test]
fn booleans_have_five_spellings_each() {
    let yes = ["true", "1", "yes", "y", "t", "True", "YES", "T"];
    let no = ["false", "0", "no", "n", "f", "False", "NO", "F"];
    accepted(Kind::Bool, yes.map(|text| (text, Value::Bool(true))));
    accepted(Kind::Bool, no.map(|text| (text, Value::Bool(false))));
    refused(Kind::Bool, ["on", "off", "enabled", " true", "2"]);
}

#[test]
fn whole_numbers_may_have_a_base_and_underscores() {
    let kind = Kind::Int {
        min: -20,
        max: 70_000,
    };
    accepted(
        kind,
        [
            ("0", 0),
            ("-20", -20),
            ("+7", 7),
            ("0x1F", 31),
            ("0b101", 5),
            ("0o17", 15),
            ("017", 15),
            ("65_535", 65_535),
            ("0x_ff", 255),
            ("-0x10", -16),
        ]
        .map(|(text, number)| (text, Value::Int(number))),
    );
    refused(
        kind,
        [
            "-21",
            "70001",
            "_1",
            "1_",
            "1__0",
            "0x",
            "08",
            "--1",
            "+-1",
            "1.0",
            "99999999999999999999",
        ],
    );
}

#[test]
fn times_are_seconds_or_milliseconds_with_fractions() {
    let seconds = [
        ("90", 90_000),
        ("0.5", 500),
        (".25", 250),
        ("1e1", 10_000),
        ("0", 0),
        ("-1", 0),
    ];
    accepted(
        Kind::Seconds,
        seconds.map(|(text, millis)| (text, Value::Duration(Duration::from_millis(millis)))),
    );
    accepted(
        Kind::Millis,
        [("50", 50_000), ("0.5", 500)]
            .map(|(text, micros)| (text, Value::Duration(Duration::from_micros(micros)))),
    );
    for kind in [Kind::Seconds, Kind::Millis] {
        refused(kind, ["90s", "nan", "inf", "-inf", "1e30", "", "ten"]);
    }
}

#[test]
fn masks_have_at_least_two_of_32_bits() {
    accepted(
        Kind::Mask,
        [
            ("0xffff0000", 0xffff_0000),
            ("3", 3),
            ("0xF0F0", 0xf0f0),
            ("4294967295", 0xffff_ffff),
        ]
        .map(|(text, mask)| (text, Value::Int(mask))),
    );
    refused(
        Kind::Mask,
        ["0", "0x1", "8", "0x1ffffffff", "-1", "+3", "ffff0000"],
    );
}

#[test]
fn failsafe_ports_may_have_a_protocol_and_peers() {
    let port = |protocol, network: Option<&str>, port| FailsafePort {
        protocol,
        network: network.map(|network| network.parse().unwrap()),
        port,
    };
    let (tcp, udp) = (TransportProtocol::Tcp, TransportProtocol::Udp);
    accepted(
        Kind::FailsafePorts,
        [
            ("22", vec![port(tcp, None, 22)]),
            (
                "UDP:53, tcp:0,",
                vec![port(udp, None, 53), port(tcp, None, 0)],
            ),
            ("tcp:10.1.2.3/8:22", vec![port(tcp, Some("10.0.0.0/8"), 22)]),
            ("tcp:10.1.2.3:22", vec![port(tcp, Some("10.1.2.3/32"), 22)]),
            (
                "udp:[fd00::1/64]:53",
                vec![port(udp, Some("fd00::/64"), 53)],
            ),
            ("tcp:[fd00::1]:22", vec![port(tcp, Some("fd00::1/128"), 22)]),
            (
                "1,udp:0.0.0.0/0:2",
                vec![port(tcp, None, 1), port(udp, Some("0.0.0.0/0"), 2)],
            ),
            (" ", vec![]),
        ]
        .map(|(text, ports)| (text, Value::FailsafePorts(ports))),
    );
    refused(
        Kind::FailsafePorts,
        [
            "foo:1",
            "sctp:22",
            "tcp:0.0.0.0/0:1:bar",
            "tcp:65536",
            "tcp:-1",
            "tcp:http",
            "tcp:nowhere:22",
            "tcp:10.0.0.0/33:22",
            "tcp:fd00::/8:22",
            "tcp:[fd00::]",
            "tcp:]:[22",
            "tcp:",
        ],
    );
}

#[test]
fn port_ranges_are_numbers() {
    let range = |first, last| PortRange { first, last };
    accepted(
        Kind::PortRange,
        [
            (
                "32768:60999",
                Value::PortRanges(vec![range(32_768, 60_999)]),
            ),
            ("80", Value::PortRanges(vec![range(80, 80)])),
        ],
    );
    accepted(
        Kind::PortRanges,
        [(
            "30001:30002,80",
            Value::PortRanges(vec![range(30_001, 30_002), range(80, 80)]),
        )],
    );
    for kind in [Kind::PortRange, Kind::PortRanges] {
        refused(
            kind,
            ["http", "2:1", "65536", "1:65536", "1-2", "1:2:3", ""],
        );
    }
    refused(Kind::PortRange, ["1:2,3"]);
    refused(Kind::PortRanges, ["1:2, 3", "1,"]);
}

#[test]
fn addresses_are_of_one_family() {
    let address = |text: &str| Value::Address(text.parse().unwrap());
    accepted(
        Kind::Ipv4,
        [
            ("10.1.1.2", address("10.1.1.2")),
            ("::ffff:10.1.1.2", address("10.1.1.2")),
        ],
    );
    accepted(Kind::Ipv6, [("aabc::1111", address("aabc::1111"))]);
    refused(
        Kind::Ipv4,
        ["aabc::1111", " ", "10.1.1.2/32", "010.1.1.2", "host"],
    );
    refused(
        Kind::Ipv6,
        ["10.1.1.2", " ", "fe80::1%eth0", "::ffff:10.1.1.2"],
    );
}

#[test]
fn networks_are_masked() {
    let networks =
        |texts: &[&str]| Value::Cidrs(texts.iter().map(|text| text.parse().unwrap()).collect());
    accepted(
        Kind::Cidrs,
        [
            ("", networks(&[])),
            (
                "1.1.1.1/24, 2.2.2.2",
                networks(&["1.1.1.0/24", "2.2.2.2/32"]),
            ),
            ("fd00::1/8,", networks(&["fd00::/8"])),
        ],
    );
    refused(Kind::Cidrs, ["1.1.1.1/33", "1.1.1.1 2.2.2.2", "all"]);
}

#[test]
fn interfaces_are_names_or_patterns() {
    let patterns = |text: &str| match Kind::InterfacePatterns.parse(text) {
        Ok(Value::Patterns(patterns)) => {
            let texts = patterns.iter().map(|pattern| pattern.as_str().to_owned());
            texts.collect::<Vec<_>>()
        }
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        patterns("kube-ipvs0,dummy,/^veth.*$/"),
        ["^kube-ipvs0$", "^dummy$", "^veth.*$"]
    );
    refused(
        Kind::InterfacePatterns,
        [
            "kube,//",
            "/kube,/,dummy",
            r"/^kube\K/",
            "not.an@interface",
            "",
            "/a b/",
            "/",
        ],
    );
    accepted(
        Kind::InterfaceFilters,
        [
            ("docker+, eth0.1", texts(&["docker+", "eth0.1"])),
            ("", texts(&[])),
        ],
    );
    refused(Kind::InterfaceFilters, ["cali-123,cali@123"]);
    accepted(
        Kind::InterfacePrefixes,
        [("cali,tap", texts(&["cali", "tap"]))],
    );
    refused(Kind::Regex, ["(", r"\K", "["]);
}

#[test]
fn routing_tables_are_ranges_and_not_too_many() {
    accepted(
        Kind::RouteTableRange,
        [("1-250", tables(&[(1, 250)])), ("7-7", tables(&[(7, 7)]))],
    );
    refused(
        Kind::RouteTableRange,
        ["0-5", "1-251", "9-1", "1", "1-2,4-5", "a-b", "+1-5"],
    );
    accepted(
        Kind::RouteTableRanges,
        [
            ("1-10,20-30", tables(&[(1, 10), (20, 30)])),
            ("1-10 and 20 or 30-40", tables(&[(1, 10), (30, 40)])),
            ("1-65535", tables(&[(1, 65_535)])),
            ("4294967295-4294967295", tables(&[(u32::MAX, u32::MAX)])),
        ],
    );
    refused(
        Kind::RouteTableRanges,
        [
            "",
            "x",
            "5",
            "10-1",
            "0-5",
            "1-65536",
            "1-65535,70000-70000",
            "1-4294967296",
            "1-99999999999999999999",
        ],
    );
}

#[test]
fn pairs_keep_spaces_in_values_and_durations_do_not() {
    let pairs = |pairs: &[(&str, &str)]| {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Value::Pairs(pairs.iter().map(owned).collect())
    };
    accepted(
        Kind::Pairs,
        [
            ("  ", pairs(&[])),
            (
                "  key=value,  v2= x ,,,,",
                pairs(&[("key", "value"), ("v2", " x ")]),
            ),
            ("a=b=c", pairs(&[("a", "b=c")])),
        ],
    );
    refused(Kind::Pairs, ["key=value,malformed", "=value", "-=1"]);
    let timeouts: BTreeMap<_, _> = [("a", 90_000), ("b", 10), ("c", 0)]
        .map(|(key, millis)| (key.to_owned(), Duration::from_millis(millis)))
        .into();
    accepted(
        Kind::Timeouts,
        [("a=90s, b= 10ms ,c=0", Value::Timeouts(timeouts))],
    );
    refused(Kind::Timeouts, ["foo=bar", "a=90", "a"]);
}

#[test]
fn every_default_is_a_value_that_the_parameter_takes() {
    for parameter in parameters() {
        assert!(
            parameter.default.is_empty() || parameter.kind.parse(parameter.default).is_ok(),
            "{}",
            parameter.name
        );
        assert!(!parameter.meaning.is_empty(), "{}", parameter.name);
    }
}
