//! What `nft` lists, without what does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::render::support::run;

/// The rules of each chain in order, and everything else in no order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) rules: BTreeMap<String, Vec<String>>,
    pub(crate) others: BTreeSet<String>,
}

impl Listing {
    /// Of the namespace of this thread.
    pub(crate) fn read() -> Self {
        let text = run("nft", &["-j", "list", "ruleset"], "");
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut listing = Self {
            rules: BTreeMap::new(),
            others: BTreeSet::new(),
        };
        for object in value["nftables"].as_array().unwrap() {
            let (kind, content) = object.as_object().unwrap().iter().next().unwrap();
            let mut content = content.clone();
            content.as_object_mut().unwrap().remove("handle");
            match kind.as_str() {
                "metainfo" => {}
                "rule" => {
                    // A rule that does nothing: the driver has no expression for that, and `nft` has one.
                    if content["expr"] == json!([{"continue": null}]) {
                        content.as_object_mut().unwrap().remove("expr");
                    }
                    let exprs = content.get_mut("expr").and_then(Value::as_array_mut);
                    for expr in exprs.into_iter().flatten() {
                        join_ranges(expr);
                        // Two ways to write that a bit is not set.
                        if *expr
                            == json!({"match": {"op": "!", "left": {"ct": {"key": "status"}}, "right": "dnat"}})
                        {
                            let bit = json!({"&": [{"ct": {"key": "status"}}, "dnat"]});
                            *expr = json!({"match": {"op": "!=", "left": bit, "right": "dnat"}});
                        }
                    }
                    let text = |field: &str| content[field].as_str().unwrap().to_owned();
                    let chain = format!("{} {}", text("family"), text("chain"));
                    let rule = content.to_string();
                    listing.rules.entry(chain).or_default().push(rule);
                }
                kind => {
                    if let Some(elements) = content.get_mut("elem").and_then(Value::as_array_mut) {
                        elements.sort_by_key(ToString::to_string);
                    }
                    listing.others.insert(format!("{kind} {content}"));
                }
            }
        }
        listing
    }

    /// Fails with the first difference.
    #[track_caller]
    pub(crate) fn assert_is(&self, other: &Self, context: &str) {
        let chains: BTreeSet<&String> = self.rules.keys().chain(other.rules.keys()).collect();
        for chain in chains {
            let (one, two) = (self.rules.get(chain), other.rules.get(chain));
            assert_eq!(one, two, "{context}: {chain}");
        }
        let differences: Vec<_> = self.others.symmetric_difference(&other.others).collect();
        assert!(differences.is_empty(), "{context}: {differences:#?}");
    }
}

/// `nft` makes one range of networks or ports side by side in a list, and the driver leaves them as they are.
fn join_ranges(expr: &mut Value) {
    let Some(list) = expr.pointer_mut("/match/right/set") else {
        return;
    };
    let ranges: Option<BTreeSet<(u128, u128)>> =
        list.as_array().unwrap().iter().map(range).collect();
    let Some(ranges) = ranges else {
        return;
    };
    let mut joined: Vec<(u128, u128)> = Vec::new();
    for (first, last) in ranges {
        match joined.last_mut() {
            Some(before) if before.1 + 1 == first => before.1 = last,
            _ => joined.push((first, last)),
        }
    }
    let texts = joined
        .iter()
        .map(|(first, last)| format!("{first:x}-{last:x}"));
    *list = texts.collect();
}

/// The first and the last of a network, a range, an address or a port.
fn range(value: &Value) -> Option<(u128, u128)> {
    if let Some(prefix) = value.get("prefix") {
        let (address, bits) = number(&prefix["addr"])?;
        let host = bits - u32::try_from(prefix["len"].as_u64()?).ok()?;
        return Some((address, address | ((1 << host) - 1)));
    }
    if let Some(range) = value.get("range") {
        return Some((number(&range[0])?.0, number(&range[1])?.0));
    }
    let (single, _) = number(value)?;
    Some((single, single))
}

/// An address or a port, and how many bits it has.
fn number(value: &Value) -> Option<(u128, u32)> {
    if let Some(port) = value.as_u64() {
        return Some((port.into(), 16));
    }
    match value.as_str()?.parse().ok()? {
        IpAddr::V4(address) => Some((u32::from(address).into(), 32)),
        IpAddr::V6(address) => Some((address.into(), 128)),
    }
}
