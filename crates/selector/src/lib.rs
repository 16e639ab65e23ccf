//! The selector language of Calico: which endpoints a policy, rule or pool is about.
//!
//! ```
//! use tortie_selector::Selector;
//!
//! let selector = Selector::parse("app == 'web' && tier not in {'test', 'dev'}")?;
//! assert!(selector.matches(&[("app", "web"), ("tier", "prod")]));
//! assert_eq!(selector.to_string(), r#"(app == "web" && tier not in {"dev", "test"})"#);
//! # Ok::<(), tortie_selector::ParseError>(())
//! ```
//!
//! # Grammar
//!
//! ```text
//! selector := nothing | or                 nothing means all()
//! or       := and ( "||" and )*
//! and      := operand ( "&&" operand )*
//! operand  := "!"* ( "(" or ")" | term )
//! term     := has(label) | all() | global() | label operator
//! operator := "==" string | "!=" string | contains string | starts with string
//!           | ends with string | in set | not in set
//! set      := "{" [ string ("," string)* [","] ] "}"
//! string   := '"' anything but '"' '"'  |  "'" anything but "'" "'"
//! label    := [a-zA-Z0-9_./-]{1,512}
//! ```
//!
//! Only space and tab are white space. Operator words are recognised only after a label, so labels
//! may be called `in` or `contains`. A label that is absent satisfies `!=` and `not in`, and
//! nothing else.
//!
//! # How it is built
//!
//! [`Selector::parse`] reads the text into a flat tree (`tree`), then `canonical` writes the normal
//! form and lets the tree refer to that text alone. `evaluate` reads the stored tree directly;
//! everything else goes through [`Expr`] and [`Node`]: [`LabelRestrictions`] for indexing,
//! [`FailingTerm`] for explaining, and compilers in other crates.
//!
//! # Invariants
//! - No I/O, no clock, no global state.
//! - A tree is at most [`MAX_DEPTH`] high, so walking it recursively is safe. The parser itself
//!   does not recurse.
//! - The canonical text determines the tree, and the identifier of a selector is a hash of it:
//!   data planes and datastores hold such identifiers, so the text must not change.

mod canonical;
mod caret;
mod error;
mod evaluate;
mod expr;
mod failing_term;
pub mod ids;
mod labels;
mod parser;
mod restrictions;
mod scanner;
mod selector;
mod tree;

pub use error::{Found, ParseError, ParseErrorKind};
pub use expr::{Comparison, Expr, Node, Operands, Values};
pub use failing_term::FailingTerm;
pub use labels::Labels;
pub use parser::{MAX_DEPTH, MAX_LENGTH};
pub use restrictions::{LabelRestrictions, Restriction};
pub use scanner::{MAX_LABEL_LENGTH, is_label_name};
pub use selector::{Selector, normalise};
