//! The code map of ARCHITECTURE.md lists every crate, with its layer.

use std::collections::BTreeMap;

use crate::tree::{Tree, Violation};

const PATH: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut listed: BTreeMap<&str, (usize, Option<u8>)> = BTreeMap::new();
    for (number, line) in tree.architecture.lines().enumerate() {
        if let Some((name, layer)) = row(line) {
            listed.insert(name, (number + 1, layer));
        }
    }
    let mut violations = Vec::new();
    let mut say = |line: usize, problem: String| {
        violations.push(Violation {
            path: PATH.to_owned(),
            line,
            problem,
        });
    };
    let crates = || tree.packages.iter().filter(|one| !is_example(&one.name));
    for package in crates() {
        match listed.get(&*package.name) {
            None => say(0, format!("the code map lacks crate `{}`", package.name)),
            Some((line, layer)) if *layer != package.layer => {
                let said = |layer: Option<u8>| layer.map_or("–".to_owned(), |n| n.to_string());
                let (has, says) = (said(package.layer), said(*layer));
                let problem = format!("`{}` is of layer {has}, not {says}", package.name);
                say(*line, problem);
            }
            Some(_) => {}
        }
    }
    for (name, (line, _)) in listed {
        if !crates().any(|package| package.name == name) {
            say(line, format!("there is no crate `{name}`"));
        }
    }
    violations
}

/// The crate and the layer of a row `` | 3 | `store` | … | … | ``.
fn row(line: &str) -> Option<(&str, Option<u8>)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let layer = match cells.next()? {
        "–" => None,
        number => Some(number.parse().ok()?),
    };
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    // The map has four columns; other tables have not.
    (cells.count() == 3).then_some((name, layer))
}

/// Packages of `examples`, which are not part of the system.
fn is_example(name: &str) -> bool {
    name == "namespace-baseline"
}

#[cfg(test)]
mod tests {
    use super::super::testing::package;
    use super::*;

    #[track_caller]
    fn check_that(architecture: &str, expected: &[&str]) {
        let tree = Tree {
            packages: vec![package("store", Some(3), &[])],
            architecture: architecture.to_owned(),
            ..Tree::default()
        };
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_crate_is_on_the_map_with_its_layer() {
        check_that("| 3 | `store` | a | b |\n", &[]);
        check_that("\n", &["ARCHITECTURE.md: the code map lacks crate `store`"]);
        check_that(
            "# Map\n| 4 | `store` | a | b |\n",
            &["ARCHITECTURE.md:2: `store` is of layer 3, not 4"],
        );
        check_that(
            "| 3 | `store` | a | b |\n| – | `gone` | a | b |\n",
            &["ARCHITECTURE.md:2: there is no crate `gone`"],
        );
    }
}
