//! Calico's own answers: the selector and identifier cases of the vectors.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tortie_selector::{Selector, ids, normalise};

#[derive(Deserialize)]
struct SelectorCase {
    selector: String,
    valid: bool,
    canonical: Option<String>,
    uid: Option<String>,
    normalised: Option<String>,
    #[serde(default)]
    evaluations: Vec<Evaluation>,
}

#[derive(Deserialize)]
struct Evaluation {
    labels: BTreeMap<String, String>,
    matches: bool,
}

#[derive(Deserialize)]
struct NameCase {
    what: String,
    input: serde_json::Value,
    #[serde(default)]
    output: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LengthLimitedId {
    prefix: String,
    suffix: String,
    max_length: usize,
}

#[derive(Deserialize)]
struct UniqueId {
    prefix: String,
    content: String,
}

#[test]
fn selectors_parse_print_and_match_as_in_calico() {
    let cases = read::<SelectorCase>("selectors.json");
    report(cases.iter().map(check_selector));
}

#[test]
fn identifiers_are_shortened_and_hashed_as_in_calico() {
    let cases = read::<NameCase>("names.json");
    report(cases.iter().filter_map(|case| match case.what.as_str() {
        "lengthLimitedID" => Some(check_name(case, |input: LengthLimitedId| {
            ids::length_limited_id(&input.prefix, &input.suffix, input.max_length)
        })),
        "makeUniqueID" => Some(check_name(case, |input: UniqueId| {
            ids::make_unique_id(&input.prefix, &input.content)
        })),
        _ => None,
    }));
}

/// Everything about a case that is not as it should be.
fn check_selector(case: &SelectorCase) -> Vec<String> {
    let mut problems = Vec::new();
    let mut compare = |what: &str, actual: &str, expected: Option<&String>| {
        if let Some(expected) = expected
            && actual != expected
        {
            problems.push(format!(
                "{:?}: {what}: {actual:?}, not {expected:?}",
                case.selector
            ));
        }
    };
    compare(
        "normalised",
        &normalise(&case.selector),
        case.normalised.as_ref(),
    );
    let selector = match Selector::parse(&case.selector) {
        Ok(selector) => selector,
        Err(error) => {
            if case.valid {
                problems.push(format!("{:?}: {error}", case.selector));
            }
            return problems;
        }
    };
    compare("canonical", selector.as_str(), case.canonical.as_ref());
    compare("uid", &selector.unique_id(), case.uid.as_ref());
    if !case.valid {
        problems.push(format!("{:?}: should not parse", case.selector));
    }
    for Evaluation { labels, matches } in &case.evaluations {
        if selector.matches(labels) != *matches {
            problems.push(format!(
                "{:?} on {labels:?}: should be {matches}",
                case.selector
            ));
        }
        if *matches && !selector.label_restrictions().allow(labels) {
            problems.push(format!(
                "{:?}: restrictions exclude {labels:?}",
                case.selector
            ));
        }
    }
    problems
}

fn check_name<T: DeserializeOwned>(case: &NameCase, make: impl Fn(T) -> String) -> Vec<String> {
    let actual = match serde_json::from_value(case.input.clone()) {
        Ok(input) => make(input),
        Err(error) => return vec![format!("{} {}: {error}", case.what, case.input)],
    };
    if case.output.as_str() == Some(actual.as_str()) {
        Vec::new()
    } else {
        vec![format!(
            "{} {}: {actual:?}, not {}",
            case.what, case.input, case.output
        )]
    }
}

fn read<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let cases = tortie_testkit::vectors(file);
    serde_json::from_value(cases.into()).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Fails with all problems of all cases, or if there was no case.
#[track_caller]
fn report(cases: impl Iterator<Item = Vec<String>>) {
    let problems: Vec<Vec<String>> = cases.collect();
    let failed = problems
        .iter()
        .filter(|problems| !problems.is_empty())
        .count();
    assert!(!problems.is_empty(), "the file has no cases");
    assert!(
        failed == 0,
        "{failed} of {} cases fail:\n{}",
        problems.len(),
        problems.concat().join("\n")
    );
}
