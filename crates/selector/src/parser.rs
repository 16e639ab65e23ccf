//! From text to tree.
//!
//! The parser keeps open groups on a stack of its own instead of recursing. The height of the tree
//! is limited all the same, for the sake of those that walk it. Parentheses that group nothing leave
//! no trace in the tree.

use crate::canonical::{self, Draft};
use crate::error::{ParseError, ParseErrorKind};
use crate::expr::Comparison;
use crate::scanner::Scanner;
use crate::tree::{Kind, NodeId, Span, StoredNode, Tree};

/// The longest selector, in bytes, as written and in canonical form.
///
/// Calico has no limit of its own; this is as much as an object in a datastore can hold.
pub const MAX_LENGTH: usize = 1 << 20;

/// How many `!`, `&&` and `||` nodes may lie above each other, chains counting once, and how deep
/// parentheses may be nested.
///
/// Selectors made by people and by Calico's conversions stay below 10.
pub const MAX_DEPTH: usize = 256;

/// Reads a selector and writes its canonical form.
pub(crate) fn parse(source: &str) -> Result<Tree, ParseError> {
    let too_long = || ParseError::new(ParseErrorKind::TooLong, source, MAX_LENGTH);
    if source.len() > MAX_LENGTH {
        return Err(too_long());
    }
    let draft = Parser::new(source).parse()?;
    let tree = canonical::write(draft, source, "");
    // Otherwise the canonical form would not be a selector.
    if tree.text.len() > MAX_LENGTH {
        return Err(too_long());
    }
    Ok(tree)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    draft: Draft,
}

/// A node that is not yet part of another.
#[derive(Clone, Copy)]
struct Operand {
    id: NodeId,
    height: usize,
}

/// The operands of a chain of `&&` or `||` so far.
#[derive(Default)]
struct Chain {
    first: Option<NodeId>,
    last: Option<NodeId>,
    height: usize,
}

/// The selector as a whole, or an open parenthesis.
#[derive(Default)]
struct Group {
    /// Whether the whole group is negated, by a `!` before its parenthesis.
    negated: bool,
    /// Finished operands of `||`.
    alternatives: Chain,
    /// Operands of the `&&` chain being read.
    conjunction: Chain,
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn new(source: &'a str) -> Self {
        let draft = Draft {
            nodes: Vec::with_capacity(8),
            members: Vec::new(),
        };
        Self {
            scanner: Scanner::new(source),
            draft,
        }
    }

    fn parse(mut self) -> Result<Draft, ParseError> {
        self.scanner.skip_white_space();
        if self.scanner.is_at_end() {
            self.push(Kind::All);
        } else {
            self.expression()?;
        }
        Ok(self.draft)
    }

    /// Reads operands and what connects them up to the end of the text.
    ///
    /// Precedence needs no more than two chains a group: `&&` continues the conjunction, while `||`
    /// and the end of the group turn it into one alternative.
    fn expression(&mut self) -> Result<(), ParseError> {
        let mut enclosing: Vec<Group> = Vec::new();
        let mut group = Group::default();
        loop {
            let negated = self.negations();
            if self.scanner.peek() == Some(b'(') {
                if enclosing.len() == MAX_DEPTH {
                    return Err(self.scanner.error(ParseErrorKind::TooDeep));
                }
                self.scanner.take("(");
                enclosing.push(std::mem::take(&mut group));
                group.negated = negated;
                continue;
            }
            let term = self.term()?;
            let mut operand = self.negate(term, negated)?;
            // One turn for the operand, and one more for every group that ends after it.
            loop {
                self.append(&mut group.conjunction, operand);
                self.scanner.skip_white_space();
                if self.scanner.take("&&") {
                    break;
                }
                let alternative = self.close(&mut group.conjunction, Kind::And)?;
                self.append(&mut group.alternatives, alternative);
                if self.scanner.take("||") {
                    break;
                }
                let whole = self.close(&mut group.alternatives, Kind::Or)?;
                let Some(outer) = enclosing.pop() else {
                    return if self.scanner.is_at_end() {
                        Ok(())
                    } else {
                        Err(self.scanner.error(ParseErrorKind::ExpectedEnd))
                    };
                };
                if !self.scanner.take(")") {
                    return Err(self.scanner.error(ParseErrorKind::ExpectedGroupEnd));
                }
                operand = self.negate(whole, group.negated)?;
                group = outer;
            }
        }
    }

    /// Takes any number of `!` and says whether they negate.
    fn negations(&mut self) -> bool {
        let mut negated = false;
        self.scanner.skip_white_space();
        while self.scanner.take("!") {
            negated = !negated;
            self.scanner.skip_white_space();
        }
        negated
    }

    fn term(&mut self) -> Result<Operand, ParseError> {
        // A label may be called `has`; only with its parenthesis is it the function.
        let kind = match self.scanner.peek() {
            Some(b'h') if self.scanner.take("has(") => {
                self.scanner.skip_white_space();
                let label = self.scanner.label(ParseErrorKind::ExpectedLabel)?;
                self.function_end("has")?;
                Kind::Has(label)
            }
            Some(b'a') if self.scanner.take("all(") => {
                self.function_end("all")?;
                Kind::All
            }
            Some(b'g') if self.scanner.take("global(") => {
                self.function_end("global")?;
                Kind::Global
            }
            _ => {
                let label = self.scanner.label(ParseErrorKind::ExpectedTerm)?;
                self.scanner.skip_white_space();
                self.operation(label)?
            }
        };
        Ok(Operand {
            id: self.push(kind),
            height: 0,
        })
    }

    fn function_end(&mut self, function: &'static str) -> Result<(), ParseError> {
        self.scanner.skip_white_space();
        if self.scanner.take(")") {
            Ok(())
        } else {
            Err(self
                .scanner
                .error(ParseErrorKind::ExpectedFunctionEnd { function }))
        }
    }

    fn operation(&mut self, label: Span) -> Result<Kind, ParseError> {
        let scanner = &mut self.scanner;
        let comparison = if scanner.take("==") {
            Comparison::Equal
        } else if scanner.take("!=") {
            Comparison::NotEqual
        } else if scanner.take_operator(&["in"]) {
            return Ok(Kind::In {
                label,
                members: self.set()?,
            });
        } else if scanner.take_operator(&["not", "in"]) {
            return Ok(Kind::NotIn {
                label,
                members: self.set()?,
            });
        } else if scanner.take_operator(&["contains"]) {
            Comparison::Contains
        } else if scanner.take_operator(&["starts", "with"]) {
            Comparison::StartsWith
        } else if scanner.take_operator(&["ends", "with"]) {
            Comparison::EndsWith
        } else {
            return Err(scanner.error(ParseErrorKind::ExpectedOperator));
        };
        scanner.skip_white_space();
        match scanner.string()? {
            Some(value) => Ok(Kind::Compare {
                comparison,
                label,
                value,
            }),
            None => Err(scanner.error(ParseErrorKind::ExpectedString)),
        }
    }

    fn set(&mut self) -> Result<Span, ParseError> {
        self.scanner.skip_white_space();
        if !self.scanner.take("{") {
            return Err(self.scanner.error(ParseErrorKind::ExpectedSet));
        }
        let start = self.draft.members.len();
        loop {
            self.scanner.skip_white_space();
            let Some(member) = self.scanner.string()? else {
                break self.set_end(ParseErrorKind::ExpectedMember)?;
            };
            self.draft.members.push(member);
            self.scanner.skip_white_space();
            if !self.scanner.take(",") {
                break self.set_end(ParseErrorKind::ExpectedSetEnd)?;
            }
        }
        let source = self.scanner.source();
        let mut members = self.draft.members.split_off(start);
        members.sort_unstable_by_key(|member| member.of(source));
        members.dedup_by_key(|member| member.of(source));
        self.draft.members.append(&mut members);
        Ok(Span::new(start, self.draft.members.len()))
    }

    fn set_end(&mut self, missing: ParseErrorKind) -> Result<(), ParseError> {
        if self.scanner.take("}") {
            Ok(())
        } else {
            Err(self.scanner.error(missing))
        }
    }

    fn negate(&mut self, operand: Operand, negated: bool) -> Result<Operand, ParseError> {
        if negated {
            self.above(operand.height, Kind::Not(operand.id))
        } else {
            Ok(operand)
        }
    }

    fn append(&mut self, chain: &mut Chain, operand: Operand) {
        match chain.last {
            Some(last) => self.draft.nodes[last.index()].next = Some(operand.id),
            None => chain.first = Some(operand.id),
        }
        chain.last = Some(operand.id);
        chain.height = chain.height.max(operand.height);
    }

    /// Turns a chain into one operand, and empties it. An operand that stands alone stays as it is.
    fn close(
        &mut self,
        chain: &mut Chain,
        kind: fn(NodeId) -> Kind,
    ) -> Result<Operand, ParseError> {
        let Chain {
            first,
            last,
            height,
        } = std::mem::take(chain);
        let first = first.expect("an operand was appended before the chain is closed");
        if last.is_some_and(|last| last.index() == first.index()) {
            return Ok(Operand { id: first, height });
        }
        self.above(height, kind(first))
    }

    /// Adds a node above others of which the highest has this height.
    fn above(&mut self, height: usize, kind: Kind) -> Result<Operand, ParseError> {
        if height == MAX_DEPTH {
            return Err(self.scanner.error(ParseErrorKind::TooDeep));
        }
        Ok(Operand {
            id: self.push(kind),
            height: height + 1,
        })
    }

    fn push(&mut self, kind: Kind) -> NodeId {
        let id = NodeId::new(self.draft.nodes.len());
        self.draft.nodes.push(StoredNode {
            text: Span::EMPTY,
            next: None,
            kind,
        });
        id
    }
}
