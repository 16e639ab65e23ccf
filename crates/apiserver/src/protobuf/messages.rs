//! The shapes of messages, read from a table.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The fields of one message, by number.
pub(super) type Message = HashMap<u32, Field>;

#[derive(Debug)]
pub(super) struct Field {
    /// Its name in JSON; none if its own fields stand there.
    pub(super) name: Option<&'static str>,
    pub(super) shape: Shape,
    pub(super) kind: Kind,
    /// Whether JSON has it even if it is empty, 0 or false.
    pub(super) is_kept_if_empty: bool,
}

/// How many values there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Many,
    ByName,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Truth,
    Number,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    NumberOrText,
    Json,
    Message(&'static str),
}

/// All messages by name.
pub(super) static MESSAGES: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| {
    let lines = include_str!("messages.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (name, fields) = line.split_once(' ')?;
            Some((name, fields.split(' ').filter_map(Field::parse).collect()))
        })
        .collect()
});

impl Field {
    fn parse(text: &'static str) -> Option<(u32, Self)> {
        let mut parts = text.split(':');
        let (name, number, kind) = (parts.next()?, parts.next()?, parts.next()?);
        let (kind, is_kept_if_empty) = match kind.strip_suffix('?') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let within = |open, close| kind.strip_prefix(open)?.strip_suffix(close);
        let (shape, kind) = match (within('[', ']'), within('{', '}')) {
            (Some(kind), _) => (Shape::Many, kind),
            (_, Some(kind)) => (Shape::ByName, kind),
            _ => (Shape::One, kind),
        };
        let field = Self {
            name: (name != "+").then_some(name),
            shape,
            kind: Kind::parse(kind),
            is_kept_if_empty,
        };
        Some((number.parse().ok()?, field))
    }
}

impl Kind {
    fn parse(text: &'static str) -> Self {
        match text {
            "string" => Self::Text,
            "bool" => Self::Truth,
            "int" => Self::Number,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intorstring" => Self::NumberOrText,
            "json" => Self::Json,
            message => Self::Message(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let text = include_str!("messages.txt");
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(MESSAGES.len(), lines.len());
        for line in lines {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            assert_eq!(MESSAGES[name].len(), words.count(), "{name}");
            for field in MESSAGES[name].values() {
                if let Kind::Message(other) = field.kind {
                    assert!(MESSAGES.contains_key(other), "{name}: {other}");
                } else {
                    assert!(field.name.is_some(), "{name}");
                }
            }
        }
    }
}
