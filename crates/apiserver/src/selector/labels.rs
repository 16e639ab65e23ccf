//! Label selectors as they stand in queries, such as `app=web,tier in (a, b),!old`, and in objects.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde_json::Value;

/// How long a selector may be.
const MAX_LENGTH: usize = 64 << 10;

/// A selector by labels; all of its requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    condition: Condition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Exists,
    Missing,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads a selector; an empty text selects everything. The error says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("a selector has at most {MAX_LENGTH} characters"));
        }
        let mut parser = Parser { text, at: 0 };
        let mut requirements = Vec::new();
        parser.skip_space();
        while !parser.is_at_end() {
            requirements.push(parser.requirement()?);
            if parser.is_at_end() {
                break;
            }
            parser.expect(",")?;
            if parser.is_at_end() {
                return Err(parser.wants("a requirement"));
            }
        }
        Ok(Self { requirements })
    }

    /// The same as a selector in an object. The error names what is no operator.
    pub fn from_object(selector: &meta::LabelSelector) -> Result<Self, String> {
        let labels = selector.match_labels.iter().flatten();
        let mut requirements: Vec<_> = labels
            .map(|(key, value)| Requirement {
                key: key.clone(),
                condition: Condition::In([value.clone()].into()),
            })
            .collect();
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.iter().flatten().cloned();
            let condition = match expression.operator.as_str() {
                "In" => Condition::In(values.collect()),
                "NotIn" => Condition::NotIn(values.collect()),
                "Exists" => Condition::Exists,
                "DoesNotExist" => Condition::Missing,
                other => return Err(format!("{other:?} is no operator of a label selector")),
            };
            requirements.push(Requirement {
                key: expression.key.clone(),
                condition,
            });
        }
        Ok(Self { requirements })
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The values of which the first condition on a label asks for one. None inside if it asks for something else.
    pub fn values(&self, key: &str) -> Option<Option<&BTreeSet<String>>> {
        let mut requirements = self.requirements.iter();
        let found = requirements.find(|requirement| requirement.key == key)?;
        Some(match &found.condition {
            Condition::In(values) => Some(values),
            _ => None,
        })
    }

    /// Whether it selects an object.
    pub fn selects(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.requirements.iter().all(|requirement| {
            let label = labels.and_then(|labels| labels.get(&requirement.key)?.as_str());
            requirement.condition.holds(label)
        })
    }
}

impl Condition {
    fn holds(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match self {
            Self::Exists => label.is_some(),
            Self::Missing => label.is_none(),
            Self::In(values) => label.is_some_and(|label| values.contains(label)),
            Self::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
            Self::Above(limit) => number().is_some_and(|number| number > *limit),
            Self::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.take("!") {
            let key = self.key()?;
            return Ok(Requirement {
                key,
                condition: Condition::Missing,
            });
        }
        let key = self.key()?;
        let one = |value: &str| BTreeSet::from([value.to_owned()]);
        let condition = if self.take("==") || self.take("=") {
            Condition::In(one(self.word()))
        } else if self.take("!=") {
            Condition::NotIn(one(self.word()))
        } else if self.take(">") {
            Condition::Above(self.number()?)
        } else if self.take("<") {
            Condition::Below(self.number()?)
        } else {
            let before = self.at;
            match self.word() {
                "" => Condition::Exists,
                "in" => Condition::In(self.values()?),
                "notin" => Condition::NotIn(self.values()?),
                _ => {
                    self.at = before;
                    return Err(self.wants("one of '=', '==', '!=', '>', '<', in, notin"));
                }
            }
        };
        Ok(Requirement { key, condition })
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        self.expect("(")?;
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.word().to_owned());
            if self.take(")") {
                return Ok(values);
            }
            self.expect(",")?;
        }
    }

    fn key(&mut self) -> Result<String, String> {
        match self.word() {
            "" => Err(self.wants("a label's name")),
            key => Ok(key.to_owned()),
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word();
        word.parse().map_err(|_| self.wants("a number"))
    }

    /// The longest run of characters that labels and words consist of; perhaps empty.
    fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        self.skip_space();
        &rest[..end]
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_there = self.text[self.at..].starts_with(token);
        if is_there {
            self.at += token.len();
            self.skip_space();
        }
        is_there
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.wants(&format!("'{token}'")))
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn wants(&self, what: &str) -> String {
        match &self.text[self.at..] {
            "" => format!("expected {what} at the end"),
            rest => {
                let found: String = rest.chars().take(20).collect();
                format!("expected {what} before {found:?}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: &Value) -> bool {
        let object = json!({"metadata": {"labels": labels}});
        LabelSelector::parse(selector).unwrap().selects(&object)
    }

    #[test]
    fn requirements_hold_or_not() {
        let labels = json!({"app": "web", "size": "10", "example.com/x": ""});
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("! old", true),
            ("app=web", true),
            ("app == web", true),
            ("app=db", false),
            ("app!=db", true),
            ("old!=x", true),
            ("app in (db, web)", true),
            ("app in(db)", false),
            ("app notin (db,web)", false),
            ("old notin (x)", true),
            ("size>9", true),
            ("size<9", false),
            ("app>1", false),
            ("example.com/x=", true),
            ("example.com/x in ()", true),
            ("app=web,size=10", true),
            ("app=web,size=11", false),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (selector, message) in [
            ("app in web", "expected '(' before \"web\""),
            (
                "app is web",
                "expected one of '=', '==', '!=', '>', '<', in, notin before \"is web\"",
            ),
            ("=x", "expected a label's name before \"=x\""),
            ("a,", "expected a requirement at the end"),
            ("a in (b", "expected ',' at the end"),
            ("a=b c=d", "expected ',' before \"c=d\""),
            ("a>b", "expected a number at the end"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), message);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") {
            let _ = LabelSelector::parse(&text);
        }
    }
}
