//! The name of an environment variable is spelled in one place: the crate `variables`.

use std::collections::BTreeSet;

use crate::lexer::{Kind, line_of, tokens};
use crate::tree::{File, Tree, Violation};

const PACKAGE: &str = "variables";

/// What a name follows where a variable is read or set.
const READERS: [&str; 4] = ["env = ", "env::var(", "env::var_os(", ".env("];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let is_place = |file: &&File| file.package == PACKAGE;
    let known: BTreeSet<&str> = tree
        .sources()
        .filter(is_place)
        .flat_map(|file| tokens(&file.text))
        .filter(|token| token.kind == Kind::Text)
        .map(|token| token.text.trim_matches('"'))
        .collect();
    let mut violations = Vec::new();
    for file in tree
        .sources()
        .filter(|file| !is_place(file) && tree.layer_of(file).is_some())
    {
        // Tests come last in a file, and set variables by the names that people use.
        let end = file.text.find("#[cfg(test)]").unwrap_or(file.text.len());
        let mut before = "";
        for token in tokens(&file.text[..end]) {
            if token.kind == Kind::Text {
                let name = token.text.trim_matches('"');
                let is_read = READERS.iter().any(|reader| before.ends_with(reader));
                if is_read && is_name(name) || is_telling(name) && known.contains(name) {
                    violations.push(Violation {
                        path: file.path.clone(),
                        line: line_of(&file.text, token.start),
                        problem: format!("spells `{name}`: use `variables::{name}`"),
                    });
                }
            }
            before = token.text;
        }
    }
    violations
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty()
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Short words, such as `IP`, mean other things as well.
fn is_telling(name: &str) -> bool {
    name.contains('_')
}

#[cfg(test)]
mod tests {
    use super::super::testing::{package, tree};
    use super::*;

    #[track_caller]
    fn check_that(text: &str, expected: &[&str]) {
        let mut tree = tree(5, text);
        tree.packages.push(package(PACKAGE, Some(0), &[]));
        tree.files.push(File {
            path: "crates/variables/src/lib.rs".to_owned(),
            package: PACKAGE.to_owned(),
            is_test: false,
            text: "pub const A_B: &str = \"A_B\";\npub const IP: &str = \"IP\";\n".to_owned(),
        });
        let found: Vec<String> = check(&tree).into_iter().map(|v| v.problem).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn variables_have_their_names_from_one_place() {
        check_that("let a = variables::A_B;", &[]);
        check_that(
            "let a = [\"A_B\"];",
            &["spells `A_B`: use `variables::A_B`"],
        );
        check_that("let a = \"IP\";", &[]);
        check_that(
            "let a = env::var(\"IP\");",
            &["spells `IP`: use `variables::IP`"],
        );
        check_that("#[arg(env = \"C\")]", &["spells `C`: use `variables::C`"]);
        check_that("#[cfg(target_env = \"gnu\")]", &[]);
    }
}
