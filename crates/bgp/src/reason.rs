//! Why something is as it is: for people in words, for programs with the field that it comes from.

use std::fmt;

use serde::Serialize;

use crate::Problem;
use crate::plan::Origin;

/// Why something is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// In words.
    pub text: String,
    /// The field of an object that it comes from, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What that field says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Reason {
    /// Only in words so far.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            origin: None,
            value: None,
            remedy: None,
        }
    }

    /// Which comes from this field.
    #[must_use]
    pub fn of(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Which says so.
    #[must_use]
    pub fn value(mut self, value: impl fmt::Display) -> Self {
        self.value = Some(value.to_string());
        self
    }

    /// Which this would change.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl From<&Problem> for Reason {
    fn from(problem: &Problem) -> Self {
        let field = problem.field.clone();
        Self::new(problem.reason.clone()).of(Origin::new(
            problem.kind,
            problem.name.as_str(),
            field,
        ))
    }
}

/// `TEXT (KIND(NAME): FIELD = VALUE)`
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        let Some(origin) = &self.origin else {
            return Ok(());
        };
        write!(f, " ({origin}")?;
        if let Some(value) = &self.value {
            write!(f, " = {value}")?;
        }
        f.write_str(")")
    }
}
