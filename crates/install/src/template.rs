//! Templates in the part of Go's template language that the chart is written in.
//!
//! Helm reads the same files, so that there is one source for whoever installs with it and whoever does not. What this part lacks is
//! an error that names the place, never text that means something else; and a field that does not exist is one too, which Helm
//! would leave empty.

mod evaluate;
mod functions;
mod lexer;
mod parser;

use serde_json::Value;

/// A template that can be rendered.
#[derive(Debug)]
pub(crate) struct Template {
    name: String,
    nodes: Vec<Node>,
}

/// What is wrong with a template, or with what it is rendered with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template}, line {line}: {reason}")]
pub struct Error {
    /// The file.
    pub template: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// What was read at one place, with its line.
#[derive(Debug)]
struct At<T> {
    line: usize,
    is: T,
}

#[derive(Debug)]
enum Node {
    Text(String),
    Print(At<Pipeline>),
    /// The first branch that holds, or what stands after `else`.
    If(Vec<(At<Pipeline>, Vec<Node>)>, Vec<Node>),
    /// For each of a list, which is `.` there.
    Range(At<Pipeline>, Vec<Node>),
}

/// Calls of which each but the first has the result of the one before as its last argument.
type Pipeline = Vec<Call>;

#[derive(Debug)]
struct Call {
    /// Without one, there is one argument, and it is the result.
    function: Option<String>,
    arguments: Vec<Term>,
}

#[derive(Debug)]
enum Term {
    Literal(Value),
    /// Fields one below the other, from `.` or from `$`.
    Field {
        from: Start,
        path: Vec<String>,
    },
    Group(Pipeline),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Dot,
    Root,
}

impl Template {
    /// Reads a template; the name is for messages.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        let nodes = lexer::pieces(text).and_then(parser::nodes);
        let nodes = nodes.map_err(|at| at.of(name))?;
        Ok(Self {
            name: name.to_owned(),
            nodes,
        })
    }

    /// The text that follows from the data.
    pub(crate) fn render(&self, data: &Value) -> Result<String> {
        let mut out = String::new();
        let rendered = evaluate::render(&self.nodes, data, data, &mut out);
        rendered.map_err(|at| at.of(&self.name))?;
        Ok(out)
    }
}

impl At<String> {
    fn of(self, template: &str) -> Error {
        Error {
            template: template.to_owned(),
            line: self.line,
            reason: self.is,
        }
    }
}
