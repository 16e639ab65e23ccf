//! Selectors compiled to a few bytes, with label names as numbers.
//!
//! A program is an expression in prefix form: an operation, then its operands. Equal expressions over the same names
//! are equal bytes, so a program is also the key by which equal selectors are found.

use tortie_selector::{Comparison, Expr, Node, Selector};

use crate::bytes::{Reader, length, put_bytes, put_number};
use crate::labels::LabelView;
use crate::names::Names;

const ALL: u8 = 0;
const HAS: u8 = 1;
const EQUAL: u8 = 2;
const NOT_EQUAL: u8 = 3;
const CONTAINS: u8 = 4;
const STARTS_WITH: u8 = 5;
const ENDS_WITH: u8 = 6;
const IN: u8 = 7;
const NOT_IN: u8 = 8;
const NOT: u8 = 9;
const AND: u8 = 10;
const OR: u8 = 11;

/// Compiles a selector; the label names in it are then used once more each.
pub(crate) fn compile(selector: &Selector, names: &mut Names) -> Box<[u8]> {
    let mut out = Vec::with_capacity(32);
    put_expr(selector.root(), names, &mut out);
    out.into_boxed_slice()
}

fn put_expr(expr: Expr<'_>, names: &mut Names, out: &mut Vec<u8>) {
    match expr.node() {
        // `global()` holds for everything; its meaning is in how selectors of rules are written.
        Node::All | Node::Global => out.push(ALL),
        Node::Has { label } => {
            out.push(HAS);
            put_number(out, names.acquire(label));
        }
        Node::Compare {
            label,
            comparison,
            value,
        } => {
            out.push(match comparison {
                Comparison::Equal => EQUAL,
                Comparison::NotEqual => NOT_EQUAL,
                Comparison::Contains => CONTAINS,
                Comparison::StartsWith => STARTS_WITH,
                Comparison::EndsWith => ENDS_WITH,
            });
            put_number(out, names.acquire(label));
            put_bytes(out, value.as_bytes());
        }
        Node::In { label, values } | Node::NotIn { label, values } => {
            out.push(if matches!(expr.node(), Node::In { .. }) {
                IN
            } else {
                NOT_IN
            });
            put_number(out, names.acquire(label));
            put_number(out, length(values.len()));
            for value in values.iter() {
                put_bytes(out, value.as_bytes());
            }
        }
        Node::Not(operand) => {
            out.push(NOT);
            put_expr(operand, names, out);
        }
        Node::And(operands) | Node::Or(operands) => {
            out.push(if matches!(expr.node(), Node::And(_)) {
                AND
            } else {
                OR
            });
            // The length lets evaluation jump over operands that cannot change the result.
            let mut body = Vec::new();
            for operand in operands {
                put_expr(operand, names, &mut body);
            }
            put_bytes(out, &body);
        }
    }
}

/// Ends the use of the label names in a program.
pub(crate) fn release(program: &[u8], names: &mut Names) {
    let mut reader = Reader::new(program);
    while !reader.is_empty() {
        match reader.byte() {
            ALL | NOT => {}
            HAS => names.release(reader.number()),
            IN | NOT_IN => {
                names.release(reader.number());
                for _ in 0..reader.number() {
                    reader.bytes();
                }
            }
            AND | OR => {
                reader.number();
            }
            _ => {
                names.release(reader.number());
                reader.bytes();
            }
        }
    }
}

/// Whether labels satisfy a program.
#[inline]
pub(crate) fn matches(program: &[u8], labels: &impl LabelView) -> bool {
    evaluate(&mut Reader::new(program), labels)
}

fn evaluate(reader: &mut Reader<'_>, labels: &impl LabelView) -> bool {
    let operation = reader.byte();
    match operation {
        ALL => true,
        HAS => labels.get(reader.number()).is_some(),
        IN | NOT_IN => {
            let actual = labels.get(reader.number());
            let mut found = false;
            for _ in 0..reader.number() {
                let value = reader.bytes();
                found |= actual == Some(value);
            }
            found == (operation == IN)
        }
        NOT => !evaluate(reader, labels),
        AND | OR => {
            let mut operands = Reader::new(reader.bytes());
            while !operands.is_empty() {
                if evaluate(&mut operands, labels) == (operation == OR) {
                    return operation == OR;
                }
            }
            operation == AND
        }
        _ => {
            let actual = labels.get(reader.number());
            let value = reader.bytes();
            match operation {
                EQUAL => actual == Some(value),
                NOT_EQUAL => actual != Some(value),
                STARTS_WITH => actual.is_some_and(|actual| actual.starts_with(value)),
                ENDS_WITH => actual.is_some_and(|actual| actual.ends_with(value)),
                _ => actual.is_some_and(|actual| contains(actual, value)),
            }
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests;
