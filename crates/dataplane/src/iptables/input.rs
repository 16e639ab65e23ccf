//! The input of `iptables-restore`: the least that makes a table of what it is what it should be.

use std::fmt::Write as _;
use std::sync::Arc;

use tortie_rules::Table;
use tortie_rules::iptables::Line;

use super::saved::{HookedChain, RuleHash};
use super::variant::Variant;

/// A chain of ours as it is and as it should be.
#[derive(Debug)]
pub(super) struct ChainEdit<'a> {
    name: &'a str,
    lines: &'a [Line],
    how: How,
}

/// How a chain is brought to what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is right.
    Keep,
    /// The rules from this one on are missing.
    Append { from: usize },
    /// All rules are written, after the chain is made or emptied.
    Rewrite,
    /// The rules from this one on are others, of so many.
    Replace { from: usize, of: usize },
}

/// A chain that is not ours, and the rules that we have in it.
#[derive(Debug)]
pub(super) struct HookEdit<'a> {
    pub(super) chain: &'a str,
    /// What is there, if anything of ours is.
    pub(super) found: Option<&'a HookedChain>,
    /// Rules for the beginning of the chain, or for its end.
    pub(super) first: &'a [Line],
    /// Rules for the end of the chain.
    pub(super) last: &'a [Line],
    /// Whether the first ones come after the rules of others too.
    pub(super) is_appended: bool,
}

/// All changes to a table.
#[derive(Debug)]
pub(super) struct TableEdit<'a> {
    pub(super) table: Table,
    pub(super) chains: Vec<ChainEdit<'a>>,
    pub(super) hooks: Vec<HookEdit<'a>>,
    /// Chains of ours that go.
    pub(super) removed: Vec<Arc<str>>,
}

// === impl ChainEdit ===

impl<'a> ChainEdit<'a> {
    /// From the rules that are there, if there is the chain, to those that should be.
    pub(super) fn new(
        name: &'a str,
        found: Option<&[RuleHash]>,
        lines: &'a [Line],
        variant: Variant,
    ) -> Self {
        let how = match found {
            None => How::Rewrite,
            Some(found) => {
                let pairs = found.iter().zip(lines);
                let is_same =
                    |(hash, line): &(&RuleHash, &Line)| **hash == RuleHash::new(&line.hash);
                let same = pairs.take_while(is_same).count();
                if same == found.len() {
                    match lines.len() {
                        wanted if wanted == same => How::Keep,
                        _ => How::Append { from: same },
                    }
                } else if same == 0 || variant == Variant::Nft {
                    // Older versions of the nft kind replace the wrong rules.
                    How::Rewrite
                } else {
                    How::Replace {
                        from: same,
                        of: found.len(),
                    }
                }
            }
        };
        Self { name, lines, how }
    }

    fn write_rules(&self, out: &mut String) {
        let (name, lines) = (self.name, self.lines);
        match self.how {
            How::Keep => {}
            How::Append { from } => append(name, &lines[from..], out),
            How::Rewrite => append(name, lines, out),
            How::Replace { from, of } => {
                for (index, line) in lines.iter().enumerate().take(of).skip(from) {
                    put(out, format_args!("-R {name} {} {}\n", index + 1, line.body));
                }
                append(name, lines.get(of..).unwrap_or_default(), out);
                for _ in lines.len()..of {
                    put(out, format_args!("-D {name} {}\n", lines.len() + 1));
                }
            }
        }
    }
}

// === impl HookEdit ===

impl HookEdit<'_> {
    /// Whether our rules are there, in order and in place.
    pub(super) fn is_done(&self) -> bool {
        let found = self.found.map_or(&[][..], |found| &found.hashes);
        let foreign = found.iter().filter(|hash| **hash == RuleHash::FOREIGN);
        let foreign = foreign.copied();
        let hashes = |lines: &[Line]| -> Vec<RuleHash> {
            lines.iter().map(|line| RuleHash::new(&line.hash)).collect()
        };
        let (first, last) = (hashes(self.first), hashes(self.last));
        // A chain of others that has nothing of ours was not read; its rules do not matter then.
        if self.is_appended {
            foreign.chain(first).chain(last).eq(found.iter().copied())
        } else {
            first
                .into_iter()
                .chain(foreign)
                .chain(last)
                .eq(found.iter().copied())
        }
    }

    fn write(&self, out: &mut String) {
        if self.is_done() {
            return;
        }
        // By value: others may have added or removed rules since, so that numbers say little.
        for rule in self.found.iter().flat_map(|found| &found.ours) {
            put(out, format_args!("-D {rule}\n"));
        }
        if self.is_appended {
            append(self.chain, self.first, out);
        } else {
            for line in self.first.iter().rev() {
                put(out, format_args!("-I {} {}\n", self.chain, line.body));
            }
        }
        append(self.chain, self.last, out);
    }
}

// === impl TableEdit ===

impl TableEdit<'_> {
    /// Writes what is to be done; nothing if there is nothing.
    pub(super) fn write(&self, variant: Variant, out: &mut String) {
        let beginning = out.len();
        put(out, format_args!("*{}\n", self.table.name()));
        let nothing = out.len();
        for chain in &self.chains {
            if chain.how == How::Rewrite {
                declare(chain.name, out);
            }
        }
        // Emptied first, so that those that go do not refer to each other.
        for chain in &self.removed {
            declare(chain, out);
        }
        for chain in &self.chains {
            chain.write_rules(out);
        }
        for hook in &self.hooks {
            hook.write(out);
        }
        if out.len() == nothing {
            out.truncate(beginning);
            return;
        }
        if variant == Variant::Nft && !self.removed.is_empty() {
            // The nft kind counts references at the beginning of a transaction.
            put(out, format_args!("COMMIT\n*{}\n", self.table.name()));
            for chain in &self.removed {
                declare(chain, out);
            }
        }
        for chain in &self.removed {
            put(out, format_args!("-X {chain}\n"));
        }
        out.push_str("COMMIT\n");
    }
}

fn declare(chain: &str, out: &mut String) {
    put(out, format_args!(":{chain} - -\n"));
}

fn append(chain: &str, lines: &[Line], out: &mut String) {
    for line in lines {
        for part in ["-A ", chain, " ", &line.body, "\n"] {
            out.push_str(part);
        }
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}
