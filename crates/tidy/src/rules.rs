//! The rules.

mod code_map;
mod docs;
mod headers;
mod layers;
mod logs;
mod purity;
mod sizes;
mod variables;

use crate::tree::{Tree, Violation};

/// What is wrong with a tree.
type Rule = fn(&Tree) -> Vec<Violation>;

/// All rules, by name.
pub(crate) const RULES: [(&str, Rule); 8] = [
    ("layers", layers::check),
    ("purity", purity::check),
    ("code map", code_map::check),
    ("file size", sizes::check),
    ("module header", headers::check),
    ("doc comment", docs::check),
    ("log line", logs::check),
    ("variable", variables::check),
];

#[cfg(test)]
mod testing {
    use crate::tree::{File, Package, Tree};

    pub(super) fn package(name: &str, layer: Option<u8>, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            layer,
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// A tree with one package of a layer, and one file of it.
    pub(super) fn tree(layer: u8, text: &str) -> Tree {
        Tree {
            packages: vec![package("one", Some(layer), &[])],
            files: vec![File {
                path: "crates/one/src/lib.rs".to_owned(),
                package: "one".to_owned(),
                is_test: false,
                text: text.to_owned(),
            }],
            architecture: String::new(),
        }
    }
}
