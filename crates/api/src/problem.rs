//! What is wrong with an object: the field, its value and the rule.

use std::fmt;

use serde_json::Value;

/// Longest rendering of a value in a message; the rest is cut.
const MAX_SHOWN: usize = 80;

/// How many problems of an object are listed: who made more will not read them, and they can be more than the object.
const MAX_LISTED: usize = 1000;

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

/// What a problem says first of a field that a type does not have.
pub(crate) const UNKNOWN_FIELD: &str = "unknown field";

impl Problem {
    /// Whether it is that the type has no such field.
    pub fn is_unknown_field(&self) -> bool {
        self.rule.starts_with(UNKNOWN_FIELD)
    }
}

impl Problems {
    /// Notes a problem with a value that is there.
    pub fn add(&mut self, at: &Path<'_>, value: impl serde::Serialize, rule: impl Into<String>) {
        if self.is_full() {
            return;
        }
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
        if self.is_full() {
            return;
        }
        let problem = Problem {
            field: at.to_string(),
            value: value.map(shorten),
            rule,
            detail,
        };
        if !self.0.contains(&problem) {
            self.list(problem);
        }
    }

    fn is_full(&self) -> bool {
        self.0.len() > MAX_LISTED
    }

    /// Adds a problem while there is room, and then that there are more.
    fn list(&mut self, problem: Problem) {
        match self.0.len() {
            0..MAX_LISTED => self.0.push(problem),
            MAX_LISTED => self.0.push(Problem {
                field: String::new(),
                value: None,
                rule: format!("there are more problems than the {MAX_LISTED} that are listed"),
                detail: None,
            }),
            _ => {}
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

    /// Those of other fields than these, and not of what is in these.
    #[must_use]
    pub fn without_fields(mut self, fields: &[String]) -> Self {
        let is_within = |field: &str, outer: &String| {
            let rest = field.strip_prefix(outer.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.0
            .retain(|problem| !fields.iter().any(|outer| is_within(&problem.field, outer)));
        self
    }

    /// Takes the fields that are wrong out of an object, for the rest to be looked at; of a list, the whole of it.
    pub fn take_out_of(&self, object: &mut Value) {
        for problem in &self.0 {
            let fields: Vec<&str> = problem.field.split(['.', '[']).collect();
            take_out(object, &fields);
        }
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Self) {
        for problem in other.0 {
            self.list(problem);
        }
    }
}

/// Removes the last field of a path; whether that is done. Where the last step is an item of a list, the list goes.
fn take_out(value: &mut Value, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    match value {
        Value::Array(items) => {
            let index = first.trim_end_matches(']').parse::<usize>().ok();
            let item = index.and_then(|index| items.get_mut(index));
            item.is_some_and(|item| take_out(item, rest))
        }
        Value::Object(fields) => {
            let is_done = fields
                .get_mut(*first)
                .is_some_and(|field| take_out(field, rest));
            is_done || fields.remove(*first).is_some()
        }
        _ => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_can_be_taken_out() {
        let mut object =
            serde_json::json!({"a": {"b": 1, "c": [{"d": 2, "e": 3}], "f": [1, 2]}, "g": 4});
        let mut problems = Problems::default();
        let root = Path::ROOT;
        let a = root.field("a");
        problems.add(&a.field("b"), 1, "must be text");
        problems.add(&a.field("c").index(0).field("d"), 2, "must be text");
        problems.add(&a.field("f").index(1), 2, "must be text");
        problems.add_missing(&root.field("h"), "must be given");
        problems.take_out_of(&mut object);
        assert_eq!(object, serde_json::json!({"a": {"c": [{"e": 3}]}, "g": 4}));
    }

    #[test]
    fn of_very_many_problems_the_first_are_listed() {
        let mut problems = Problems::default();
        for index in 0..5_000 {
            problems.add(&Path::ROOT.index(index), index, "must be less");
        }
        let mut others = Problems::default();
        others.add(&Path::ROOT, 1, "is another");
        problems.extend(others);
        assert_eq!(problems.iter().count(), 1_001);
        assert_eq!(problems.iter().next().unwrap().field, "[0]");
        let last = problems.iter().last().unwrap();
        assert_eq!(
            last.to_string(),
            "object: there are more problems than the 1000 that are listed"
        );
    }
}
