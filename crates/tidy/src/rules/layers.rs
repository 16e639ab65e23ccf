//! A crate depends only on lower layers.

use crate::tree::{Package, Tree, Violation};

/// Crates of one layer of which the first builds on the second.
const WITHIN_A_LAYER: [(&str, &str); 9] = [
    ("client", "ipam"),
    ("convert", "config"),
    ("controllers", "migrate"),
    ("convert", "engine"),
    ("engine", "config"),
    ("rules", "config"),
    ("rules", "engine"),
    ("store", "sync"),
    ("why", "agent"),
];

/// Packages that are part of no program.
const TOOLS: [&str; 6] = [
    "fuzzing",
    "namespace-baseline",
    "release",
    "store-contract",
    "testkit",
    "tidy",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        let problem = |problem: String| Violation {
            path: format!("{}/Cargo.toml", package.name),
            line: 0,
            problem,
        };
        let is_tool = TOOLS.contains(&&*package.name);
        match package.layer {
            None if !is_tool => violations.push(problem(
                "`[package.metadata.tortie] layer` is missing".to_owned(),
            )),
            Some(_) if is_tool => {
                violations.push(problem("a tool has no layer".to_owned()));
            }
            Some(layer) => {
                let wrong = package.dependencies.iter().filter_map(|name| {
                    let other = tree.package(name)?;
                    wrong_dependency(package, layer, other)
                });
                violations.extend(wrong.map(problem));
            }
            None => {}
        }
    }
    violations
}

fn wrong_dependency(package: &Package, layer: u8, other: &Package) -> Option<String> {
    let name = &other.name;
    let Some(below) = other.layer else {
        return Some(format!("depends on `{name}`, which is for tests"));
    };
    let is_known = WITHIN_A_LAYER.contains(&(&*package.name, &**name));
    let is_right = below < layer || below == layer && is_known;
    (!is_right).then(|| format!("is of layer {layer}, and depends on `{name}` of layer {below}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::package;
    use super::*;

    #[track_caller]
    fn check_that(packages: Vec<Package>, expected: &[&str]) {
        let tree = Tree {
            packages,
            ..Tree::default()
        };
        let problems = check(&tree).into_iter();
        let problems: Vec<String> = problems.map(|violation| violation.problem).collect();
        assert_eq!(problems, expected);
    }

    #[test]
    fn crates_depend_on_lower_layers_only() {
        let low = || package("low", Some(1), &[]);
        check_that(vec![low(), package("high", Some(2), &["low"])], &[]);
        check_that(
            vec![low(), package("base", Some(0), &["low", "serde"])],
            &["is of layer 0, and depends on `low` of layer 1"],
        );
        check_that(
            vec![low(), package("other", Some(1), &["low"])],
            &["is of layer 1, and depends on `low` of layer 1"],
        );
    }

    #[test]
    fn programs_are_not_built_with_tools() {
        check_that(
            vec![
                package("testkit", None, &[]),
                package("a", Some(1), &["testkit"]),
            ],
            &["depends on `testkit`, which is for tests"],
        );
        check_that(
            vec![package("a", None, &[])],
            &["`[package.metadata.tortie] layer` is missing"],
        );
    }
}
