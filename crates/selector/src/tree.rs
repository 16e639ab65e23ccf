//! The expression tree as it is stored; [`Expr`] is the view of it that others walk.
//!
//! A [`Tree`] is one text and two arrays. Nodes refer to the text by [`Span`] and to each other by
//! [`NodeId`]: a node knows its first operand and its next sibling, so a chain of `&&` is one node
//! with any number of operands. Copying and dropping never recurse.
//!
//! # Invariants
//! - Operands come before the node that has them, so the root is the last node and terms stand in
//!   the order of the text.
//! - Members of a set are sorted bytewise and occur once.

use std::num::NonZeroU32;
use std::ops::Range;

use crate::expr::{Comparison, Expr};

/// A parsed selector in its stored form.
#[derive(Clone)]
pub(crate) struct Tree {
    /// The canonical text, which holds every name and value.
    pub(crate) text: Box<str>,
    pub(crate) nodes: Box<[StoredNode]>,
    /// The members of all sets.
    pub(crate) members: Box<[Span]>,
}

/// One node of a [`Tree`].
#[derive(Clone, Copy)]
pub(crate) struct StoredNode {
    /// The canonical text of this sub-expression.
    pub(crate) text: Span,
    /// The next operand of the same parent.
    pub(crate) next: Option<NodeId>,
    pub(crate) kind: Kind,
}

/// What a [`StoredNode`] is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    All,
    Global,
    Has(Span),
    Compare {
        comparison: Comparison,
        label: Span,
        value: Span,
    },
    In {
        label: Span,
        members: Span,
    },
    NotIn {
        label: Span,
        members: Span,
    },
    Not(NodeId),
    And(NodeId),
    Or(NodeId),
}

/// A range of the text or of the set members. Four bytes an end are enough: see
/// [`MAX_LENGTH`](crate::MAX_LENGTH).
#[derive(Clone, Copy)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// The place of a node in [`Tree::nodes`], plus one.
#[derive(Clone, Copy)]
pub(crate) struct NodeId(NonZeroU32);

// === impl Tree ===

impl Tree {
    pub(crate) fn root(&self) -> Expr<'_> {
        Expr::new(
            self,
            self.nodes.last().expect("a tree has at least one node"),
        )
    }

    /// Every sub-expression, operands before the node that has them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Expr<'_>> {
        self.nodes.iter().map(|node| Expr::new(self, node))
    }

    #[inline]
    pub(crate) fn expr(&self, id: NodeId) -> Expr<'_> {
        Expr::new(self, &self.nodes[id.index()])
    }
}

// === impl Span ===

impl Span {
    pub(crate) const EMPTY: Self = Self { start: 0, end: 0 };

    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |at| u32::try_from(at).expect("selectors are far below 4 GiB");
        Self {
            start: narrow(start),
            end: narrow(end),
        }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    #[inline]
    pub(crate) fn of(self, text: &str) -> &str {
        &text[self.range()]
    }
}

// === impl NodeId ===

impl NodeId {
    pub(crate) fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).expect("selectors are far below 4 Gi nodes");
        Self(NonZeroU32::new(number).expect("one was added"))
    }

    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
