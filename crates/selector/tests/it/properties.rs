//! What holds for every selector, checked on random ones against a naive model.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use tortie_selector::{Comparison, Selector, normalise};

/// The model: a tree as plain data, evaluated by the definition of the language.
#[derive(Clone, Debug)]
enum Model {
    All,
    Global,
    Has(String),
    Compare(Comparison, String, String),
    Member {
        label: String,
        values: Vec<String>,
        negated: bool,
    },
    Not(Box<Model>),
    And(Vec<Model>),
    Or(Vec<Model>),
}

type LabelMap = BTreeMap<String, String>;

// === impl Model ===

impl Model {
    fn evaluate(&self, labels: &LabelMap) -> bool {
        match self {
            Self::All | Self::Global => true,
            Self::Has(label) => labels.contains_key(label),
            Self::Compare(comparison, label, expected) => match (comparison, labels.get(label)) {
                (Comparison::NotEqual, None) => true,
                (_, None) => false,
                (Comparison::Equal, Some(value)) => value == expected,
                (Comparison::NotEqual, Some(value)) => value != expected,
                (Comparison::Contains, Some(value)) => value.contains(expected),
                (Comparison::StartsWith, Some(value)) => value.starts_with(expected),
                (Comparison::EndsWith, Some(value)) => value.ends_with(expected),
            },
            Self::Member {
                label,
                values,
                negated,
            } => {
                labels
                    .get(label)
                    .is_some_and(|value| values.contains(value))
                    != *negated
            }
            Self::Not(operand) => !operand.evaluate(labels),
            Self::And(operands) => operands.iter().all(|operand| operand.evaluate(labels)),
            Self::Or(operands) => operands.iter().any(|operand| operand.evaluate(labels)),
        }
    }

    /// The model as text, with parentheses around every operand to make its structure explicit.
    fn text(&self, gap: &str) -> String {
        match self {
            Self::All => "all()".to_owned(),
            Self::Global => "global()".to_owned(),
            Self::Has(label) => format!("has({gap}{label}{gap})"),
            Self::Compare(comparison, label, value) => {
                format!("{label} {comparison}{gap}{}", quoted(value))
            }
            Self::Member {
                label,
                values,
                negated,
            } => {
                let operator = if *negated { "not in" } else { "in" };
                let values: Vec<_> = values.iter().map(|value| quoted(value)).collect();
                format!(
                    "{label} {operator}{gap}{{{}}}",
                    values.join(&format!("{gap},"))
                )
            }
            Self::Not(operand) => format!("!({})", operand.text(gap)),
            Self::And(operands) => Self::chain(operands, "&&", gap),
            Self::Or(operands) => Self::chain(operands, "||", gap),
        }
    }

    fn chain(operands: &[Self], operator: &str, gap: &str) -> String {
        let operands: Vec<_> = operands
            .iter()
            .map(|operand| format!("({})", operand.text(gap)))
            .collect();
        operands.join(&format!("{gap}{operator}{gap}"))
    }
}

fn quoted(value: &str) -> String {
    let quote = if value.contains('\'') { '"' } else { '\'' };
    format!("{quote}{value}{quote}")
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["a", "b", "c"]).prop_map(str::to_owned),
        1 => select(vec!["in", "not", "has", "all", "contains", "starts"]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9_./-]{1,8}",
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["", "x", "y", "xy"]).prop_map(str::to_owned),
        1 => "[^'\"]{0,6}",
        1 => "[^']{0,6}",
        1 => "[^\"]{0,6}",
    ]
}

fn labels() -> impl Strategy<Value = LabelMap> {
    btree_map(label(), value(), 0..4)
}

fn comparison() -> impl Strategy<Value = Comparison> {
    select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Contains,
        Comparison::StartsWith,
        Comparison::EndsWith,
    ])
}

fn model() -> impl Strategy<Value = Model> {
    let term = prop_oneof![
        1 => Just(Model::All),
        1 => Just(Model::Global),
        3 => label().prop_map(Model::Has),
        6 => (comparison(), label(), value()).prop_map(|(c, l, v)| Model::Compare(c, l, v)),
        4 => (label(), vec(value(), 0..4), any::<bool>())
            .prop_map(|(label, values, negated)| Model::Member { label, values, negated }),
    ];
    term.prop_recursive(5, 40, 4, |operand| {
        prop_oneof![
            operand
                .clone()
                .prop_map(|operand| Model::Not(Box::new(operand))),
            vec(operand.clone(), 2..4).prop_map(Model::And),
            vec(operand, 2..4).prop_map(Model::Or),
        ]
    })
}

fn parse(model: &Model, gap: &str) -> Selector {
    let text = model.text(gap);
    Selector::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What the canonical text parses to.
fn reread(selector: &Selector) -> Selector {
    Selector::parse(selector.as_str()).unwrap_or_else(|error| panic!("{selector}: {error}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evaluation_agrees_with_the_model(model in model(), labels in labels()) {
        prop_assert_eq!(parse(&model, " ").matches(&labels), model.evaluate(&labels));
    }

    #[test]
    fn white_space_makes_no_difference(model in model(), gap in "[ \t]{0,3}") {
        prop_assert_eq!(parse(&model, " "), parse(&model, &gap));
    }

    #[test]
    fn canonical_text_parses_to_the_same_selector(model in model(), labels in labels()) {
        let selector = parse(&model, " ");
        let again = reread(&selector);
        if !selector.as_str().contains("!!") {
            prop_assert_eq!(&again, &selector);
        }
        prop_assert_eq!(again.matches(&labels), selector.matches(&labels));
        prop_assert_eq!(&reread(&again), &again);
        prop_assert_eq!(normalise(again.as_str()), again.as_str());
    }

    #[test]
    fn whatever_matches_satisfies_the_restrictions(model in model(), labels in labels()) {
        let selector = parse(&model, " ");
        let restrictions = selector.label_restrictions();
        if selector.matches(&labels) {
            prop_assert!(restrictions.allow(&labels), "{selector}: {restrictions:?}");
        }
    }

    #[test]
    fn the_failing_term_is_false(model in model(), labels in labels()) {
        let selector = parse(&model, " ");
        match selector.first_failing_term(&labels) {
            None => prop_assert!(selector.matches(&labels)),
            Some(failing) => {
                prop_assert!(!selector.matches(&labels));
                prop_assert!(!failing.expr().matches(&labels), "{failing}");
                prop_assert!(selector.as_str().contains(failing.expr().as_str()));
            }
        }
    }

    #[test]
    fn prefixed_labels_match_prefixed_selectors(model in model(), labels in labels()) {
        let selector = parse(&model, " ");
        let prefixed = selector.prefix_labels("pcns.");
        let prefixed_labels: LabelMap =
            labels.iter().map(|(name, value)| (format!("pcns.{name}"), value.clone())).collect();
        prop_assert_eq!(prefixed.matches(&prefixed_labels), selector.matches(&labels));
        prop_assert!(prefixed.label_names().all(|name| name.starts_with("pcns.")));
        if !prefixed.as_str().contains("!!") {
            prop_assert_eq!(&reread(&prefixed), &prefixed);
        }
    }

    #[test]
    fn any_text_parses_or_says_where_it_fails(text in any::<String>()) {
        check_total(&text);
    }

    #[test]
    fn any_tokens_parse_or_say_where_they_fail(
        tokens in vec(
            select(vec![
                "a", "b ", " ", "\t", "has(", "all()", "global()", "(", ")", "!", "==", "!=", "in",
                "not", "{", "}", ",", "'x'", "\"y\"", "'", "&&", "||", "&", "contains", "starts",
                "with", "日", "\n",
            ]),
            0..12,
        )
    ) {
        check_total(&tokens.concat());
    }
}

fn check_total(text: &str) {
    match Selector::parse(text) {
        Ok(selector) => {
            reread(&selector);
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.offset()), "{error:?}");
            assert_eq!(
                text[..error.offset()].chars().count() + 1,
                error.column(),
                "{error:?}"
            );
            assert_eq!(error.caret(text).lines().count(), 2, "{error:?}");
        }
    }
}
