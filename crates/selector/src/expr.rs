//! The view of a selector that evaluators, explainers, indexes and compilers walk.

use std::fmt;

use crate::evaluate;
use crate::labels::{Labels, same_text};
use crate::tree::{Kind, NodeId, Span, StoredNode, Tree};

/// A sub-expression of a selector.
///
/// It displays as its canonical text.
#[derive(Clone, Copy)]
pub struct Expr<'a> {
    tree: &'a Tree,
    node: &'a StoredNode,
}

/// What an [`Expr`] is, with its operands.
///
/// Trees are at most [`MAX_DEPTH`](crate::MAX_DEPTH) high.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// `all()`: always true.
    All,
    /// `global()`: always true here. Which resources are meant is decided where a namespace
    /// selector is combined with others.
    Global,
    /// `has(label)`.
    Has {
        /// The label that must be present.
        label: &'a str,
    },
    /// A label compared with one string.
    Compare {
        /// How it is compared.
        comparison: Comparison,
        /// The name of the label.
        label: &'a str,
        /// What it is compared with.
        value: &'a str,
    },
    /// `label in {…}`.
    In {
        /// The label that must be present.
        label: &'a str,
        /// The values of which it must have one.
        values: Values<'a>,
    },
    /// `label not in {…}`, which is true if the label is absent.
    NotIn {
        /// The name of the label.
        label: &'a str,
        /// The values that it may not have.
        values: Values<'a>,
    },
    /// `!operand`.
    Not(Expr<'a>),
    /// `(a && b && …)`: two or more operands.
    And(Operands<'a>),
    /// `(a || b || …)`: two or more operands.
    Or(Operands<'a>),
}

/// How a label is compared with a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`, which is true if the label is absent.
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
}

/// The operands of [`Node::And`] and [`Node::Or`], in the order of the text.
#[derive(Clone)]
pub struct Operands<'a> {
    tree: &'a Tree,
    next: Option<NodeId>,
}

/// The set of [`Node::In`] and [`Node::NotIn`], sorted bytewise.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    text: &'a str,
    members: &'a [Span],
}

// === impl Expr ===

impl<'a> Expr<'a> {
    #[inline]
    pub(crate) fn new(tree: &'a Tree, node: &'a StoredNode) -> Self {
        Self { tree, node }
    }

    /// What this is, with its operands.
    #[inline]
    pub fn node(self) -> Node<'a> {
        let Self { tree, node } = self;
        match node.kind {
            Kind::All => Node::All,
            Kind::Global => Node::Global,
            Kind::Has(label) => Node::Has {
                label: label.of(&tree.text),
            },
            Kind::Compare {
                comparison,
                label,
                value,
            } => Node::Compare {
                comparison,
                label: label.of(&tree.text),
                value: value.of(&tree.text),
            },
            Kind::In { label, members } => Node::In {
                label: label.of(&tree.text),
                values: Values::new(tree, members),
            },
            Kind::NotIn { label, members } => Node::NotIn {
                label: label.of(&tree.text),
                values: Values::new(tree, members),
            },
            Kind::Not(operand) => Node::Not(tree.expr(operand)),
            Kind::And(first) => Node::And(Operands::new(tree, first)),
            Kind::Or(first) => Node::Or(Operands::new(tree, first)),
        }
    }

    /// The canonical text of this sub-expression.
    pub fn as_str(self) -> &'a str {
        self.node.text.of(&self.tree.text)
    }

    /// The label that a term is about; `None` for `all()`, `global()` and compound expressions.
    pub fn label(self) -> Option<&'a str> {
        match self.node() {
            Node::Has { label }
            | Node::Compare { label, .. }
            | Node::In { label, .. }
            | Node::NotIn { label, .. } => Some(label),
            Node::All | Node::Global | Node::Not(_) | Node::And(_) | Node::Or(_) => None,
        }
    }

    /// Whether this sub-expression is true for the labels.
    pub fn matches<L: Labels + ?Sized>(self, labels: &L) -> bool {
        evaluate::matches(self.tree, self.node, labels)
    }
}

impl fmt::Display for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.as_str()).finish()
    }
}

// === impl Comparison ===

impl Comparison {
    /// Whether a label with this value, or `None` if it is absent, passes.
    pub fn holds(self, actual: Option<&str>, expected: &str) -> bool {
        match actual {
            Some(actual) => self.compare(actual, expected),
            None => self.holds_if_absent(),
        }
    }

    #[inline]
    pub(crate) fn holds_if_absent(self) -> bool {
        self == Self::NotEqual
    }

    #[inline]
    pub(crate) fn compare(self, actual: &str, expected: &str) -> bool {
        match self {
            Self::Equal => same_text(actual, expected),
            Self::NotEqual => !same_text(actual, expected),
            Self::Contains => contains(actual, expected),
            Self::StartsWith => actual.starts_with(expected),
            Self::EndsWith => actual.ends_with(expected),
        }
    }

    /// The operator as canonical text spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Contains => "contains",
            Self::StartsWith => "starts with",
            Self::EndsWith => "ends with",
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The search is a lot of code; inside [`Comparison::compare`] it would keep that from being inlined.
#[inline(never)]
fn contains(text: &str, part: &str) -> bool {
    text.contains(part)
}

// === impl Operands ===

impl<'a> Operands<'a> {
    fn new(tree: &'a Tree, first: NodeId) -> Self {
        Self {
            tree,
            next: Some(first),
        }
    }
}

impl<'a> Iterator for Operands<'a> {
    type Item = Expr<'a>;

    #[inline]
    fn next(&mut self) -> Option<Expr<'a>> {
        let operand = self.tree.expr(self.next?);
        self.next = operand.node.next;
        Some(operand)
    }
}

impl fmt::Debug for Operands<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

// === impl Values ===

impl<'a> Values<'a> {
    fn new(tree: &'a Tree, members: Span) -> Self {
        Self {
            text: &tree.text,
            members: &tree.members[members.range()],
        }
    }

    /// The values in bytewise order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a str> {
        self.members.iter().map(move |member| member.of(self.text))
    }

    /// How many values there are.
    pub fn len(self) -> usize {
        self.members.len()
    }

    /// Whether the set is `{}`.
    pub fn is_empty(self) -> bool {
        self.members.is_empty()
    }

    /// Whether a value is in the set.
    pub fn contains(self, value: &str) -> bool {
        evaluate::is_member(self.text, self.members, value)
    }
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
