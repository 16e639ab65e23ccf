//! What is wrong with an object, on its way through the socket.
//!
//! Problems can only be noted at a path, so paths are walked again from their text.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tortie_api::{Path, Problem, Problems};

/// Paths with more steps keep the rest as one step.
const MAX_STEPS: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProblemJson {
    field: String,
    value: Option<String>,
    rule: String,
    detail: Option<String>,
}

impl From<&Problem> for ProblemJson {
    fn from(problem: &Problem) -> Self {
        Self {
            field: problem.field.clone(),
            value: problem.value.clone(),
            rule: problem.rule.clone(),
            detail: problem.detail.clone(),
        }
    }
}

/// The problems again. A detail becomes part of its rule.
pub(super) fn collect(all: &[ProblemJson]) -> Problems {
    let mut problems = Problems::default();
    for problem in all {
        let rule = match &problem.detail {
            Some(detail) => format!("{}\n{detail}", problem.rule),
            None => problem.rule.clone(),
        };
        at(&Path::ROOT, &problem.field, MAX_STEPS, &mut |path| {
            match &problem.value {
                // One that was cut is JSON no more, and shown as text.
                Some(text) => {
                    let value = serde_json::from_str(text);
                    let value = value.unwrap_or_else(|_| Value::from(text.as_str()));
                    problems.add(path, value, rule.as_str());
                }
                None => problems.add_missing(path, rule.as_str()),
            }
        });
    }
    problems
}

/// Goes down a path as it is displayed, such as `spec.rules[0]["a key"]`, and calls at its end.
fn at(path: &Path<'_>, text: &str, steps: usize, then: &mut dyn FnMut(&Path<'_>)) {
    let text = text.strip_prefix('.').unwrap_or(text);
    if text.is_empty() {
        return then(path);
    }
    if steps == 0 {
        return then(&path.field(text));
    }
    if let Some((index, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']'))
        && let Ok(index) = index.parse()
    {
        return at(&path.index(index), rest, steps - 1, then);
    }
    if let Some((name, rest)) = quoted(text) {
        return at(&path.field(&name), rest, steps - 1, then);
    }
    let is_end = |&(at, c): &(usize, char)| at > 0 && matches!(c, '.' | '[');
    let end = text.char_indices().find(is_end);
    let (name, rest) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    at(&path.field(name), rest, steps - 1, then);
}

/// The name in a step such as `["a key"]`, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('[')?;
    let mut names = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let name = names.next()?.ok()?;
    let rest = text.get(names.byte_offset()..)?;
    Some((name, rest.strip_prefix(']')?))
}
