//! Evaluating an expression, on the path that must be fast.
//!
//! This reads the stored tree directly. [`chain`] is the only function that recurses: terms are
//! evaluated inside its loop, so that a chain of terms costs no call.

use crate::labels::{Labels, same_text};
use crate::tree::{Kind, NodeId, Span, StoredNode, Tree};

/// Up to this size, comparing with every member of a set is faster than a binary search, because
/// most members differ in length already.
const SEARCH_THRESHOLD: usize = 8;

/// Whether the sub-expression is true for the labels.
#[inline]
pub(crate) fn matches<L: Labels + ?Sized>(tree: &Tree, node: &StoredNode, labels: &L) -> bool {
    let label = match node.kind {
        Kind::All | Kind::Global => return true,
        // The operand of `!` has no siblings: it is a chain of one.
        Kind::Not(operand) => return !chain(tree, operand, true, labels),
        Kind::And(first) => return chain(tree, first, false, labels),
        Kind::Or(first) => return chain(tree, first, true, labels),
        Kind::Has(label)
        | Kind::Compare { label, .. }
        | Kind::In { label, .. }
        | Kind::NotIn { label, .. } => label,
    };
    let Some(actual) = labels.get(label.of(&tree.text)) else {
        return match node.kind {
            Kind::NotIn { .. } => true,
            Kind::Compare { comparison, .. } => comparison.holds_if_absent(),
            _ => false,
        };
    };
    match node.kind {
        Kind::Compare {
            comparison, value, ..
        } => comparison.compare(actual, value.of(&tree.text)),
        Kind::In { members, .. } => is_member(&tree.text, &tree.members[members.range()], actual),
        Kind::NotIn { members, .. } => {
            !is_member(&tree.text, &tree.members[members.range()], actual)
        }
        _ => true,
    }
}

/// Evaluates operands until one gives the `deciding` answer.
fn chain<L: Labels + ?Sized>(tree: &Tree, first: NodeId, deciding: bool, labels: &L) -> bool {
    let mut next = Some(first);
    while let Some(id) = next {
        let node = &tree.nodes[id.index()];
        if matches(tree, node, labels) == deciding {
            return deciding;
        }
        next = node.next;
    }
    !deciding
}

/// Whether a value is among sorted members.
pub(crate) fn is_member(text: &str, members: &[Span], value: &str) -> bool {
    if members.len() <= SEARCH_THRESHOLD {
        return members
            .iter()
            .any(|member| same_text(member.of(text), value));
    }
    members
        .binary_search_by(|member| member.of(text).cmp(value))
        .is_ok()
}
