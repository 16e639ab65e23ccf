//! Why a selector does not match.

use std::fmt;

use crate::canonical::quote_for;
use crate::expr::{Expr, Node};
use crate::labels::Labels;

/// The sub-expression that keeps a selector from matching, and what its label was.
///
/// In a chain of `&&` this is the first operand that fails. If all operands of `||` fail, no single
/// one is to blame, so the chain as a whole is reported.
///
/// ```
/// let selector = tortie_selector::Selector::parse("has(tier) && app == 'web'")?;
/// let failing = selector.first_failing_term(&[("tier", "1"), ("app", "db")]).unwrap();
/// assert_eq!(failing.to_string(), r#"term app == "web" is false: label app is "db""#);
/// # Ok::<(), tortie_selector::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FailingTerm<'a> {
    expr: Expr<'a>,
    label: Option<&'a str>,
    value: Option<&'a str>,
}

// === impl FailingTerm ===

impl<'a> FailingTerm<'a> {
    pub(crate) fn find<L: Labels + ?Sized>(expr: Expr<'a>, labels: &'a L) -> Option<Self> {
        if expr.matches(labels) {
            return None;
        }
        let expr = narrow(expr, labels);
        let label = match expr.node() {
            Node::Not(operand) => operand.label(),
            _ => expr.label(),
        };
        Some(Self {
            expr,
            label,
            value: label.and_then(|name| labels.get(name)),
        })
    }

    /// The sub-expression that is false.
    pub fn expr(&self) -> Expr<'a> {
        self.expr
    }

    /// The label that the sub-expression is about, if it is about a single one.
    pub fn label(&self) -> Option<&'a str> {
        self.label
    }

    /// The value of [`label`](Self::label), or `None` if the label is absent.
    pub fn value(&self) -> Option<&'a str> {
        self.value
    }
}

impl fmt::Display for FailingTerm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {} is false", self.expr)?;
        match (self.label, self.value) {
            (None, _) => Ok(()),
            (Some(label), None) => write!(f, ": label {label} is absent"),
            (Some(label), Some(value)) => {
                let quote = quote_for(value);
                write!(f, ": label {label} is {quote}{value}{quote}")
            }
        }
    }
}

/// The smallest part of an expression that is false and makes the expression false.
fn narrow<'a, L: Labels + ?Sized>(mut expr: Expr<'a>, labels: &L) -> Expr<'a> {
    loop {
        let part = match expr.node() {
            Node::And(mut operands) => operands.find(|operand| !operand.matches(labels)),
            Node::Not(operand) => match operand.node() {
                Node::Not(inner) => Some(inner),
                _ => None,
            },
            _ => None,
        };
        match part {
            Some(part) => expr = part,
            None => return expr,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Selector;

    #[track_caller]
    fn check(selector: &str, labels: &[(&str, &str)], expected: Option<&str>) {
        let parsed = Selector::parse(selector).unwrap();
        let failing = parsed
            .first_failing_term(labels)
            .map(|failing| failing.to_string());
        assert_eq!(failing.as_deref(), expected, "{selector} on {labels:?}");
    }

    #[test]
    fn a_match_has_no_failing_term() {
        check("a == 'x' || b == 'y'", &[("b", "y")], None);
    }

    #[test]
    fn a_term_is_reported_with_its_label() {
        check(
            "a == 'x'",
            &[],
            Some(r#"term a == "x" is false: label a is absent"#),
        );
        check(
            "a == 'x'",
            &[("a", "")],
            Some(r#"term a == "x" is false: label a is """#),
        );
        check(
            "a in {'x'}",
            &[("a", "y")],
            Some(r#"term a in {"x"} is false: label a is "y""#),
        );
    }

    #[test]
    fn the_first_failing_operand_of_a_conjunction_is_reported() {
        check(
            "has(a) && (has(b) && has(c)) && has(d)",
            &[("a", ""), ("b", "")],
            Some("term has(c) is false: label c is absent"),
        );
    }

    #[test]
    fn an_alternative_is_reported_whole() {
        check(
            "has(a) || has(b)",
            &[],
            Some("term (has(a) || has(b)) is false"),
        );
    }

    #[test]
    fn a_negated_term_is_reported_with_its_negation() {
        check(
            "!has(a)",
            &[("a", "x")],
            Some(r#"term !has(a) is false: label a is "x""#),
        );
        check(
            "!(!has(a))",
            &[],
            Some("term has(a) is false: label a is absent"),
        );
        check(
            "!(has(a) || has(b))",
            &[("b", "")],
            Some("term !(has(a) || has(b)) is false"),
        );
        check("!all()", &[], Some("term !all() is false"));
    }
}
