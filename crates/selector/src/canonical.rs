//! Canonical text: the one spelling of a selector that is compared, hashed and stored.
//!
//! Operators stand between single spaces. `&&` and `||` are always in parentheses, and nothing else
//! is. Strings are in double quotes, unless they contain one. Sets are sorted.
//!
//! The writer reads names and values from the text that a draft was parsed from, and turns every
//! span of the draft into a span of its output.

use crate::tree::{Kind, NodeId, Span, StoredNode, Tree};

/// A tree whose spans refer to the text that it was parsed from, not to canonical text.
pub(crate) struct Draft {
    pub(crate) nodes: Vec<StoredNode>,
    pub(crate) members: Vec<Span>,
}

/// Writes the canonical text of a draft, with `prefix` before every label name.
pub(crate) fn write(draft: Draft, source: &str, prefix: &str) -> Tree {
    let root = NodeId::new(draft.nodes.len() - 1);
    // Canonical text is a little longer than tightly written text.
    let text = String::with_capacity(source.len() + source.len() / 4 + "all()".len());
    let mut writer = Writer {
        draft,
        source,
        prefix,
        text,
    };
    writer.node(root);
    let Writer { draft, text, .. } = writer;
    Tree {
        text: text.into_boxed_str(),
        nodes: draft.nodes.into_boxed_slice(),
        members: draft.members.into_boxed_slice(),
    }
}

/// The quote that canonical text puts around a string.
pub(crate) fn quote_for(value: &str) -> char {
    if value.contains('"') { '\'' } else { '"' }
}

struct Writer<'a> {
    draft: Draft,
    source: &'a str,
    prefix: &'a str,
    text: String,
}

// === impl Writer ===

impl Writer<'_> {
    fn node(&mut self, id: NodeId) {
        let start = self.text.len();
        let kind = match self.draft.nodes[id.index()].kind {
            Kind::All => {
                self.text.push_str("all()");
                Kind::All
            }
            Kind::Global => {
                self.text.push_str("global()");
                Kind::Global
            }
            Kind::Has(label) => {
                self.text.push_str("has(");
                let label = self.label(label);
                self.text.push(')');
                Kind::Has(label)
            }
            Kind::Compare {
                comparison,
                label,
                value,
            } => {
                let label = self.label(label);
                self.text.push(' ');
                self.text.push_str(comparison.as_str());
                self.text.push(' ');
                Kind::Compare {
                    comparison,
                    label,
                    value: self.string(value),
                }
            }
            Kind::In { label, members } => {
                let label = self.label(label);
                self.text.push_str(" in ");
                self.set(members);
                Kind::In { label, members }
            }
            Kind::NotIn { label, members } => {
                let label = self.label(label);
                self.text.push_str(" not in ");
                self.set(members);
                Kind::NotIn { label, members }
            }
            Kind::Not(operand) => {
                self.text.push('!');
                self.node(operand);
                Kind::Not(operand)
            }
            Kind::And(first) => {
                self.chain(first, " && ");
                Kind::And(first)
            }
            Kind::Or(first) => {
                self.chain(first, " || ");
                Kind::Or(first)
            }
        };
        let text = Span::new(start, self.text.len());
        let node = &mut self.draft.nodes[id.index()];
        node.kind = kind;
        node.text = text;
    }

    fn chain(&mut self, first: NodeId, operator: &str) {
        self.text.push('(');
        self.node(first);
        let mut last = first;
        while let Some(operand) = self.draft.nodes[last.index()].next {
            self.text.push_str(operator);
            self.node(operand);
            last = operand;
        }
        self.text.push(')');
    }

    fn label(&mut self, name: Span) -> Span {
        let start = self.text.len();
        self.text.push_str(self.prefix);
        self.text.push_str(name.of(self.source));
        Span::new(start, self.text.len())
    }

    fn string(&mut self, value: Span) -> Span {
        let value = value.of(self.source);
        let quote = quote_for(value);
        self.text.push(quote);
        let start = self.text.len();
        self.text.push_str(value);
        let end = self.text.len();
        self.text.push(quote);
        Span::new(start, end)
    }

    fn set(&mut self, members: Span) {
        self.text.push('{');
        for (position, index) in members.range().enumerate() {
            if position > 0 {
                self.text.push_str(", ");
            }
            self.draft.members[index] = self.string(self.draft.members[index]);
        }
        self.text.push('}');
    }
}
