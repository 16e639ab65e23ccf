//! Layers 0 to 2 do no I/O, read no clock and name no runtime.

use crate::lexer::{Kind, line_of, tokens};
use crate::tree::{Tree, Violation};

const HIGHEST_PURE_LAYER: u8 = 2;

/// Libraries that do what these layers do not.
const LIBRARIES: [&str; 7] = [
    "async-trait",
    "kube",
    "libc",
    "rand",
    "rustix",
    "tokio",
    "tracing",
];

/// Modules and types of the standard library that do.
const NAMES: [&str; 9] = [
    "std::env",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::os",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let is_pure = |layer: Option<u8>| layer.is_some_and(|layer| layer <= HIGHEST_PURE_LAYER);
    for package in tree.packages.iter().filter(|one| is_pure(one.layer)) {
        let impure = |name: &&String| LIBRARIES.contains(&&***name);
        for name in package.dependencies.iter().filter(impure) {
            violations.push(Violation {
                path: format!("{}/Cargo.toml", package.name),
                line: 0,
                problem: format!("a pure crate depends on `{name}`"),
            });
        }
    }
    for file in tree.sources().filter(|file| is_pure(tree.layer_of(file))) {
        for token in tokens(&file.text) {
            if token.kind != Kind::Code {
                continue;
            }
            for name in NAMES {
                for (at, _) in token.text.match_indices(name) {
                    violations.push(Violation {
                        path: file.path.clone(),
                        line: line_of(&file.text, token.start + at),
                        problem: format!("a pure crate uses `{name}`"),
                    });
                }
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[track_caller]
    fn check_that(layer: u8, text: &str, expected: &[(usize, &str)]) {
        let found = check(&tree(layer, text));
        let found: Vec<(usize, &str)> = found.iter().map(|v| (v.line, &*v.problem)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn pure_crates_do_not_touch_the_machine() {
        let text = "//! Reads no std::fs.\nuse std::fs;\nlet a = \"std::env\";\n";
        check_that(2, text, &[(2, "a pure crate uses `std::fs`")]);
        check_that(3, text, &[]);
    }

    #[test]
    fn pure_crates_have_no_runtime() {
        let mut tree = tree(0, "");
        tree.packages[0].dependencies.push("tokio".to_owned());
        assert_eq!(check(&tree)[0].problem, "a pure crate depends on `tokio`");
    }
}
