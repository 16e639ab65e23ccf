//! How long parsing, evaluating and identifying selectors takes.
//!
//! `cargo bench -p tortie-selector`

use std::collections::{BTreeMap, HashMap};

use divan::{Bencher, black_box};
use tortie_selector::{Labels, Selector};

/// The expression of Calico's own parser benchmark.
const CALICO: &str = r#"! (a == "b"&&! c != "d") || !(a == "b" && !c != "d")"#;

const EQUALITY: &str = "app == 'web'";
const TYPICAL: &str =
    "projectcalico.org/namespace == 'prod' && app == 'web' && tier in {'backend', 'frontend'}";
const COMPLEX: &str = "(app == 'api' || app == 'web') && tier in {'backend', 'frontend'} \
    && !has(quarantine) && region not in {'eu-test', 'us-test'} \
    && version starts with 'v2' && role != 'debug'";

/// How many labels an endpoint has.
const LABEL_COUNTS: [usize; 3] = [6, 15, 50];
/// How many terms or members a long selector has.
const LENGTHS: [usize; 3] = [10, 100, 1000];

fn main() {
    divan::main();
}

#[divan::bench(args = [EQUALITY, TYPICAL, COMPLEX, CALICO], sample_size = 200)]
fn parse(text: &str) -> Selector {
    selector(black_box(text))
}

#[divan::bench(args = LENGTHS)]
fn parse_chain(bencher: Bencher<'_, '_>, terms: usize) {
    let text = chain(terms);
    bencher.bench(|| selector(black_box(&text)));
}

#[divan::bench(args = LENGTHS)]
fn parse_set(bencher: Bencher<'_, '_>, members: usize) {
    let values: Vec<_> = (0..members).rev().map(|i| format!("'value-{i}'")).collect();
    let text = format!("a in {{{}}}", values.join(","));
    bencher.bench(|| selector(black_box(&text)));
}

#[divan::bench(args = [EQUALITY, TYPICAL, COMPLEX], sample_size = 200)]
fn unique_id(bencher: Bencher<'_, '_>, text: &str) {
    let selector = selector(text);
    bencher.bench(|| black_box(&selector).unique_id());
}

#[divan::bench(args = [EQUALITY, TYPICAL, COMPLEX], sample_size = 200)]
fn label_restrictions(bencher: Bencher<'_, '_>, text: &str) {
    let selector = selector(text);
    bencher.bench(|| black_box(&selector).label_restrictions());
}

#[divan::bench(args = LENGTHS)]
fn matches_chain(bencher: Bencher<'_, '_>, terms: usize) {
    evaluate(bencher, &chain(terms), &pairs(15));
}

/// Evaluation against labels in a list of pairs.
#[divan::bench_group]
mod matches_slice {
    use super::{Bencher, COMPLEX, EQUALITY, LABEL_COUNTS, TYPICAL, evaluate, pairs};

    #[divan::bench(args = LABEL_COUNTS)]
    fn equality(bencher: Bencher<'_, '_>, labels: usize) {
        evaluate(bencher, EQUALITY, &pairs(labels));
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn typical(bencher: Bencher<'_, '_>, labels: usize) {
        evaluate(bencher, TYPICAL, &pairs(labels));
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn complex(bencher: Bencher<'_, '_>, labels: usize) {
        evaluate(bencher, COMPLEX, &pairs(labels));
    }
}

/// Evaluation against labels in a `BTreeMap`.
#[divan::bench_group]
mod matches_btree_map {
    use super::{BTreeMap, Bencher, COMPLEX, EQUALITY, LABEL_COUNTS, TYPICAL, evaluate, pairs};

    fn labels(count: usize) -> BTreeMap<String, String> {
        pairs(count).into_iter().collect()
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn equality(bencher: Bencher<'_, '_>, count: usize) {
        evaluate(bencher, EQUALITY, &labels(count));
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn typical(bencher: Bencher<'_, '_>, count: usize) {
        evaluate(bencher, TYPICAL, &labels(count));
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn complex(bencher: Bencher<'_, '_>, count: usize) {
        evaluate(bencher, COMPLEX, &labels(count));
    }
}

/// Evaluation against labels in a `HashMap`.
#[divan::bench_group]
mod matches_hash_map {
    use super::{Bencher, COMPLEX, EQUALITY, HashMap, LABEL_COUNTS, TYPICAL, evaluate, pairs};

    fn labels(count: usize) -> HashMap<String, String> {
        pairs(count).into_iter().collect()
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn equality(bencher: Bencher<'_, '_>, count: usize) {
        evaluate(bencher, EQUALITY, &labels(count));
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn typical(bencher: Bencher<'_, '_>, count: usize) {
        evaluate(bencher, TYPICAL, &labels(count));
    }

    #[divan::bench(args = LABEL_COUNTS)]
    fn complex(bencher: Bencher<'_, '_>, count: usize) {
        evaluate(bencher, COMPLEX, &labels(count));
    }
}

fn evaluate(bencher: Bencher<'_, '_>, text: &str, labels: &impl Labels) {
    let selector = selector(text);
    assert!(
        selector.matches(labels),
        "only a match evaluates every term"
    );
    bencher.bench_local(|| black_box(&selector).matches(black_box(labels)));
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("the selectors of the benchmark are valid")
}

/// A conjunction that the labels of [`pairs`] satisfy.
fn chain(terms: usize) -> String {
    let terms: Vec<_> = (0..terms).map(|i| format!("app != 'value-{i}'")).collect();
    terms.join(" && ")
}

/// Labels that match all selectors above, the meaningful ones spread among others.
fn pairs(count: usize) -> Vec<(String, String)> {
    let meaningful = [
        ("app", "web"),
        ("projectcalico.org/namespace", "prod"),
        ("tier", "frontend"),
        ("region", "eu-west"),
        ("version", "v2.14"),
        ("role", "server"),
    ];
    let mut labels: Vec<(String, String)> = (meaningful.len()..count)
        .map(|i| (format!("example.com/label-{i}"), format!("value-{i}")))
        .collect();
    let step = count / meaningful.len();
    for (i, (name, value)) in meaningful.into_iter().enumerate() {
        labels.insert(i * step, (name.to_owned(), value.to_owned()));
    }
    labels
}
