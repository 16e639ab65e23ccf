//! The selector: the type that the rest of the system holds.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::canonical::{self, Draft};
use crate::error::ParseError;
use crate::expr::{Expr, Node};
use crate::failing_term::FailingTerm;
use crate::ids;
use crate::labels::Labels;
use crate::parser;
use crate::restrictions::LabelRestrictions;
use crate::tree::Tree;

/// A parsed selector. It displays as its canonical text.
///
/// Selectors are equal if they have the same structure: white space, quotes, redundant parentheses
/// and the order inside sets do not matter, but the order of operands does. Since the canonical
/// text determines the structure, comparing, ordering and hashing use the text.
#[derive(Clone)]
pub struct Selector {
    tree: Tree,
}

/// The canonical text of a selector; of anything else, the text without white space around it.
pub fn normalise(text: &str) -> String {
    let text = text.trim();
    Selector::parse(text).map_or_else(|_| text.to_owned(), String::from)
}

// === impl Selector ===

impl Selector {
    /// Reads a selector. Empty text means `all()`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self {
            tree: parser::parse(text)?,
        })
    }

    /// The canonical text.
    ///
    /// It parses to the same selector, with one exception that Calico's identifiers impose:
    /// `!(!has(a))` keeps both negations and is written `!!has(a)`, which is read as `has(a)`.
    pub fn as_str(&self) -> &str {
        &self.tree.text
    }

    /// The identifier that Calico gives to this selector: `s:` and a hash of the canonical text.
    pub fn unique_id(&self) -> String {
        ids::make_unique_id("s", self.as_str())
    }

    /// Whether the selector selects something with these labels.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        self.root().matches(labels)
    }

    /// The smallest sub-expression that keeps the selector from matching, or `None` if it matches.
    pub fn first_failing_term<'a, L: Labels + ?Sized>(
        &'a self,
        labels: &'a L,
    ) -> Option<FailingTerm<'a>> {
        FailingTerm::find(self.root(), labels)
    }

    /// What every set of labels that matches has in common.
    pub fn label_restrictions(&self) -> LabelRestrictions<'_> {
        LabelRestrictions::of(self.root())
    }

    /// The same selector with `prefix` before every label name.
    ///
    /// The prefix must consist of characters that label names may have. Names may become longer
    /// than [`MAX_LABEL_LENGTH`](crate::MAX_LABEL_LENGTH), in which case the text does not parse.
    #[must_use]
    pub fn prefix_labels(&self, prefix: &str) -> Self {
        let draft = Draft {
            nodes: self.tree.nodes.to_vec(),
            members: self.tree.members.to_vec(),
        };
        Self {
            tree: canonical::write(draft, self.as_str(), prefix),
        }
    }

    /// Whether this is exactly `all()`.
    pub fn is_all(&self) -> bool {
        matches!(self.root().node(), Node::All)
    }

    /// Whether this is exactly `global()`.
    pub fn is_global(&self) -> bool {
        matches!(self.root().node(), Node::Global)
    }

    /// Whether `global()` occurs anywhere.
    pub fn contains_global(&self) -> bool {
        self.tree
            .iter()
            .any(|expr| matches!(expr.node(), Node::Global))
    }

    /// The label name of every term, in the order of the text. Names may repeat.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.tree.iter().filter_map(Expr::label)
    }

    /// The whole expression, to be walked.
    pub fn root(&self) -> Expr<'_> {
        self.tree.root()
    }
}

impl Default for Selector {
    /// `all()`
    fn default() -> Self {
        Self::parse("").expect("empty text is a selector")
    }
}

impl FromStr for Selector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> Self {
        selector.tree.text.into()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Selector").field(&self.as_str()).finish()
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Selector {}

impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for Selector {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Selector {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

#[cfg(test)]
mod tests;
