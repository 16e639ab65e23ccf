//! A file begins by saying what it is about.

use crate::tree::{File, Tree, Violation};

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let files = tree.files.iter().filter(|file| is_root_or_source(file));
    files
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| Violation {
            path: file.path.clone(),
            line: 1,
            problem: "begins without a header: `//! …`".to_owned(),
        })
        .collect()
}

/// Modules of tests have the name of what they test.
fn is_root_or_source(file: &File) -> bool {
    !file.is_test || file.path.ends_with("/main.rs") || file.path.contains("/benches/")
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn a_file_begins_with_a_header() {
        assert_eq!(check(&tree(1, "//! What it is about.\n")), []);
        assert_eq!(check(&tree(1, "use std::fmt;\n")).len(), 1);
    }
}
