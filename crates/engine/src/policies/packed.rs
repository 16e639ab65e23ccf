//! Rules in packed form. Most policies of a cluster apply to no endpoint of this node; they are kept, in little space,
//! for the time when they do.
//!
//! Texts that occur again within one policy are stored once.

mod unpacker;
mod writer;

use crate::bytes::{Reader, length, put_number};
use crate::input::Rule;
use unpacker::Unpacker;
use writer::Writer;

// Which conditions of a rule follow.
const IP_VERSION: u32 = 1 << 2;
const PROTOCOL: u32 = 1 << 3;
const NOT_PROTOCOL: u32 = 1 << 4;
const ICMP: u32 = 1 << 5;
const NOT_ICMP: u32 = 1 << 6;
const SOURCE: u32 = 1 << 7;
const DESTINATION: u32 = 1 << 8;
const HTTP: u32 = 1 << 9;
const METADATA: u32 = 1 << 10;

// Which conditions on one side follow.
const SELECTOR: u32 = 1;
const NETS: u32 = 1 << 1;
const PORTS: u32 = 1 << 2;
const NOT_SELECTOR: u32 = 1 << 3;
const NOT_NETS: u32 = 1 << 4;
const NOT_PORTS: u32 = 1 << 5;
const SERVICE: u32 = 1 << 6;
const ORIGINAL_SELECTOR: u32 = 1 << 7;
const ORIGINAL_NAMESPACE_SELECTOR: u32 = 1 << 8;
const ORIGINAL_NOT_SELECTOR: u32 = 1 << 9;
const ORIGINAL_SERVICE_ACCOUNTS: u32 = 1 << 10;

/// Packs a selector and rules for both directions.
pub(crate) fn pack(selector: &str, inbound: &[Rule], outbound: &[Rule]) -> Box<[u8]> {
    let mut writer = Writer {
        out: Vec::with_capacity(128),
        texts: Vec::new(),
    };
    writer.text(selector);
    for rules in [inbound, outbound] {
        put_number(&mut writer.out, length(rules.len()));
        for rule in rules {
            writer.rule(rule);
        }
    }
    writer.out.into_boxed_slice()
}

/// Gives back what [`pack`] packed: selector, inbound rules, outbound rules.
pub(crate) fn unpack(packed: &[u8]) -> (&str, Vec<Rule>, Vec<Rule>) {
    let mut unpacker = Unpacker {
        reader: Reader::new(packed),
        texts: Vec::new(),
    };
    let selector = unpacker.text();
    let mut rules = || {
        let count = unpacker.reader.number();
        (0..count).map(|_| unpacker.rule()).collect()
    };
    let inbound = rules();
    (selector, inbound, rules())
}

#[cfg(test)]
mod tests;
