//! A doc comment says what name and type do not: one whose words are all in the line that it is for is noise.

use crate::tree::{File, Tree, Violation};

/// Where doc comments are text for users: descriptions in schemas, and `--help`.
const READ_BY_USERS: [&str; 2] = ["crates/api/", "/src/args"];

/// Words that say nothing by themselves.
const FILLERS: [&str; 20] = [
    "a", "all", "an", "and", "are", "for", "his", "in", "is", "it", "its", "of", "one", "s",
    "that", "the", "their", "there", "this", "to",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let sources = tree.sources().filter(|file| !is_read_by_users(file));
    sources.flat_map(repetitions).collect()
}

fn is_read_by_users(file: &File) -> bool {
    READ_BY_USERS.iter().any(|part| file.path.contains(part))
}

/// The doc comments of one line that only repeat the line after them.
fn repetitions(file: &File) -> Vec<Violation> {
    let lines: Vec<&str> = file.text.lines().map(str::trim_start).collect();
    let mut violations = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(doc) = line.strip_prefix("/// ") else {
            continue;
        };
        let goes_on = |index: Option<usize>| {
            let line = index.and_then(|index| lines.get(index));
            line.is_some_and(|line| line.starts_with("///"))
        };
        if goes_on(index.checked_sub(1)) || goes_on(Some(index + 1)) || doc.contains('[') {
            continue;
        }
        let mut after = lines[index + 1..].iter();
        let Some(item) = after.find(|line| !line.starts_with("#[")) else {
            continue;
        };
        if is_repeated(doc, item) {
            violations.push(Violation {
                path: file.path.clone(),
                line: index + 1,
                problem: "a doc comment only repeats name and type: say more, or nothing"
                    .to_owned(),
            });
        }
    }
    violations
}

fn is_repeated(doc: &str, item: &str) -> bool {
    let known = words(item);
    let mut said = words(doc);
    said.retain(|word| !FILLERS.contains(&word.as_str()));
    !said.is_empty() && said.iter().all(|word| known.contains(word))
}

/// The words of a text or of names in `snake_case` and `CamelCase`, in small letters and without the `s` of a plural.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars().chain([' ']) {
        let begins = c.is_uppercase() && !before.is_uppercase();
        if !c.is_alphanumeric() || begins {
            let whole = std::mem::take(&mut word);
            if !whole.is_empty() {
                let stem = whole.trim_end_matches('s');
                words.push(if stem.is_empty() {
                    whole
                } else {
                    stem.to_owned()
                });
            }
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[track_caller]
    fn check_that(text: &str, expected: usize) {
        assert_eq!(check(&tree(5, text)).len(), expected, "{text}");
    }

    #[test]
    fn what_name_and_type_say_is_not_said_again() {
        check_that("/// Its port.\npub port: u16,", 1);
        check_that(
            "/// The address of a node.\n#[serde(default)]\nnode_address: IpAddr,",
            1,
        );
        check_that("/// An IP pool.\npub struct IpPool {", 1);
        check_that(
            "/// The kernel's routes.\nfn routes(&self) -> Vec<KernelRoute>;",
            1,
        );
    }

    #[test]
    fn what_says_more_stays() {
        check_that("/// Its port; 0 for any.\npub port: u16,", 0);
        check_that("/// Its port,\n/// if it has one.\npub port: u16,", 0);
        check_that("/// See [`Port`].\npub port: Port,", 0);
        check_that("// Its port.\npub port: u16,", 0);
        check_that("/// Everything.\npub struct All;", 0);
    }
}
