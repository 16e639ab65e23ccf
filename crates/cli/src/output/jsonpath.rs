//! JSON path templates in kubectl's form: text with `{.path}` in it, and `{range .list[*]}…{end}`.

use anyhow::{Result, bail};
use serde_json::Value;

/// How deep ranges may be nested.
const MAX_NESTING: usize = 16;

/// A parsed template.
#[derive(Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Path(Vec<Step>),
    Range(Vec<Step>, Vec<Part>),
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Every value of this name, at any depth.
    Descend(String),
    /// Items whose path compares so with a literal; without a literal, items that have the path.
    Filter(Vec<Step>, Option<(Comparison, Value)>),
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum Comparison {
    Equal,
    NotEqual,
}

impl Template {
    /// Parses a template.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut rest = text;
        let parts = parse_parts(&mut rest, 0)?;
        if !rest.is_empty() {
            bail!("jsonpath: `{{end}}` without `{{range}}`");
        }
        Ok(Self(parts))
    }

    /// Parses a bare path, with or without braces.
    pub(crate) fn parse_path(text: &str) -> Result<Self> {
        let inner = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(text);
        Ok(Self(vec![Part::Path(parse_path(inner)?)]))
    }

    /// Fills the template with a value.
    pub(crate) fn render(&self, value: &Value) -> String {
        let mut out = String::new();
        render(&self.0, value, &mut out);
        out
    }
}

/// Parses up to the end of the text or of the enclosing range.
fn parse_parts(rest: &mut &str, nesting: usize) -> Result<Vec<Part>> {
    if nesting > MAX_NESTING {
        bail!("jsonpath: ranges are nested more than {MAX_NESTING} deep");
    }
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let Some(open) = rest.find('{') else {
            parts.push(Part::Text(std::mem::take(rest).to_owned()));
            break;
        };
        if open > 0 {
            parts.push(Part::Text(rest[..open].to_owned()));
        }
        let Some(close) = closing_brace(&rest[open..]) else {
            bail!("jsonpath: `{{` at position {} is not closed", open + 1);
        };
        let inner = rest[open + 1..open + close].trim();
        let after = &rest[open + close + 1..];
        if inner == "end" {
            if nesting > 0 {
                *rest = after;
            } else {
                *rest = &rest[open..];
            }
            return Ok(parts);
        }
        *rest = after;
        parts.push(match inner.strip_prefix("range ") {
            Some(path) => {
                let path = parse_path(path)?;
                Part::Range(path, parse_parts(rest, nesting + 1)?)
            }
            None if inner.starts_with(['"', '\'']) => Part::Text(unquote(inner)?),
            None => Part::Path(parse_path(inner)?),
        });
    }
    if nesting > 0 {
        bail!("jsonpath: `{{range}}` without `{{end}}`");
    }
    Ok(parts)
}

/// The position of the brace that closes the one at the start; braces in quotes do not count.
fn closing_brace(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices().skip(1) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Some(at),
            _ => {}
        }
    }
    None
}

/// The text in quotes, with `\n` and `\t` meaning what they usually do.
fn unquote(text: &str) -> Result<String> {
    let quote = text.chars().next().unwrap_or('"');
    match text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
        Some(inner) => Ok(inner
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\\"", "\"")),
        None => bail!("jsonpath: {text} is not closed"),
    }
}

fn parse_path(text: &str) -> Result<Vec<Step>> {
    let mut rest = text.trim();
    rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            let (name, after) = take_name(after);
            steps.push(Step::Descend(name));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = take_name(after);
            match name.as_str() {
                "" => {}
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Field(name)),
            }
            rest = after;
        } else if rest.starts_with('[') {
            let Some(close) = closing_bracket(rest) else {
                bail!("jsonpath: `[` is not closed in `{text}`")
            };
            steps.push(parse_bracket(rest[1..close].trim())?);
            rest = &rest[close + 1..];
        } else {
            let (name, after) = take_name(rest);
            if name.is_empty() {
                bail!("jsonpath: cannot read `{rest}` in `{text}`");
            }
            steps.push(Step::Field(name));
            rest = after;
        }
    }
    Ok(steps)
}

/// Takes a field name; `\.` stands for a dot within it.
fn take_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            c => name.push(c),
        }
    }
    (name, "")
}

/// The position of the bracket that closes the one at the start.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn parse_bracket(inner: &str) -> Result<Step> {
    if inner == "*" {
        return Ok(Step::All);
    }
    if inner.starts_with(['"', '\'']) {
        return Ok(Step::Field(unquote(inner)?));
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|c| c.strip_suffix(')')) {
        return parse_filter(condition);
    }
    match inner.parse() {
        Ok(index) => Ok(Step::Index(index)),
        Err(_) => bail!(
            "jsonpath: `[{inner}]` is not an index, `*`, a quoted name or a filter `?(@.field==\"value\")`"
        ),
    }
}

fn parse_filter(condition: &str) -> Result<Step> {
    for (operator, comparison) in [("==", Comparison::Equal), ("!=", Comparison::NotEqual)] {
        if let Some((path, literal)) = condition.split_once(operator) {
            let literal = literal.trim();
            let literal = if literal.starts_with(['"', '\'']) {
                Value::String(unquote(literal)?)
            } else {
                serde_json::from_str(literal).unwrap_or_else(|_| Value::String(literal.to_owned()))
            };
            return Ok(Step::Filter(parse_path(path)?, Some((comparison, literal))));
        }
    }
    Ok(Step::Filter(parse_path(condition)?, None))
}

fn render(parts: &[Part], value: &Value, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => {
                let found = select(value, path);
                let texts: Vec<String> = found.into_iter().map(to_text).collect();
                out.push_str(&texts.join(" "));
            }
            Part::Range(path, body) => {
                for item in select(value, path) {
                    render(body, item, out);
                }
            }
        }
    }
}

fn select<'v>(value: &'v Value, path: &[Step]) -> Vec<&'v Value> {
    let mut current = vec![value];
    for step in path {
        current = current
            .into_iter()
            .flat_map(|value| apply(value, step))
            .collect();
    }
    current
}

fn apply<'v>(value: &'v Value, step: &Step) -> Vec<&'v Value> {
    let children = || -> Vec<&'v Value> {
        match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        }
    };
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => {
            let Value::Array(items) = value else {
                return Vec::new();
            };
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let index = if *index < 0 { length + index } else { *index };
            usize::try_from(index)
                .ok()
                .and_then(|index| items.get(index))
                .into_iter()
                .collect()
        }
        Step::All => children(),
        Step::Descend(name) => {
            let mut found: Vec<&Value> = value.get(name).into_iter().collect();
            found.extend(children().into_iter().flat_map(|child| apply(child, step)));
            found
        }
        Step::Filter(path, condition) => children()
            .into_iter()
            .filter(|child| {
                let found = select(child, path);
                match condition {
                    None => !found.is_empty(),
                    Some((Comparison::Equal, literal)) => found.contains(&literal),
                    Some((Comparison::NotEqual, literal)) => !found.contains(&literal),
                }
            })
            .collect(),
    }
}

fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(template: &str, expected: &str) {
        let value = json!({
            "items": [
                {"metadata": {"name": "a", "labels": {"x.y/z": "1"}}, "spec": {"order": 10}},
                {"metadata": {"name": "b"}, "spec": {"order": 20, "types": ["Ingress", "Egress"]}},
            ]
        });
        assert_eq!(
            Template::parse(template).unwrap().render(&value),
            expected,
            "{template}"
        );
    }

    #[test]
    fn paths_select_fields_indexes_and_wildcards() {
        check("{.items[*].metadata.name}", "a b");
        check("{.items[0].spec.order}", "10");
        check("{.items[-1].metadata.name}", "b");
        check("{$.items[1].spec.types}", "[\"Ingress\",\"Egress\"]");
        check("{..name}", "a b");
        check("{.items[0].metadata.labels.x\\.y/z}", "1");
        check("{.items[0].metadata.labels['x.y/z']}", "1");
        check("{.missing}", "");
    }

    #[test]
    fn ranges_repeat_their_body() {
        check(
            "{range .items[*]}{.metadata.name}={.spec.order}{\"\\n\"}{end}done",
            "a=10\nb=20\ndone",
        );
    }

    #[test]
    fn filters_compare_with_literals() {
        check("{.items[?(@.spec.order==20)].metadata.name}", "b");
        check("{.items[?(@.metadata.name!='a')].metadata.name}", "b");
        check("{.items[?(@.spec.types)].metadata.name}", "b");
    }

    #[test]
    fn mistakes_are_named() {
        for bad in ["{.a", "{range .items[*]}x", "{end}", "{.a[x]}", "{.a[0}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
