//! At which line of a text each field of its documents is.

use std::collections::HashMap;

use serde_saphyr::{NonFiniteFloatPolicy, Spanned};

use super::tree::Tree;
use super::{Error, options, syntax};
use crate::problem::Path;

/// The lines of the fields of a document, by their paths as problems name them.
#[derive(Debug, Clone, Default)]
pub struct Lines(HashMap<String, u64>);

impl Lines {
    /// Those of all documents of a text.
    pub fn read(text: &str) -> Result<Vec<Self>, Error> {
        let options = options(NonFiniteFloatPolicy::PassThrough);
        let trees: Vec<Spanned<Tree>> =
            serde_saphyr::from_multiple_with_options(text, options).map_err(syntax)?;
        let lines = trees.iter().map(|tree| {
            let mut lines = Self::default();
            lines.note(&Path::ROOT, tree.referenced.line(), &tree.value);
            lines
        });
        Ok(lines.collect())
    }

    /// The line of a field, from 1; of one that is not there, that of the nearest field around it.
    pub fn of(&self, field: &str) -> Option<u64> {
        let mut field = field;
        loop {
            if let Some(line) = self.0.get(field) {
                return Some(*line);
            }
            let end = field.rfind(['.', '['])?;
            field = &field[..end];
        }
    }

    fn note(&mut self, at: &Path<'_>, line: u64, tree: &Tree) {
        self.0.insert(at.to_string(), line);
        match tree {
            Tree::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.note(&at.index(index), item.referenced.line(), &item.value);
                }
            }
            Tree::Map(entries) => {
                for (name, value) in entries {
                    let line = name.referenced.line();
                    self.note(&at.field(&name.value), line, &value.value);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    const TEXT: &str = "\
# A comment.
kind: A
spec:
  rules:
  - action: Allow
    nets:
    - 10.0.0.0/8

    - 10.1.0.0/16
  - {action: Deny}
  'a.b': 1
---
kind: B
";

    #[track_caller]
    fn check(document: usize, field: &str, line: Option<u64>) {
        let all = Lines::read(TEXT).unwrap();
        assert_eq!(all[document].of(field), line, "{field}");
    }

    #[test]
    fn a_field_is_at_the_line_of_its_name() {
        check(0, "kind", Some(2));
        check(0, "spec", Some(3));
        check(0, "spec.rules", Some(4));
        check(0, "spec.rules[0]", Some(5));
        check(0, "spec.rules[0].nets[1]", Some(9));
        check(0, "spec.rules[1].action", Some(10));
        check(0, "spec.[\"a.b\"]", Some(11));
        check(1, "kind", Some(13));
    }

    #[test]
    fn a_field_that_is_missing_is_at_the_line_of_what_it_is_missing_in() {
        check(0, "spec.rules[1].source.ports", Some(10));
        check(0, "spec.order", Some(3));
        check(1, "spec", None);
    }
}
