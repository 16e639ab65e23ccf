//! Words, values and punctuation of BIRD's language, in both of its versions.

use std::net::IpAddr;

use ipnet::IpNet;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Text(String),
    Number(u32),
    Address(IpAddr),
    Network(IpNet),
    Mark(&'static str),
}

/// The longer ones first.
const MARKS: [&str; 24] = [
    "[=", "=]", "!~", "!=", "&&", "||", "{", "}", "(", ")", "[", "]", ";", ",", "~", "=", "<", ">",
    "!", "-", "+", "*", ".", ":",
];

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with('#') {
            let (token, length) = token(rest);
            tokens.push(token);
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// The first token, and its length.
fn token(text: &str) -> (Token, usize) {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let length = inner.find(quote).expect("a text ends on its line");
            let inner = inner[..length].to_owned();
            let token = if quote == '"' {
                Token::Text(inner)
            } else {
                Token::Word(inner)
            };
            return (token, length + 2);
        }
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.:/".contains(c);
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if length > 0 {
        return (word(&text[..length]), length);
    }
    let mark = MARKS.iter().find(|mark| text.starts_with(**mark));
    let mark = mark.unwrap_or_else(|| panic!("what is {text:?}?"));
    (Token::Mark(mark), mark.len())
}

fn word(text: &str) -> Token {
    if let Ok(number) = text.parse() {
        return Token::Number(number);
    }
    if let Ok(network) = text.parse() {
        return Token::Network(network);
    }
    match text.parse() {
        Ok(address) => Token::Address(address),
        Err(_) => Token::Word(text.to_owned()),
    }
}
