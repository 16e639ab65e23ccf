//! A file has at most 400 lines, but for those listed here, which do not grow.

use crate::tree::{Tree, Violation};

const MOST: usize = 400;

/// Files that are longer, with the most lines that they may have. A file that has become short goes from this list.
const LONGER: [(&str, usize); 18] = [
    ("crates/agent/src/inputs.rs", 444),
    ("crates/api/src/kinds/felix_configuration.rs", 1_003),
    ("crates/apiserver/src/http.rs", 492),
    ("crates/apiserver/src/http/budget.rs", 465),
    ("crates/apiserver/src/patch/strategic.rs", 429),
    ("crates/apiserver/src/registry.rs", 519),
    ("crates/apiserver/src/service/write.rs", 510),
    ("crates/apiserver/src/storage/native.rs", 438),
    ("crates/cli/src/commands/why/live.rs", 421),
    ("crates/cli/src/commands/why/text.rs", 450),
    ("crates/migrate/src/datastore_migration/controller.rs", 406),
    ("crates/dataplane/src/nftables/compile.rs", 591),
    ("crates/dataplane/src/desired.rs", 442),
    ("crates/rules/src/endpoint.rs", 461),
    ("crates/store/src/embedded.rs", 476),
    ("crates/store/src/embedded/writer.rs", 505),
    ("crates/store/src/etcd.rs", 440),
    ("crates/sync/src/follower.rs", 481),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    check_with(tree, &LONGER)
}

fn check_with(tree: &Tree, longer: &[(&str, usize)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut say = |path: &str, problem: String| {
        violations.push(Violation {
            path: path.to_owned(),
            line: 0,
            problem,
        });
    };
    for file in tree.sources() {
        let lines = file.text.lines().count();
        let bound = longer.iter().find(|(path, _)| *path == file.path);
        match bound {
            None if lines > MOST => say(&file.path, format!("has {lines} lines, more than {MOST}")),
            Some((_, bound)) if lines > *bound => {
                say(
                    &file.path,
                    format!("has grown from {bound} to {lines} lines"),
                );
            }
            Some(_) if lines <= MOST => {
                say(&file.path, "is short now: take it from the list".to_owned());
            }
            _ => {}
        }
    }
    for (path, _) in longer {
        if !tree.sources().any(|file| file.path == *path) {
            say(path, "is on the list of long files, and is gone".to_owned());
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[track_caller]
    fn check_that(lines: usize, longer: &[(&str, usize)], expected: &[&str]) {
        let found = check_with(&tree(1, &"\n".repeat(lines)), longer);
        let found: Vec<&str> = found.iter().map(|violation| &*violation.problem).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_are_short_or_known_to_be_long() {
        const PATH: &str = "crates/one/src/lib.rs";
        check_that(400, &[], &[]);
        check_that(401, &[], &["has 401 lines, more than 400"]);
        check_that(450, &[(PATH, 450)], &[]);
        check_that(451, &[(PATH, 450)], &["has grown from 450 to 451 lines"]);
        check_that(
            400,
            &[(PATH, 450)],
            &["is short now: take it from the list"],
        );
        check_that(
            1,
            &[("gone.rs", 450)],
            &["is on the list of long files, and is gone"],
        );
    }
}
