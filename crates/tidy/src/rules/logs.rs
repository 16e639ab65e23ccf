//! A log line is a constant sentence; what varies is in fields, where a machine finds it.

use crate::lexer::{Kind, Token, line_of, tokens};
use crate::tree::{Tree, Violation};

const LEVELS: [&str; 5] = ["trace!(", "debug!(", "info!(", "warn!(", "error!("];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.sources() {
        for message in messages(&tokens(&file.text)) {
            let text = message.text.trim_start_matches(['r', '#', '"']);
            let problem = if text.contains('{') {
                "a log line is made of parts: put data into fields"
            } else if text.starts_with(char::is_lowercase) {
                "a log line begins with a small letter"
            } else {
                continue;
            };
            violations.push(Violation {
                path: file.path.clone(),
                line: line_of(&file.text, message.start),
                problem: problem.to_owned(),
            });
        }
    }
    violations
}

/// The sentences of log lines: strings in `tracing::…!(…)` that are no value of a field.
fn messages<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut messages = Vec::new();
    // How many brackets are open within the log line, and what comes before a string.
    let mut depth = 0_usize;
    let mut before = ' ';
    for token in tokens {
        match token.kind {
            Kind::Text if depth == 1 && before != '=' => messages.push(*token),
            Kind::Text => before = '"',
            Kind::Comment => {}
            Kind::Code => {
                let mut rest = token.text;
                while !rest.is_empty() {
                    if depth == 0 {
                        let Some(at) = rest.find("tracing::") else {
                            break;
                        };
                        rest = &rest[at + "tracing::".len()..];
                        let level = LEVELS.iter().find_map(|level| rest.strip_prefix(level));
                        if let Some(after) = level {
                            (rest, depth, before) = (after, 1, '(');
                        }
                        continue;
                    }
                    let c = rest.chars().next().unwrap_or(' ');
                    match c {
                        '(' | '[' | '{' => depth += 1,
                        ')' | ']' | '}' => depth -= 1,
                        _ => {}
                    }
                    if !c.is_whitespace() {
                        before = c;
                    }
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[track_caller]
    fn check_that(text: &str, expected: usize) {
        assert_eq!(check(&tree(5, text)).len(), expected, "{text}");
    }

    #[test]
    fn data_is_in_fields() {
        check_that("tracing::warn!(%error, \"It failed\");", 0);
        check_that("tracing::warn!(\"It failed: {error}\");", 1);
        check_that("tracing::info!(a = f(\"{b}\"), c = \"{d}\", \"Done\");", 0);
        check_that("tracing::info!(a, \"done\"); g(\"{b}\");", 1);
    }
}
