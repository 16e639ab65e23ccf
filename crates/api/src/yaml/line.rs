//! Where values stand in a text.

use serde_saphyr::{NonFiniteFloatPolicy, Spanned};

use super::options;
use super::tree::Tree;

/// A step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A field of an object.
    Field(&'a str),
    /// An item of a list, from 0.
    Item(usize),
}

/// The line of a value in one of the objects of a text, both counted from 0 but lines; lists of objects count as their
/// items. None if there is no such value.
pub fn line_of(text: &str, object: usize, path: &[Step<'_>]) -> Option<u64> {
    let options = options(NonFiniteFloatPolicy::PassThrough);
    let trees: Vec<Spanned<Tree>> = serde_saphyr::from_multiple_with_options(text, options).ok()?;
    let mut objects = Vec::new();
    for tree in &trees {
        flatten(tree, &mut objects);
    }
    let mut found = *objects.get(object)?;
    for step in path {
        found = match (step, &found.value) {
            (Step::Field(name), Tree::Map(entries)) => {
                &entries.iter().find(|(key, _)| key == name)?.1
            }
            (Step::Item(index), Tree::List(items)) => items.get(*index)?,
            _ => return None,
        };
    }
    Some(found.defined.line())
}

fn flatten<'a>(tree: &'a Spanned<Tree>, objects: &mut Vec<&'a Spanned<Tree>>) {
    match &tree.value {
        Tree::Null => {}
        Tree::List(items) => items.iter().for_each(|item| flatten(item, objects)),
        Tree::Map(entries) => {
            let field = |wanted: &str| {
                let entry = entries.iter().find(|(name, _)| name == wanted);
                entry.map(|(_, tree)| tree)
            };
            let is_list = field("kind").is_some_and(
                |kind| matches!(&kind.value, Tree::Text(kind) if kind.ends_with("List")),
            );
            match field("items").filter(|_| is_list) {
                Some(
                    items @ Spanned {
                        value: Tree::List(_),
                        ..
                    },
                ) => flatten(items, objects),
                _ => objects.push(tree),
            }
        }
        _ => objects.push(tree),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_documents_and_lists_have_lines() {
        let text = "a: 1\n---\nkind: List\nitems:\n- b: 1\n- spec:\n    rules:\n    - x: 1\n      y: 2\n    - {x: 3}\n";
        let rule = |item| [Step::Field("spec"), Step::Field("rules"), Step::Item(item)];
        assert_eq!(line_of(text, 0, &[Step::Field("a")]), Some(1));
        assert_eq!(line_of(text, 2, &rule(0)), Some(8));
        assert_eq!(line_of(text, 2, &rule(1)), Some(10));
        assert_eq!(line_of(text, 2, &rule(2)), None);
        assert_eq!(line_of(text, 3, &[]), None);
    }
}
