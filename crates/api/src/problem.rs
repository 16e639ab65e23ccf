//! What is wrong with an object: the field, its value and the rule.

use std::fmt;

use serde_json::Value;

/// Longest rendering of a value in a message; the rest is cut.
const MAX_SHOWN: usize = 80;

/// Where in an object a value stands, built on the stack while walking down.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, such as `spec.ingress[0].source.nets[1]`; empty for the object as a whole.
    pub field: String,
    /// The offending value as JSON, cut to a readable length; `None` where the field is missing.
    pub value: Option<String>,
    /// What is wrong and what would be right.
    pub rule: String,
    /// More lines that help, such as a caret under the offending character.
    pub detail: Option<String>,
}

/// All that is wrong with one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Path<'static> {
    /// The object itself.
    pub const ROOT: Self = Self {
        parent: None,
        step: Step::Root,
    };
}

impl<'a> Path<'a> {
    /// The path of a field of the object at this path.
    #[must_use]
    pub fn field<'b>(&'b self, name: &'b str) -> Path<'b>
    where
        'a: 'b,
    {
        Path {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// The path of an element of the list at this path.
    #[must_use]
    pub fn index<'b>(&'b self, index: usize) -> Path<'b>
    where
        'a: 'b,
    {
        Path {
            parent: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Field(name) => {
                if self.parent.is_some_and(|p| !matches!(p.step, Step::Root)) {
                    f.write_str(".")?;
                }
                let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                if !name.is_empty() && name.bytes().all(is_plain) {
                    f.write_str(name)
                } else {
                    write!(f, "[{name:?}]")
                }
            }
        }
    }
}

impl Problems {
    /// Notes a problem with a value that is there.
    pub fn add(&mut self, at: &Path<'_>, value: impl serde::Serialize, rule: impl Into<String>) {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.push(at, Some(&value), rule.into(), None);
    }

    /// Notes that a value is missing.
    pub fn add_missing(&mut self, at: &Path<'_>, rule: impl Into<String>) {
        self.push(at, None, rule.into(), None);
    }

    pub(crate) fn push(
        &mut self,
        at: &Path<'_>,
        value: Option<&Value>,
        rule: String,
        detail: Option<String>,
    ) {
        let problem = Problem {
            field: at.to_string(),
            value: value.map(shorten),
            rule,
            detail,
        };
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// `Ok` if nothing is wrong.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Sets the field of every problem, where a path is known only as text.
    pub(crate) fn with_field(mut self, field: impl Into<String>) -> Self {
        let field = field.into();
        for problem in &mut self.0 {
            problem.field.clone_from(&field);
        }
        self
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The value as compact JSON, cut so that a message stays readable.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() {
            "object"
        } else {
            &self.field
        };
        match &self.value {
            Some(value) => write!(f, "{field} = {value}: {}", self.rule),
            None => write!(f, "{field}: {}", self.rule),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
