//! Rules, and whether a rule of the kernel is the one that was asked for.

use super::expr::{Expr, SetReference, write_all};
use super::number::{expression, list, lookup};
use super::set::InlineSet;
use crate::netlink::{Attribute, Writer, attributes};

/// A rule: what packets it is about, what it does with them, and what a program keeps with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Rule {
    /// Its steps. The first that a packet does not pass ends the rule for that packet.
    pub exprs: Vec<Expr>,
    /// Up to 256 bytes that the kernel keeps as they are, in the form of `nft`: type, length and value, one after the
    /// other.
    pub userdata: Vec<u8>,
}

impl Rule {
    /// A rule with no userdata.
    pub fn new(exprs: impl IntoIterator<Item = Expr>) -> Self {
        Self {
            exprs: exprs.into_iter().collect(),
            userdata: Vec::new(),
        }
    }

    /// The rule with a comment, which `nft list` shows; cut at the 127 bytes that `nft` takes.
    #[must_use]
    pub fn with_comment(mut self, comment: &str) -> Self {
        const COMMENT: u8 = 0;
        const LONGEST: usize = 127;
        let comment = &comment[..comment.floor_char_boundary(LONGEST)];
        let length = u8::try_from(comment.len() + 1).unwrap_or(u8::MAX);
        self.userdata.extend_from_slice(&[COMMENT, length]);
        self.userdata.extend_from_slice(comment.as_bytes());
        self.userdata.push(0);
        self
    }

    /// The expressions as the kernel dumps them, for [`same_rule`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        write_all(&self.exprs, None, &mut out);
        out.into_bytes()
    }

    /// The sets that belong to it alone, in order.
    pub(super) fn inline_sets(&self) -> impl Iterator<Item = &InlineSet> {
        self.exprs.iter().filter_map(|expr| match expr {
            Expr::Lookup {
                set: SetReference::Inline(set),
                ..
            }
            | Expr::VerdictMap {
                map: SetReference::Inline(set),
                ..
            } => Some(&**set),
            _ => None,
        })
    }
}

/// Whether the expressions that the kernel has are those that were encoded.
///
/// What counters have counted does not matter. Of an inline set only its presence is compared, since a dump of rules
/// does not tell its elements: who changes these has to change the rule's userdata too.
pub fn same_rule(encoded: &[u8], in_kernel: &[u8]) -> bool {
    if encoded == in_kernel {
        return true;
    }
    // A numbered name may be longer than the one that asks for a number, so lengths are not compared.
    let mut wanted = attributes(encoded);
    let mut found = attributes(in_kernel);
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if same_expression(&wanted, &found) => {}
            _ => return false,
        }
    }
}

fn same_expression(wanted: &Attribute<'_>, found: &Attribute<'_>) -> bool {
    if wanted.value == found.value {
        return true;
    }
    let (name, wanted_data) = parts(wanted);
    let (found_name, found_data) = parts(found);
    if wanted.kind != list::ELEMENT || name != found_name {
        return false;
    }
    match name {
        "counter" => true,
        "lookup" => same_lookup(wanted_data, found_data),
        _ => false,
    }
}

fn parts<'a>(expr: &Attribute<'a>) -> (&'a str, &'a [u8]) {
    let mut name = "";
    let mut data: &[u8] = &[];
    for attribute in expr.nested() {
        match attribute.kind {
            expression::NAME => name = attribute.text(),
            expression::DATA => data = attribute.value,
            _ => {}
        }
    }
    (name, data)
}

fn same_lookup(wanted: &[u8], found: &[u8]) -> bool {
    let same_set = |wanted: &str, found: &str| match wanted.strip_suffix("%d") {
        Some(stem) => found
            .strip_prefix(stem)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())),
        None => wanted == found,
    };
    attributes(wanted).count() == attributes(found).count()
        && attributes(wanted).zip(attributes(found)).all(|(w, f)| {
            w.kind == f.kind
                && (w.value == f.value || (w.kind == lookup::SET && same_set(w.text(), f.text())))
        })
}

#[cfg(test)]
mod tests {
    use super::{Rule, same_rule};
    use crate::netlink::Writer;
    use crate::nft::{Element, Expr, Field, InlineSet, Register, SetReference, Value, Verdict};

    fn lookup(set: SetReference, inverted: bool) -> Expr {
        Expr::Lookup {
            set,
            from: Register::FIRST,
            inverted,
        }
    }

    fn inline(marks: &[u32]) -> SetReference {
        let elements = marks.iter().map(|m| Element::single(Value::host32(*m)));
        SetReference::Inline(InlineSet::new([Field::Mark], elements))
    }

    fn named(name: &str) -> SetReference {
        SetReference::Named(name.into())
    }

    fn encode(exprs: &[Expr]) -> Vec<u8> {
        Rule::new(exprs.iter().cloned()).encode()
    }

    #[test]
    fn inline_sets_match_any_number_and_nothing_else() {
        let wanted = encode(&[lookup(inline(&[1]), false)]);
        let check = |found: Expr, same| assert_eq!(same_rule(&wanted, &encode(&[found])), same);
        check(lookup(named("__set0"), false), true);
        check(lookup(named("__set12345"), false), true);
        check(lookup(named("__set12345"), true), false);
        check(lookup(named("__set"), false), false);
        check(lookup(named("__setx"), false), false);
        check(lookup(named("__map0"), false), false);
        check(lookup(named("set0"), false), false);
        let found = encode(&[lookup(named("__set0"), false)]);
        assert!(!same_rule(
            &encode(&[lookup(named("__set1"), false)]),
            &found
        ));
    }

    #[test]
    fn more_fewer_or_other_expressions_are_another_rule() {
        let accept = Expr::Verdict(Verdict::Accept);
        let wanted = encode(&[Expr::Counter, accept.clone()]);
        for other in [
            vec![],
            vec![Expr::Counter],
            vec![accept.clone()],
            vec![accept.clone(), Expr::Counter],
            vec![Expr::Counter, Expr::Verdict(Verdict::Drop)],
            vec![Expr::Counter, accept.clone(), accept],
        ] {
            let other = encode(&other);
            assert!(!same_rule(&wanted, &other));
            assert!(!same_rule(&other, &wanted));
        }
        assert!(same_rule(&wanted, &wanted));
    }

    #[test]
    fn any_damage_is_another_rule_without_panic() {
        let wanted = encode(&[lookup(inline(&[1]), false), Expr::NoTrack]);
        for at in 0..wanted.len() {
            assert!(!same_rule(&wanted, &wanted[..at]));
            for value in [0, 1, 4, 0xff] {
                let mut damaged = wanted.clone();
                damaged[at] = value;
                let _ = same_rule(&wanted, &damaged);
            }
        }
        let mut other_kind = Writer::default();
        other_kind.string(2, "counter");
        assert!(!same_rule(&wanted, other_kind.as_bytes()));
    }
}
