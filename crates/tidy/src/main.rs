//! Checks the rules of the house that neither compiler nor clippy knows: `cargo tidy`.
//!
//! ```text
//! cargo metadata ─▶ tree: packages and files ─▶ rules: one function each ─▶ violations, a line each
//! ```
//!
//! A rule looks at the whole tree and says where it is broken. What a rule cannot decide is no rule.

mod lexer;
mod rules;
mod tree;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use rules::RULES;
use tree::Tree;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints all violations. Whether there are none.
fn run() -> Result<bool> {
    let tree = Tree::read(Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2))?;
    let mut count = 0;
    for (name, rule) in RULES {
        for violation in rule(&tree) {
            writeln!(io::stdout(), "{violation} [{name}]")?;
            count += 1;
        }
    }
    if count > 0 {
        writeln!(
            io::stderr(),
            "{count} violations of the rules in CONTRIBUTING.md"
        )?;
    }
    Ok(count == 0)
}
