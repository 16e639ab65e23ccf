//! Documents with the place of each word, and how the schema makes values of them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use super::{Error, root_of_kind, syntax};
use crate::schema::{Node, Shape};

/// A node of a document.
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    /// A number that is larger than any, or none.
    NotFinite,
    Text(String),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(Spanned<String>, Spanned<Tree>)>),
}

/// Makes values of a text.
pub(super) struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// All documents; each has this schema, or else the one that it names.
    pub(super) fn read(
        &self,
        root: Option<&Node>,
        options: serde_saphyr::Options,
    ) -> Result<Vec<Value>, Error> {
        let trees: Vec<Spanned<Tree>> =
            serde_saphyr::from_multiple_with_options(self.text, options).map_err(syntax)?;
        trees
            .into_iter()
            .map(|tree| self.value(tree, root))
            .collect()
    }

    fn value(&self, tree: Spanned<Tree>, node: Option<&Node>) -> Result<Value, Error> {
        let at = tree.defined;
        let node = node.or_else(|| tree.value.root());
        let shape = node.map(|node| &node.shape);
        Ok(match tree.value {
            Tree::Null => Value::Null,
            Tree::Bool(value) => match shape {
                Some(Shape::Text(_)) => self.written(&at, || value.to_string()),
                _ => Value::Bool(value),
            },
            Tree::Number(value) => match shape {
                Some(Shape::Text(_)) => self.written(&at, || value.to_string()),
                _ => self.number(value, &at)?,
            },
            Tree::NotFinite if matches!(shape, Some(Shape::Text(_))) => {
                self.written(&at, String::new)
            }
            Tree::NotFinite => {
                let (line, text) = (at.line(), self.source(&at).unwrap_or_default());
                let message = format!("line {line}: `{text}` is not a finite number");
                return Err(Error::Syntax(message));
            }
            Tree::Text(text) => match shape {
                Some(Shape::Boolean) if self.source(&at) == Some(&text) => {
                    boolean(&text).map_or(Value::String(text), Value::Bool)
                }
                _ => Value::String(text),
            },
            Tree::List(list) => {
                let items = match shape {
                    Some(Shape::List { items, .. }) => Some(&**items),
                    _ => None,
                };
                let values = list.into_iter().map(|item| self.value(item, items));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            Tree::Map(entries) => {
                let mut object = Map::new();
                for (name, tree) in entries {
                    let name = name.value;
                    let node = match shape {
                        Some(Shape::Struct(fields)) => fields.known.get(&name),
                        Some(Shape::Map { values }) => Some(&**values),
                        _ => None,
                    };
                    object.insert(name, self.value(tree, node)?);
                }
                Value::Object(object)
            }
        })
    }

    /// A word as it stands in the text.
    fn written(&self, at: &Location, otherwise: impl FnOnce() -> String) -> Value {
        Value::String(self.source(at).map_or_else(otherwise, str::to_owned))
    }

    fn number(&self, value: Number, at: &Location) -> Result<Value, Error> {
        let text = self.source(at).unwrap_or_default();
        let digits = text.trim_start_matches(['+', '-']);
        // `0.5` and `0x50` are the same to everybody.
        let is_ambiguous = digits.len() > 1
            && digits.starts_with('0')
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'_');
        if is_ambiguous {
            return Err(Error::Ambiguous {
                line: at.line(),
                text: text.to_owned(),
            });
        }
        Ok(Value::Number(value))
    }

    fn source(&self, at: &Location) -> Option<&'a str> {
        let span = at.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        Some(self.text.get(start..start.checked_add(length)?)?.trim())
    }
}

impl Tree {
    /// The schema of an object that says what it is.
    fn root(&self) -> Option<&'static Node> {
        let Self::Map(entries) = self else {
            return None;
        };
        let text = |wanted: &str| {
            let entry = entries.iter().find(|(name, _)| name.value == wanted);
            entry.and_then(|(_, tree)| match &tree.value {
                Self::Text(text) => Some(text.as_str()),
                _ => None,
            })
        };
        root_of_kind(text("apiVersion")?, text("kind")?)
    }
}

/// What YAML 1.1 takes for a boolean.
fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "on" => Some(true),
        "n" | "no" | "off" => Some(false),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value of YAML")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Number::from_f64(value).map_or(Tree::NotFinite, Tree::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}
