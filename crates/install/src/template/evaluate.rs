//! A tree and data to text.

use std::borrow::Cow;

use serde_json::Value;

use super::{At, Node, Pipeline, Start, Term, functions};

/// Appends what the nodes print.
pub(super) fn render(
    nodes: &[Node],
    dot: &Value,
    root: &Value,
    out: &mut String,
) -> Result<(), At<String>> {
    let value = |pipeline: &At<Pipeline>| {
        let line = pipeline.line;
        let value = evaluate(&pipeline.is, dot, root);
        value
            .map(Cow::into_owned)
            .map_err(|reason| At { line, is: reason })
    };
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Print(pipeline) => {
                let line = pipeline.line;
                let text = functions::text(&value(pipeline)?);
                out.push_str(&text.map_err(|reason| At { line, is: reason })?);
            }
            Node::If(branches, otherwise) => {
                let mut body = otherwise;
                for (condition, branch) in branches {
                    if functions::is_true(&value(condition)?) {
                        body = branch;
                        break;
                    }
                }
                render(body, dot, root, out)?;
            }
            Node::Range(list, body) => match value(list)? {
                Value::Array(items) => {
                    for item in &items {
                        render(body, item, root, out)?;
                    }
                }
                other => {
                    let is = format!("`range` needs a list, and was given {other}");
                    return Err(At {
                        line: list.line,
                        is,
                    });
                }
            },
        }
    }
    Ok(())
}

fn evaluate<'a>(
    pipeline: &'a Pipeline,
    dot: &'a Value,
    root: &'a Value,
) -> Result<Cow<'a, Value>, String> {
    let mut last = None;
    for call in pipeline {
        let mut arguments = Vec::new();
        for term in &call.arguments {
            arguments.push(match term {
                Term::Literal(value) => Cow::Borrowed(value),
                Term::Field { from, path } => Cow::Borrowed(field(*from, path, dot, root)?),
                Term::Group(group) => evaluate(group, dot, root)?,
            });
        }
        arguments.extend(last);
        last = Some(match &call.function {
            Some(function) => Cow::Owned(functions::call(function, &arguments)?),
            None => arguments.pop().unwrap_or(Cow::Owned(Value::Null)),
        });
    }
    last.ok_or_else(|| "nothing to evaluate".to_owned())
}

fn field<'a>(
    from: Start,
    path: &[String],
    dot: &'a Value,
    root: &'a Value,
) -> Result<&'a Value, String> {
    let start = match from {
        Start::Dot => dot,
        Start::Root => root,
    };
    path.iter().try_fold(start, |value, name| {
        value
            .get(name)
            .ok_or_else(|| format!("there is no field `.{}`", path.join(".")))
    })
}
