use serde_json::{Value, json};

use super::*;
use crate::Resource;

/// Words that some reader of YAML takes for something other than text.
const WORDS: [&str; 32] = [
    "y",
    "n",
    "Y",
    "N",
    "yes",
    "no",
    "Yes",
    "NO",
    "on",
    "off",
    "On",
    "OFF",
    "true",
    "false",
    "True",
    "FALSE",
    "0x50",
    "0o17",
    "0b11",
    "1_000",
    "1e3",
    "012",
    "0",
    "1.10",
    "1.0",
    "007",
    "1e1000",
    "+1",
    "0.5",
    "12345678901234567890123",
    "2026-11-18",
    "12:30:45",
];

fn policy(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: NetworkPolicy\nmetadata:\n  name: {name}\n{rest}"
    )
}

#[track_caller]
fn one(text: &str) -> Value {
    parse_one(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_word_is_text_where_the_schema_has_text() {
    for word in WORDS {
        let text = policy(
            word,
            &format!(
                "  namespace: {word}\n  labels: {{a: {word}, b: [x]}}\nspec:\n  tier: {word}\n"
            ),
        )
        .replace(", b: [x]", "");
        let value = one(&text);
        for pointer in [
            "/metadata/name",
            "/metadata/namespace",
            "/metadata/labels/a",
            "/spec/tier",
        ] {
            assert_eq!(
                value.pointer(pointer),
                Some(&json!(word)),
                "{pointer}\n{text}"
            );
        }
    }
}

#[test]
fn a_key_is_text() {
    for word in WORDS {
        let value = one(&policy("a", &format!("  labels: {{{word}: b}}\n")));
        let labels = value.pointer("/metadata/labels").unwrap();
        assert_eq!(labels, &json!({ word: "b" }));
    }
}

#[test]
fn every_way_of_writing_leads_to_the_same_text() {
    for (name, rest) in [
        ("&a n", "  namespace: *a\n"),
        ("'n'", "  namespace: \"n\"\n"),
        ("n # no", "  namespace:   n   \n"),
        ("!!str n", "  namespace: >-\n    n\n"),
    ] {
        let value = one(&policy(
            name,
            &format!("{rest}spec: {{order: 1, tier: 5}}\n"),
        ));
        assert_eq!(
            value["metadata"],
            json!({"name": "n", "namespace": "n"}),
            "{name}"
        );
        assert_eq!(value["spec"], json!({"order": 1, "tier": "5"}));
    }
    let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: projectcalico.org/v3, kind: Tier, metadata: {name: 1.10}}\n";
    assert_eq!(
        one(text).pointer("/items/0/metadata/name"),
        Some(&json!("1.10"))
    );
    let two = format!("{}---\n{}", policy("é", ""), policy("1.10", ""));
    assert_eq!(parse(&two).unwrap()[1]["metadata"]["name"], "1.10");
}

#[test]
fn a_word_is_a_boolean_or_a_number_where_the_schema_has_one() {
    let pool = |spec: &str| {
        one(&format!(
            "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {{name: p}}\nspec: {{{spec}}}\n"
        ))["spec"]
            .clone()
    };
    assert_eq!(pool("disabled: yes"), json!({"disabled": true}));
    assert_eq!(pool("disabled: Off"), json!({"disabled": false}));
    assert_eq!(pool("disabled: True"), json!({"disabled": true}));
    assert_eq!(pool("disabled: 'yes'"), json!({"disabled": "yes"}));
    assert_eq!(pool("disabled: maybe"), json!({"disabled": "maybe"}));
    assert_eq!(pool("blockSize: 0x1a"), json!({"blockSize": 26}));
    let ports = one(&policy(
        "a",
        "spec: {ingress: [{destination: {ports: [0x50, http, '5']}}]}\n",
    ));
    let ports = ports.pointer("/spec/ingress/0/destination/ports").unwrap();
    assert_eq!(ports, &json!([80, "http", "5"]));
}

#[test]
fn a_number_that_readers_disagree_about_is_refused() {
    let text = policy(
        "012",
        "spec:\n  ingress:\n  - destination: {ports: [012]}\n",
    );
    let message = parse(&text).unwrap_err().to_string();
    assert!(
        message.starts_with("line 7: `012` is an octal number"),
        "{message}"
    );
    assert!(parse("port: 08\n").is_err());
    assert_eq!(one("port: 0.5\n"), json!({"port": 0.5}));
}

#[test]
fn kubernetes_objects_have_text_where_only_old_yaml_has_booleans() {
    let value =
        one("apiVersion: v1\nkind: Pod\nmetadata: {name: n, namespace: y, labels: {a: on}}\n");
    assert_eq!(
        value["metadata"],
        json!({"name": "n", "namespace": "y", "labels": {"a": "on"}})
    );
}

#[test]
fn what_is_read_is_what_is_stored() {
    let text = policy(
        "n",
        "  namespace: y\n  labels: {country: no, version: 1.10}\n",
    );
    let resource = Resource::decode_strict(&one(&text)).unwrap();
    let metadata = resource.metadata();
    assert_eq!((&*metadata.name, &*metadata.namespace), ("n", "y"));
    assert_eq!(metadata.labels["country"], "no");
    assert_eq!(metadata.labels["version"], "1.10");
}

#[test]
fn a_part_of_a_resource_has_the_schema_of_its_kind() {
    let value = parse_as(
        Kind::GlobalNetworkPolicy,
        "metadata: {labels: {a: n, b: 1.0}}",
    )
    .unwrap();
    assert_eq!(value["metadata"]["labels"], json!({"a": "n", "b": "1.0"}));
}

/// Every short text of the characters that names and values of labels can have, and longer ones of those words.
#[test]
fn any_name_or_label_value_that_is_written_is_read_again() {
    let letters = [
        "0", "1", "7", "x", "o", "b", "e", "n", "y", "O", "N", "_", "-", ".",
    ];
    let mut texts: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    texts.extend(["null", "Null", "~", "nan", "inf", ".inf", "off", "<<", "="].map(str::to_owned));
    let mut short = vec![String::new()];
    for _ in 0..3 {
        let longer = short
            .iter()
            .flat_map(|text| letters.map(|letter| format!("{text}{letter}")));
        short = longer.collect();
        texts.extend(short.iter().cloned());
    }
    let is_legal = |text: &String| {
        let is_end = |c: char| c.is_ascii_alphanumeric();
        text.chars().all(|c| is_end(c) || "-_.".contains(c))
            && text.starts_with(is_end)
            && text.ends_with(is_end)
    };
    texts.retain(is_legal);
    for text in texts {
        let written = json!({
            "apiVersion": API_VERSION, "kind": "GlobalNetworkSet",
            "metadata": {"name": text, "labels": {"a": text, text.clone(): "b"}}, "spec": {"nets": []},
        });
        let yaml = serde_saphyr::to_string(&written).unwrap();
        assert_eq!(one(&yaml), written, "{yaml}");
    }
}

#[test]
fn aliases_repeat_a_bounded_amount() {
    let list = |level: u32| {
        let inner = level - 1;
        format!("a{level}: &a{level} [*a{inner}, *a{inner}, *a{inner}, *a{inner}]")
    };
    let lists = |levels: u32| -> String {
        let lists: Vec<String> = (1..levels).map(list).collect();
        format!("a0: &a0 [x]\n{}\n", lists.join("\n"))
    };
    assert!(parse(&lists(6)).is_ok());
    for levels in [9, 30] {
        let error = parse(&lists(levels)).unwrap_err();
        assert!(matches!(error, Error::Syntax(_)), "{error}");
    }
}
