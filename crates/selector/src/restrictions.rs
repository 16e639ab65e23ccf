//! What a selector demands of single labels, for indexing.
//!
//! An index that knows which endpoints carry `app=web` need not try a selector on all endpoints if
//! the selector can only match where `app` is `web`. The restrictions are a lower bound: whatever
//! matches satisfies them, but not everything that satisfies them matches.
//!
//! Each sub-expression is taken either as it is or negated, so that a `!` is pushed down to the
//! terms. A conjunction must satisfy the restrictions of all operands; an alternative only those
//! that its operands share, where operands that can never match do not count.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::expr::{Comparison, Expr, Node, Operands};
use crate::labels::Labels;

/// The restrictions that a selector puts on single labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRestrictions<'a> {
    /// `None` if nothing can match.
    by_label: Option<BTreeMap<&'a str, Restriction<'a>>>,
}

/// What one label must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restriction<'a> {
    /// The label must be absent.
    Absent,
    /// The label must be present, with any value.
    Present,
    /// The label must have one of these values, of which there is at least one.
    OneOf(BTreeSet<&'a str>),
}

// === impl LabelRestrictions ===

impl<'a> LabelRestrictions<'a> {
    pub(crate) fn of(expr: Expr<'a>) -> Self {
        Self::derive(expr, false)
    }

    /// Whether anything can match. `true` does not promise that something does.
    pub fn can_match(&self) -> bool {
        self.by_label.is_some()
    }

    /// The restriction of one label, if there is one.
    pub fn get(&self, label: &str) -> Option<&Restriction<'a>> {
        self.by_label.as_ref()?.get(label)
    }

    /// All restricted labels in bytewise order. Empty if nothing can match.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &Restriction<'a>)> {
        self.by_label
            .iter()
            .flatten()
            .map(|(label, restriction)| (*label, restriction))
    }

    /// Whether these labels satisfy all restrictions.
    pub fn allow<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        self.can_match()
            && self
                .iter()
                .all(|(label, restriction)| restriction.allows(labels.get(label)))
    }

    fn anything() -> Self {
        Self {
            by_label: Some(BTreeMap::new()),
        }
    }

    fn nothing() -> Self {
        Self { by_label: None }
    }

    fn single(label: &'a str, restriction: Restriction<'a>) -> Self {
        Self {
            by_label: Some(BTreeMap::from([(label, restriction)])),
        }
    }

    fn one_of(label: &'a str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: BTreeSet<_> = values.into_iter().collect();
        if values.is_empty() {
            Self::nothing()
        } else {
            Self::single(label, Restriction::OneOf(values))
        }
    }

    /// The restrictions of an expression, or of its negation.
    fn derive(expr: Expr<'a>, negated: bool) -> Self {
        match (expr.node(), negated) {
            (Node::All | Node::Global, true) => Self::nothing(),
            (Node::Has { label }, true) => Self::single(label, Restriction::Absent),
            (Node::Has { label }, false) => Self::single(label, Restriction::Present),
            (
                Node::Compare {
                    comparison,
                    label,
                    value,
                },
                _,
            ) => match (comparison, negated) {
                (Comparison::Equal, false) | (Comparison::NotEqual, true) => {
                    Self::one_of(label, [value])
                }
                (Comparison::Contains | Comparison::StartsWith | Comparison::EndsWith, false) => {
                    Self::single(label, Restriction::Present)
                }
                // True for an absent label and for most values.
                _ => Self::anything(),
            },
            (Node::In { label, values }, false) | (Node::NotIn { label, values }, true) => {
                Self::one_of(label, values.iter())
            }
            (Node::All | Node::Global | Node::NotIn { .. }, false) | (Node::In { .. }, true) => {
                Self::anything()
            }
            (Node::Not(operand), _) => Self::derive(operand, !negated),
            (Node::And(operands), false) | (Node::Or(operands), true) => {
                Self::all_of(operands, negated)
            }
            (Node::Or(operands), false) | (Node::And(operands), true) => {
                Self::any_of(operands, negated)
            }
        }
    }

    fn all_of(operands: Operands<'a>, negated: bool) -> Self {
        operands
            .map(|operand| Self::derive(operand, negated))
            .fold(Self::anything(), Self::and)
    }

    fn any_of(operands: Operands<'a>, negated: bool) -> Self {
        operands
            .map(|operand| Self::derive(operand, negated))
            .fold(Self::nothing(), Self::or)
    }

    fn and(self, other: Self) -> Self {
        let (Some(mut by_label), Some(other)) = (self.by_label, other.by_label) else {
            return Self::nothing();
        };
        for (label, restriction) in other {
            match by_label.entry(label) {
                Entry::Vacant(entry) => {
                    entry.insert(restriction);
                }
                Entry::Occupied(mut entry) => {
                    if !entry.get_mut().narrow(restriction) {
                        return Self::nothing();
                    }
                }
            }
        }
        Self {
            by_label: Some(by_label),
        }
    }

    fn or(self, other: Self) -> Self {
        let (mut smaller, mut larger) = match (self.by_label, other.by_label) {
            (None, by_label) | (by_label, None) => return Self { by_label },
            (Some(a), Some(b)) if a.len() <= b.len() => (a, b),
            (Some(a), Some(b)) => (b, a),
        };
        smaller.retain(|label, restriction| {
            larger
                .remove(label)
                .is_some_and(|other| restriction.widen(other))
        });
        Self {
            by_label: Some(smaller),
        }
    }
}

// === impl Restriction ===

impl Restriction<'_> {
    /// Whether a label may have this value, or be absent if it is `None`.
    pub fn allows(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Absent, value) => value.is_none(),
            (Self::Present, value) => value.is_some(),
            (Self::OneOf(_), None) => false,
            (Self::OneOf(values), Some(value)) => values.contains(value),
        }
    }

    /// Keeps what satisfies both, and says whether anything does.
    fn narrow(&mut self, other: Self) -> bool {
        match (&mut *self, other) {
            (Self::Absent, Self::Absent) | (Self::OneOf(_), Self::Present) => true,
            (Self::Absent, _) | (_, Self::Absent) => false,
            (Self::Present, other) => {
                *self = other;
                true
            }
            (Self::OneOf(values), Self::OneOf(others)) => {
                values.retain(|value| others.contains(value));
                !values.is_empty()
            }
        }
    }

    /// Admits what satisfies either, and says whether that is still a restriction.
    fn widen(&mut self, other: Self) -> bool {
        match (&mut *self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Absent, _) | (_, Self::Absent) => false,
            (Self::OneOf(values), Self::OneOf(mut others)) => {
                // Insert the few into the many: a long chain of `||` would be quadratic otherwise.
                if values.len() < others.len() {
                    std::mem::swap(values, &mut others);
                }
                values.extend(others);
                true
            }
            (Self::Present, _) | (_, Self::Present) => {
                *self = Self::Present;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests;
