//! All parameters against `felix-parameters.json`, which Calico generates from its own code. The file is in the folder
//! with its CRDs.

use std::fs;

use regex::Regex;
use serde_json::{Value as Json, json};
use tortie_config::{
    FailsafePort, Kind, Parameter, PortRange, TransportProtocol, Value, parameter, parameters,
};

/// Parameters that Calico does not document, because people do not set them.
const UNDOCUMENTED: [&str; 9] = [
    "CalicoVersion",
    "ClusterGUID",
    "ClusterType",
    "IPv4VXLANTunnelAddr",
    "IPv6VXLANTunnelAddr",
    "IpInIpTunnelAddr",
    "VXLANTunnelMACAddr",
    "VXLANTunnelMACAddrV6",
    "Variant",
];

/// Numbers that Calico accepts although nothing can be done with them, by parameter.
const REFUSED_HERE: [(&str, &[i64]); 8] = [
    ("DeviceRouteProtocol", &[-1, 256]),
    ("IpInIpMtu", &[-1, 65_536]),
    ("LogActionRateLimitBurst", &[1 << 32]),
    ("MaxIpsetSize", &[-1, 0, 1 << 32]),
    ("VXLANMTU", &[-1, 65_536]),
    ("VXLANMTUV6", &[-1, 65_536]),
    ("VXLANPort", &[-1, 65_536]),
    ("VXLANVNI", &[-1, 1 << 24]),
];

/// Texts that patterns of the reference are tried with.
const TEXTS: [&str; 34] = [
    "",
    " ",
    "cali",
    "cali,tap",
    "cali, tap",
    "cali,",
    "exactly15-chars",
    "exactly15_chars,sixteen-chars-xx",
    "sixteen-chars-xx",
    "eth0.100",
    "docker+",
    "a@b",
    "localhost",
    "node_1.example.org",
    "127.0.0.1",
    "::1",
    "fd00::1",
    "host:2379",
    "host:",
    ":2379",
    "a/b:1",
    "a:b:1",
    "10/second",
    "9999/day",
    "10000/day",
    "0/minute",
    "01/minute",
    "1/minute ",
    "1/week",
    "two\nlines",
    "ünïcode",
    "-",
    "0123456789012345678901234567890123456789012345678901234567890123",
    "01234567890123456789012345678901234567890123456789012345678901234",
];

/// The entries of the file.
fn reference() -> Vec<Json> {
    let path = tortie_testkit::calico_folder().join("felix-parameters.json");
    let text = fs::read(&path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
    let json: Json = serde_json::from_slice(&text).expect("it is JSON");
    let groups = json["Groups"].as_array().expect("it has groups");
    let fields = groups
        .iter()
        .flat_map(|group| group["Fields"].as_array().expect("groups have fields"));
    fields.cloned().collect()
}

fn text<'a>(field: &'a Json, key: &str) -> &'a str {
    field[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} is missing in {field}"))
}

fn known(field: &Json) -> &'static Parameter {
    let name = text(field, "NameConfigFile");
    let found = parameter(name).unwrap_or_else(|| panic!("{name} is not in the table"));
    assert_eq!(found.name, name);
    found
}

fn accepts(parameter: &Parameter, text: &str) -> bool {
    parameter.kind.parse(text).is_ok()
}

/// A value in the form of the reference.
fn to_json(kind: Kind, value: &Value) -> Json {
    let range = |range: &PortRange| {
        if range.first == range.last {
            json!(range.first)
        } else {
            json!(format!("{}:{}", range.first, range.last))
        }
    };
    match value {
        Value::Unset => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Duration(value) => json!(value.as_nanos()),
        Value::Text(value) => json!(value),
        Value::Choice(value) => json!(value),
        Value::Pattern(pattern) => json!(pattern.as_str()),
        Value::Patterns(patterns) => patterns.iter().map(|each| json!(each.as_str())).collect(),
        Value::Texts(texts) if kind == Kind::InterfacePrefixes => json!(texts.join(",")),
        Value::Texts(texts) => json!(texts),
        Value::FailsafePorts(ports) => ports.iter().map(failsafe_port_to_json).collect(),
        Value::PortRanges(ranges) if kind == Kind::PortRange => range(&ranges[0]),
        Value::PortRanges(ranges) => ranges.iter().map(range).collect(),
        Value::Pairs(pairs) => json!(pairs),
        other => panic!("no default has the value {other:?}"),
    }
}

fn failsafe_port_to_json(port: &FailsafePort) -> Json {
    let protocol = match port.protocol {
        TransportProtocol::Tcp => "tcp",
        TransportProtocol::Udp => "udp",
    };
    json!({"protocol": protocol, "port": port.port})
}

/// Whether a value of the reference stands for none.
fn is_zero(json: &Json) -> bool {
    let zeros = [
        json!(null),
        json!(false),
        json!(0),
        json!(""),
        json!({"Min": 0, "Max": 0}),
    ];
    zeros.contains(json)
}

#[test]
fn the_table_has_every_parameter_once_and_no_other() {
    let names: Vec<&str> = parameters().map(|parameter| parameter.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    for name in UNDOCUMENTED {
        assert!(parameter(name).is_some(), "{name}");
    }
    let reference = reference();
    let mut expected: Vec<&str> = reference
        .iter()
        .map(|field| text(field, "NameConfigFile"))
        .chain(UNDOCUMENTED)
        .collect();
    expected.sort_unstable();
    assert_eq!(unique, expected);
}

#[test]
fn defaults_and_flags_are_those_of_the_reference() {
    for field in reference() {
        let parameter = known(&field);
        let name = parameter.name;
        assert_eq!(parameter.default, text(&field, "StringDefault"), "{name}");
        assert_eq!(json!(parameter.required), field["Required"], "{name}");
        let on_failure = if parameter.fatal {
            "Exit"
        } else {
            "ReplaceWithDefault"
        };
        assert_eq!(on_failure, text(&field, "OnParseFailure"), "{name}");
        let sources = if parameter.local_only {
            "LocalOnly"
        } else {
            "All"
        };
        assert_eq!(sources, text(&field, "AllowedConfigSources"), "{name}");

        let expected: Json = serde_json::from_str(text(&field, "ParsedDefaultJSON")).unwrap();
        let value = parameter.default_value();
        let same = to_json(parameter.kind, &value) == expected;
        let none = value == Value::Unset && is_zero(&expected);
        assert!(same || none, "{name}: {value:?} instead of {expected}");
    }
}

#[test]
fn words_numbers_and_texts_are_accepted_and_refused_as_in_the_reference() {
    let mut checked = 0;
    for field in reference() {
        let parameter = known(&field);
        let schema = text(&field, "StringSchema");
        if let Some(words) = schema.strip_prefix("One of: ") {
            check_words(parameter, words);
        } else if let Some(ranges) = schema.strip_prefix("Integer") {
            check_numbers(parameter, ranges.trim_start_matches([':', ' ']));
        } else if let Some(pattern) = schema.strip_prefix("String matching regex ") {
            check_texts(parameter, pattern.trim_matches('`'));
        } else if schema == "String" {
            check_texts(parameter, "^.*$");
        } else {
            continue;
        }
        checked += 1;
    }
    assert!(checked > 100, "{checked} schemas were understood");
}

#[track_caller]
fn check(parameter: &Parameter, text: &str, expected: bool) {
    assert_eq!(
        accepts(parameter, text),
        expected,
        "{} = {text:?}",
        parameter.name
    );
}

fn check_words(parameter: &Parameter, words: &str) {
    let mut words: Vec<&str> = words
        .split(", ")
        .map(|word| word.trim_matches('`'))
        .collect();
    for word in &words {
        check(parameter, word, true);
        check(parameter, &word.to_uppercase(), true);
        check(parameter, &word.to_lowercase(), true);
        check(parameter, &format!("{word} "), false);
    }
    let Kind::OneOf(options) = parameter.kind else {
        panic!("{} is not one of some words", parameter.name);
    };
    let mut options = options.to_vec();
    options.sort_unstable();
    words.sort_unstable();
    assert_eq!(options, words, "{}", parameter.name);
}

fn check_numbers(parameter: &Parameter, ranges: &str) {
    let bound = |text: &str| match text {
        "2^63-1" => i128::from(i64::MAX),
        "-2^63" => i128::from(i64::MIN),
        number => number.parse().expect("bounds are numbers"),
    };
    let ranges: Vec<(i128, i128)> = ranges
        .split("], [")
        .filter(|range| !range.is_empty())
        .map(|range| {
            range
                .trim_matches(['[', ']'])
                .split_once(',')
                .expect("a range has two bounds")
        })
        .map(|(min, max)| (bound(min), bound(max)))
        .collect();
    let narrower = REFUSED_HERE
        .iter()
        .find(|(name, _)| *name == parameter.name);
    let refused_here: &[i64] = narrower.map_or(&[], |(_, numbers)| numbers);

    let mut numbers: Vec<i128> = vec![1, 7, 255];
    numbers.extend(refused_here.iter().map(|number| i128::from(*number)));
    for (min, max) in &ranges {
        numbers.extend([min - 1, *min, min + 1]);
        if narrower.is_none() {
            numbers.extend([max - 1, *max, max + 1]);
        }
    }
    for number in numbers {
        let in_range = |(min, max): &(i128, i128)| (min..=max).contains(&&number);
        let fits = i64::try_from(number).is_ok_and(|number| !refused_here.contains(&number));
        let expected = fits && (ranges.is_empty() || ranges.iter().any(in_range));
        check(parameter, &number.to_string(), expected);
    }
    check(parameter, "0x7", accepts(parameter, "7"));
    for text in ["seven", "7.5", "7 ", " 7", "1e3", "9223372036854775808"] {
        check(parameter, text, false);
    }
}

fn check_texts(parameter: &Parameter, pattern: &str) {
    let pattern = Regex::new(pattern).expect("the pattern can be read");
    for text in TEXTS {
        check(parameter, text, pattern.is_match(text));
    }
}
