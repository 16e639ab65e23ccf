//! The language, rule by rule.

use std::collections::{BTreeSet, HashSet};

use super::*;
use crate::{Found, MAX_DEPTH, MAX_LENGTH, ParseErrorKind};

/// Checks the canonical text, and that it parses to the same selector.
#[track_caller]
fn check(text: &str, canonical: &str) {
    let selector = Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(selector.as_str(), canonical, "{text}");
    assert_eq!(Selector::parse(canonical).as_ref(), Ok(&selector), "{text}");
}

#[track_caller]
fn check_matches(text: &str, labels: &[(&str, &str)], expected: bool) {
    let selector = Selector::parse(text).unwrap();
    assert_eq!(selector.matches(labels), expected, "{text} on {labels:?}");
}

#[track_caller]
fn check_error(text: &str, column: usize, kind: ParseErrorKind) -> ParseError {
    let error = Selector::parse(text).expect_err(text);
    assert_eq!(
        (error.column(), error.kind()),
        (column, kind),
        "{text}: {error}"
    );
    error
}

#[track_caller]
fn check_message(text: &str, expected: &str) {
    assert_eq!(
        Selector::parse(text).expect_err(text).to_string(),
        expected,
        "{text}"
    );
}

#[track_caller]
fn check_id(text: &str, expected: &str) {
    assert_eq!(
        Selector::parse(text).unwrap().unique_id(),
        expected,
        "{text}"
    );
}

#[test]
fn empty_text_selects_everything() {
    check("", "all()");
    check(" \t ", "all()");
    assert!(Selector::default().is_all());
}

#[test]
fn every_term_has_one_spelling() {
    check("has(a)", "has(a)");
    check("has( a\t)", "has(a)");
    check("all( )", "all()");
    check("global(\t)", "global()");
    check("a=='b'", r#"a == "b""#);
    check("a!='b'", r#"a != "b""#);
    check("a contains'b'", r#"a contains "b""#);
    check("a startswith 'b'", r#"a starts with "b""#);
    check("a starts \t with'b'", r#"a starts with "b""#);
    check("a ends with 'b'", r#"a ends with "b""#);
    check("a in{'b'}", r#"a in {"b"}"#);
    check("a notin {'b'}", r#"a not in {"b"}"#);
    check("a not\tin {'b'}", r#"a not in {"b"}"#);
}

#[test]
fn sets_are_sorted_bytewise_without_repeats() {
    check(
        "a in {'b', 'B', 'ab', 'b', 'é', ''}",
        r#"a in {"", "B", "ab", "b", "é"}"#,
    );
    check("a in {}", "a in {}");
    check("a in {'x',}", r#"a in {"x"}"#);
    check(
        "a in {'x'} && b in {'z','y'}",
        r#"(a in {"x"} && b in {"y", "z"})"#,
    );
}

#[test]
fn strings_are_in_double_quotes_unless_they_contain_one() {
    check(r#"a == 'say "hi"'"#, r#"a == 'say "hi"'"#);
    check(r#"a == "it's""#, r#"a == "it's""#);
    check(r"a == 'back\slash'", r#"a == "back\slash""#);
    check("a == 'line\nbreak'", "a == \"line\nbreak\"");
}

#[test]
fn words_of_the_language_are_labels_where_a_label_is_expected() {
    check("in in {'in'}", r#"in in {"in"}"#);
    check("not not in {}", "not not in {}");
    check("has == 'x' && all != 'y'", r#"(has == "x" && all != "y")"#);
    check("contains contains 'x'", r#"contains contains "x""#);
    check("has(has)", "has(has)");
    check("-/._9 == ''", r#"-/._9 == """#);
}

#[test]
fn conjunction_binds_tighter_than_alternative() {
    check(
        "has(a) && has(b) || has(c)",
        "((has(a) && has(b)) || has(c))",
    );
    check(
        "has(a) || has(b) && has(c)",
        "(has(a) || (has(b) && has(c)))",
    );
    check(
        "(has(a) || has(b)) && has(c)",
        "((has(a) || has(b)) && has(c))",
    );
}

#[test]
fn chains_are_flat_and_groups_stay() {
    check("has(a) && has(b) && has(c)", "(has(a) && has(b) && has(c))");
    check(
        "(has(a) && has(b)) && has(c)",
        "((has(a) && has(b)) && has(c))",
    );
    check("((has(a)) || ((has(b))))", "(has(a) || has(b))");
}

#[test]
fn adjacent_negations_cancel_out() {
    check("!!has(a)", "has(a)");
    check("! ! !has(a)", "!has(a)");
    check("!a == 'b'", r#"!a == "b""#);
    check("!(has(a) && has(b))", "!(has(a) && has(b))");
}

#[test]
fn negations_on_both_sides_of_a_parenthesis_are_kept() {
    let selector = Selector::parse("!(!has(a))").unwrap();
    assert_eq!(selector.as_str(), "!!has(a)");
    assert_ne!(Selector::parse("!!has(a)").unwrap(), selector);
}

#[test]
fn an_absent_label_satisfies_only_the_negative_operators() {
    for negative in ["a != 'x'", "a not in {'x'}", "a not in {}", "!has(a)"] {
        check_matches(negative, &[("b", "x")], true);
    }
    for positive in [
        "a == ''",
        "a in {''}",
        "a contains ''",
        "a starts with ''",
        "a ends with ''",
        "has(a)",
    ] {
        check_matches(positive, &[("b", "x")], false);
        check_matches(positive, &[("a", "")], true);
    }
}

#[test]
fn operators_compare_the_value() {
    let labels = &[("a", "web-front")];
    check_matches("a == 'web-front'", labels, true);
    check_matches("a == 'web'", labels, false);
    check_matches("a != 'web'", labels, true);
    check_matches("a contains 'b-f'", labels, true);
    check_matches("a starts with 'web'", labels, true);
    check_matches("a starts with 'front'", labels, false);
    check_matches("a ends with 'front'", labels, true);
    check_matches("a in {'web', 'web-front'}", labels, true);
    check_matches("a not in {'web', 'web-front'}", labels, false);
    check_matches("a in {}", labels, false);
    check_matches("all() && global()", labels, true);
    check_matches("!(has(b) || a == 'x') && has(a)", labels, true);
}

#[test]
fn identifiers_are_those_of_calico() {
    for all in ["all()", "", " (all() )"] {
        check_id(all, "s:5y5I3VdRZfDU01O--xXAPx2yxCQQqMf0M6IWug");
    }
    check_id("has(a)", "s:JpRGrxZ4kdS6g7WoF-uG_g7qlh2ipw2zGYBMpQ");
    check_id("a == 'b'", "s:flMh0m0X_BowkAK_W3j3MgH8oQOsj3WxGDoXCQ");
    check_id(
        "a == 'b' && has(c)",
        "s:a7YG9G3XyFzmdwcUzkbtw0ffcKn8o5bm1xsGyQ",
    );
    check_id(
        "a in {'y', 'x'}",
        "s:gSrnDEFVR3CxDEQZzJb9ixSZpe7eM3tOO6L77Q",
    );
    check_id(
        "! (has( b)||! has(a ))",
        "s:Iss0uCleLYv1GSv_pNm7hAO58kE9jAx1NKyG3Q",
    );
}

#[test]
fn errors_point_at_the_place() {
    use ParseErrorKind::*;
    check_error("a == b", 6, ExpectedString);
    check_error("a ==", 5, ExpectedString);
    check_error("a = 'b'", 3, ExpectedOperator);
    check_error("a b", 3, ExpectedOperator);
    check_error("a inx {}", 3, ExpectedOperator);
    check_error("has (a)", 5, ExpectedOperator);
    check_error("has()", 5, ExpectedLabel);
    check_error("has(a b)", 7, ExpectedFunctionEnd { function: "has" });
    check_error("all(a)", 5, ExpectedFunctionEnd { function: "all" });
    check_error("global(", 8, ExpectedFunctionEnd { function: "global" });
    check_error("a == 'b", 6, UnterminatedString { quote: '\'' });
    check_error("a in 'b'", 6, ExpectedSet);
    check_error("a in {,}", 7, ExpectedMember);
    check_error("a in {'b' 'c'}", 11, ExpectedSetEnd);
    check_error("(has(a)", 8, ExpectedGroupEnd);
    check_error("has(a))", 7, ExpectedEnd);
    check_error("has(a) & has(b)", 8, ExpectedEnd);
    check_error("has(a) &&", 10, ExpectedTerm);
    check_error("()", 2, ExpectedTerm);
    check_error("!=a", 2, ExpectedTerm);
    check_error("ü == 'a'", 1, ExpectedTerm);
    let error = check_error("a == 'é' && b == c", 18, ExpectedString);
    assert_eq!(error.offset(), 18, "two bytes for é");
    assert_eq!(error.found(), Some(&Found::Text("c".into())));
}

#[test]
fn messages_say_what_was_found() {
    check_message(
        "has(a) has(b)",
        "invalid selector at column 8: expected `&&`, `||` or the end, found `has`",
    );
    check_message(
        "a in {'b'",
        "invalid selector at column 10: expected `,` or `}`, found the end",
    );
    check_message(
        "has(a)\n",
        "invalid selector at column 7: expected `&&`, `||` or the end, found `\\n`: \
         only spaces and tabs may separate words",
    );
    check_message(
        "a == \"b'",
        "invalid selector at column 6: the string has no closing \"",
    );
    check_message(
        "has(a) && 'x' == 'y'",
        "invalid selector at column 11: expected a label, `has(…)`, `all()`, `global()`, `!` or \
         `(`, found `'x'`",
    );
}

#[test]
fn label_names_have_a_limit() {
    let longest = "a".repeat(512);
    check(&format!("has({longest})"), &format!("has({longest})"));
    check_error(
        &format!("has(a) && {longest}a == 'x'"),
        11,
        ParseErrorKind::LabelTooLong { length: 513 },
    );
}

#[test]
fn long_chains_are_not_deep() {
    let chain = vec!["!has(a)"; 20_000].join(" || ");
    let selector = Selector::parse(&chain).unwrap();
    assert!(!selector.matches(&[("a", "")]));
    assert_eq!(selector.as_str(), format!("({chain})"));
}

#[test]
fn nesting_has_a_limit_that_canonical_text_meets_too() {
    let nested =
        |depth: usize| format!("{}has(a){}", "(has(b) || ".repeat(depth), ")".repeat(depth));
    check(&nested(MAX_DEPTH), &nested(MAX_DEPTH));
    // Written without the outer parentheses, this has a level more than it shows.
    let hidden = format!("has(c) && {}", nested(MAX_DEPTH));
    check_error(&hidden, hidden.len() + 1, ParseErrorKind::TooDeep);

    let redundant = |depth: usize| format!("{}has(a){}", "(".repeat(depth), ")".repeat(depth));
    check(&redundant(MAX_DEPTH), "has(a)");
    check_error(
        &redundant(MAX_DEPTH + 1),
        MAX_DEPTH + 1,
        ParseErrorKind::TooDeep,
    );
    let many_negations = format!("{}has(a)", "!".repeat(100_000));
    check(&many_negations, "has(a)");
}

#[test]
fn length_has_a_limit_that_canonical_text_meets_too() {
    let spaces = " ".repeat(MAX_LENGTH - "has(a)".len());
    check(&format!("{spaces}has(a)"), "has(a)");
    check_error(
        &format!("{spaces} has(a)"),
        MAX_LENGTH + 1,
        ParseErrorKind::TooLong,
    );
    let tight = vec!["a==''"; MAX_LENGTH / 7].join("||");
    check_error(&tight, tight.len() + 1, ParseErrorKind::TooLong);
}

#[test]
fn comparing_ignores_spelling_but_not_the_order_of_operands() {
    let parse = |text| Selector::parse(text).unwrap();
    assert_eq!(parse("a in {'x','y'}"), parse("a in { \"y\", 'x' }"));
    assert_ne!(parse("has(a) && has(b)"), parse("has(b) && has(a)"));
    let all = ["has(b)", "has( b )", "has(a)", "(has(a))"].map(parse);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 2);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 2);
}

#[test]
fn normalising_trims_any_white_space_and_keeps_what_does_not_parse() {
    assert_eq!(normalise("\n has(a)\u{a0}"), "has(a)");
    assert_eq!(normalise("  a ==  b \n"), "a ==  b");
    assert_eq!(normalise(""), "all()");
}

#[test]
fn a_prefix_goes_before_every_label() {
    let selector =
        Selector::parse("a == 'a' && !has(b) && (c in {'x', 'y'} || all() || global())").unwrap();
    let prefixed = selector.prefix_labels("pcns.");
    let expected =
        r#"(pcns.a == "a" && !has(pcns.b) && (pcns.c in {"x", "y"} || all() || global()))"#;
    assert_eq!(prefixed.as_str(), expected);
    assert_eq!(prefixed, Selector::parse(expected).unwrap());
    assert!(prefixed.matches(&[("pcns.a", "a"), ("pcns.c", "z")]));
    assert_eq!(
        prefixed.label_names().collect::<Vec<_>>(),
        ["pcns.a", "pcns.b", "pcns.c"]
    );
}

#[test]
fn all_and_global_are_recognised() {
    let parse = |text| Selector::parse(text).unwrap();
    assert!(parse("((all()))").is_all() && !parse("all() && all()").is_all());
    assert!(parse("global()").is_global() && !parse("!global()").is_global());
    assert!(parse("has(a) || !(has(b) && global())").contains_global());
    assert!(!parse("has(global) && a == 'global()'").contains_global());
}

#[test]
fn the_tree_can_be_walked() {
    fn describe(expr: Expr<'_>) -> String {
        match expr.node() {
            Node::Not(operand) => format!("not {}", describe(operand)),
            Node::And(operands) => {
                format!("[{}]", operands.map(describe).collect::<Vec<_>>().join(" "))
            }
            Node::In { label, values } => {
                format!("{label}:{:?}", values.iter().collect::<Vec<_>>())
            }
            Node::Compare {
                comparison,
                label,
                value,
            } => format!("{label} {comparison} {value}"),
            other => format!("{other:?}"),
        }
    }
    let selector = Selector::parse("!(a in {'y','x'} && b ends with 'z') && has(c)").unwrap();
    assert_eq!(
        describe(selector.root()),
        r#"[not [a:["x", "y"] b ends with z] Has { label: "c" }]"#
    );
}
