//! What can be concluded about labels, rule by rule.

use super::*;
use crate::Selector;

/// `expected` lists `label` (present), `!label` (absent) and `label=v1,v2` (one of the values);
/// `None` stands for a selector that can never match.
#[track_caller]
fn check(selector: &str, expected: Option<&[&str]>) {
    // A conjunction with `all()` changes nothing.
    for selector in [selector.to_owned(), format!("all() && ({selector})")] {
        let parsed = Selector::parse(&selector).unwrap();
        let restrictions = parsed.label_restrictions();
        let actual: Vec<String> = restrictions.iter().map(describe).collect();
        assert_eq!(
            restrictions.can_match(),
            expected.is_some(),
            "{selector}: {actual:?}"
        );
        assert_eq!(actual, expected.unwrap_or_default(), "{selector}");
    }
}

fn describe((label, restriction): (&str, &Restriction<'_>)) -> String {
    match restriction {
        Restriction::Absent => format!("!{label}"),
        Restriction::Present => label.to_owned(),
        Restriction::OneOf(values) => {
            format!(
                "{label}={}",
                values.iter().copied().collect::<Vec<_>>().join(",")
            )
        }
    }
}

#[test]
fn terms_that_need_their_label_restrict_it() {
    check("has(a)", Some(&["a"]));
    check("a contains 'x'", Some(&["a"]));
    check("a starts with 'x'", Some(&["a"]));
    check("a ends with 'x'", Some(&["a"]));
    check("a == 'x'", Some(&["a=x"]));
    check("a in {'y', 'x'}", Some(&["a=x,y"]));
}

#[test]
fn terms_that_an_absent_label_satisfies_restrict_nothing() {
    check("a != 'x'", Some(&[]));
    check("a not in {'x'}", Some(&[]));
    check("all()", Some(&[]));
    check("global()", Some(&[]));
}

#[test]
fn an_empty_set_and_a_negated_all_never_match() {
    check("a in {}", None);
    check("a not in {}", Some(&[]));
    check("!all()", None);
    check("!global()", None);
}

#[test]
fn a_negation_is_pushed_down_to_the_terms() {
    check("!has(a)", Some(&["!a"]));
    check("!(!has(a))", Some(&["a"]));
    check("!(a != 'x')", Some(&["a=x"]));
    check("!(a not in {'x', 'y'})", Some(&["a=x,y"]));
    check("!(a == 'x')", Some(&[]));
    check("!(a in {'x'})", Some(&[]));
    check("!(a contains 'x')", Some(&[]));
    check("!(has(a) || b != 'x')", Some(&["!a", "b=x"]));
    check("!(has(a) && has(b))", Some(&[]));
    check("!(a != 'x' && a != 'y')", Some(&["a=x,y"]));
}

#[test]
fn a_conjunction_restricts_what_any_operand_restricts() {
    check("a == 'x' && b == 'y'", Some(&["a=x", "b=y"]));
    check("a == 'x' && has(a)", Some(&["a=x"]));
    check("has(a) && a == 'x'", Some(&["a=x"]));
    check(
        "a in {'x', 'y', 'z'} && a in {'w', 'x', 'z'}",
        Some(&["a=x,z"]),
    );
    check("!has(a) && !has(a)", Some(&["!a"]));
}

#[test]
fn a_contradiction_never_matches() {
    check("a == 'x' && a == 'y'", None);
    check("has(a) && !has(a)", None);
    check("!has(a) && a == 'x'", None);
}

#[test]
fn an_alternative_restricts_what_all_operands_restrict() {
    check("a == 'x' || a == 'y'", Some(&["a=x,y"]));
    check("a == 'x' || a in {'w', 'y', 'z'}", Some(&["a=w,x,y,z"]));
    check("a == 'x' || has(a)", Some(&["a"]));
    check("has(a) || a == 'x'", Some(&["a"]));
    check("a == 'x' || has(b)", Some(&[]));
    check("a == 'x' || (has(b) && has(a))", Some(&["a"]));
    check("a == 'x' || all()", Some(&[]));
    check("!has(a) || !has(a)", Some(&["!a"]));
    check("!has(a) || a == 'x'", Some(&[]));
}

#[test]
fn operands_that_never_match_do_not_weaken_an_alternative() {
    check("a == 'x' || !all()", Some(&["a=x"]));
    check("(a == 'x' && a == 'y') || has(b)", Some(&["b"]));
    check("!all() || b in {}", None);
}

#[test]
fn allow_asks_for_every_restriction() {
    let selector = Selector::parse("a in {'x', 'y'} && !has(b) && has(c)").unwrap();
    let restrictions = selector.label_restrictions();
    assert!(restrictions.allow(&[("a", "x"), ("c", "")]));
    assert!(!restrictions.allow(&[("a", "z"), ("c", "")]));
    assert!(!restrictions.allow(&[("a", "x"), ("b", ""), ("c", "")]));
    assert!(!restrictions.allow(&[("a", "x")]));
    assert_eq!(restrictions.get("b"), Some(&Restriction::Absent));
    assert_eq!(restrictions.get("d"), None);
}
