//! Text and actions to a tree.

use std::vec::IntoIter;

use serde_json::Value;

use super::lexer::{Piece, Token};
use super::{At, Call, Node, Pipeline, Start, Term};

/// How deep conditions and parentheses may be in each other.
const MAX_DEPTH: usize = 32;

type Result<T> = std::result::Result<T, At<String>>;

/// Where a run of nodes stops.
enum Stop {
    /// With the template.
    Template,
    /// At `end`.
    Closed,
    /// At `else`, with the condition after it if there is one.
    Else(Option<At<Pipeline>>),
}

/// The tree of a whole template.
pub(super) fn nodes(pieces: Vec<Piece<'_>>) -> Result<Vec<Node>> {
    let mut last = 1;
    let mut pieces = pieces.into_iter();
    let (nodes, end) = run(&mut pieces, &mut last, 0)?;
    match end {
        Stop::Template => Ok(nodes),
        Stop::Closed => Err(wrong(last, "`end` without a beginning")),
        Stop::Else(_) => Err(wrong(last, "`else` without an `if`")),
    }
}

fn run(
    pieces: &mut IntoIter<Piece<'_>>,
    last: &mut usize,
    depth: usize,
) -> Result<(Vec<Node>, Stop)> {
    if depth > MAX_DEPTH {
        return Err(wrong(*last, "too deep"));
    }
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        let At { line, is: tokens } = match piece {
            Piece::Text(text) => {
                nodes.push(Node::Text(text.to_owned()));
                continue;
            }
            Piece::Action(action) => action,
        };
        *last = line;
        let mut tokens = tokens.into_iter();
        let word = match tokens.as_slice().first() {
            Some(Token::Word(word)) => word.as_str(),
            _ => "",
        };
        match word {
            "end" if tokens.len() == 1 => return Ok((nodes, Stop::Closed)),
            "else" => {
                tokens.next();
                let condition = match tokens.next() {
                    None => None,
                    Some(Token::Word(word)) if word == "if" => Some(whole(tokens, line)?),
                    Some(_) => return Err(wrong(line, "only `if` may stand after `else`")),
                };
                return Ok((nodes, Stop::Else(condition)));
            }
            "if" => {
                tokens.next();
                let first = whole(tokens, line)?;
                nodes.push(branches(first, pieces, last, depth)?);
            }
            "range" => {
                tokens.next();
                let items = whole(tokens, line)?;
                match run(pieces, last, depth + 1)? {
                    (body, Stop::Closed) => nodes.push(Node::Range(items, body)),
                    _ => return Err(wrong(line, "`range` without `end`")),
                }
            }
            _ => nodes.push(Node::Print(whole(tokens, line)?)),
        }
    }
    Ok((nodes, Stop::Template))
}

fn branches(
    first: At<Pipeline>,
    pieces: &mut IntoIter<Piece<'_>>,
    last: &mut usize,
    depth: usize,
) -> Result<Node> {
    let line = first.line;
    let mut branches = Vec::new();
    let mut condition = first;
    loop {
        let (body, end) = run(pieces, last, depth + 1)?;
        branches.push((condition, body));
        match end {
            Stop::Template => return Err(wrong(line, "`if` without `end`")),
            Stop::Closed => return Ok(Node::If(branches, Vec::new())),
            Stop::Else(Some(next)) => condition = next,
            Stop::Else(None) => {
                return match run(pieces, last, depth + 1)? {
                    (otherwise, Stop::Closed) => Ok(Node::If(branches, otherwise)),
                    _ => Err(wrong(line, "`else` without `end`")),
                };
            }
        }
    }
}

/// All tokens of an action as a pipeline.
fn whole(mut tokens: IntoIter<Token>, line: usize) -> Result<At<Pipeline>> {
    let is = pipeline(&mut tokens, 0).map_err(|reason| wrong(line, &reason))?;
    if tokens.next().is_some() {
        return Err(wrong(line, "`)` without `(`"));
    }
    Ok(At { line, is })
}

/// What stands before the end, or before a closing parenthesis.
fn pipeline(tokens: &mut IntoIter<Token>, depth: usize) -> std::result::Result<Pipeline, String> {
    if depth > MAX_DEPTH {
        return Err("too deep".to_owned());
    }
    let mut calls = Vec::new();
    loop {
        let mut call = Call {
            function: None,
            arguments: Vec::new(),
        };
        let is_last = loop {
            let Some(token) = tokens.as_slice().first() else {
                break true;
            };
            if *token == Token::Close {
                break true;
            }
            match tokens.next() {
                None | Some(Token::Pipe | Token::Close) => break false,
                Some(Token::Word(word)) => match word.as_str() {
                    "true" => call.arguments.push(Term::Literal(Value::Bool(true))),
                    "false" => call.arguments.push(Term::Literal(Value::Bool(false))),
                    _ if call.function.is_none() && call.arguments.is_empty() => {
                        call.function = Some(word);
                    }
                    _ => return Err(format!("the function `{word}` needs parentheses here")),
                },
                Some(Token::Text(text)) => call.arguments.push(Term::Literal(text.into())),
                Some(Token::Number(number)) => call.arguments.push(Term::Literal(number.into())),
                Some(Token::Field { is_root, path }) => {
                    let from = if is_root { Start::Root } else { Start::Dot };
                    call.arguments.push(Term::Field { from, path });
                }
                Some(Token::Open) => {
                    let group = pipeline(tokens, depth + 1)?;
                    if tokens.next() != Some(Token::Close) {
                        return Err("`(` without `)`".to_owned());
                    }
                    call.arguments.push(Term::Group(group));
                }
            }
        };
        let is_value = call.function.is_none();
        if is_value && !calls.is_empty() {
            return Err("only a function may stand after `|`".to_owned());
        }
        if is_value && call.arguments.len() != 1 {
            return Err("one value or a function with arguments was expected".to_owned());
        }
        calls.push(call);
        if is_last {
            return Ok(calls);
        }
    }
}

fn wrong(line: usize, reason: &str) -> At<String> {
    At {
        line,
        is: reason.to_owned(),
    }
}
