//! Reads: one object, or a page of a list.

use serde_json::Value;

use super::Service;
use crate::failure::{Failure, Reason, Result};
use crate::options::ListOptions;
use crate::registry::ResourceType;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The objects.
    pub items: Vec<Value>,
    /// The state that a watch may continue from.
    pub revision: u64,
    /// Where the next page begins; empty on the last one.
    pub continuation: String,
    /// How many objects are left, where that is known.
    pub remaining: Option<usize>,
}

impl Service {
    /// Reads one object.
    pub async fn get(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value> {
        self.storage
            .get(of, namespace.unwrap_or_default(), name)
            .await
    }

    /// Reads a page of the objects that the options select.
    ///
    /// A later page shows a state that may be newer than that of the first one, whose revision it bears: a watch from
    /// there tells of everything that changed in between.
    pub async fn list(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Page> {
        let start = match options.continuation.as_str() {
            "" => None,
            token => Some(Start::parse(token)?),
        };
        let listed = self.storage.list(of, namespace).await?;
        let items = listed.items.into_iter();
        let items = items.filter(|object| options.selects(object));
        let mut items: Vec<Value> = match &start {
            Some(start) => items.filter(|object| id(object) > start.id()).collect(),
            None => items.collect(),
        };
        let revision = start
            .as_ref()
            .map_or(listed.revision, |start| start.revision);
        let mut page = Page {
            items: Vec::new(),
            revision,
            continuation: String::new(),
            remaining: None,
        };
        if options.limit > 0 && items.len() > options.limit {
            page.remaining = Some(items.len() - options.limit);
            items.truncate(options.limit);
            if let Some(last) = items.last() {
                page.continuation = Start::after(last, revision).to_text();
            }
        }
        page.items = items;
        Ok(page)
    }
}

impl ListOptions {
    /// Whether an object is meant.
    pub(super) fn selects(&self, object: &Value) -> bool {
        self.labels.selects(object) && self.fields.selects(object)
    }
}

/// What a continuation says: the revision of the first page, and the last object of the page before.
#[derive(Debug, PartialEq, Eq)]
struct Start {
    revision: u64,
    namespace: String,
    name: String,
}

impl Start {
    fn after(object: &Value, revision: u64) -> Self {
        let (namespace, name) = id(object);
        Self {
            revision,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn id(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Names and namespaces hold no slash.
    fn to_text(&self) -> String {
        format!("{}/{}/{}", self.revision, self.namespace, self.name)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut parts = text.splitn(3, '/');
        let parsed = (|| {
            Some(Self {
                revision: parts.next()?.parse().ok()?,
                namespace: parts.next()?.to_owned(),
                name: parts.next()?.to_owned(),
            })
        })();
        parsed.ok_or_else(|| {
            Failure::new(
                Reason::BadRequest,
                "continue: must be a token that the page before gave",
            )
        })
    }
}

fn id(object: &Value) -> (&str, &str) {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_survive_the_way_to_the_client() {
        let start = Start {
            revision: 12,
            namespace: String::new(),
            name: "default.a".into(),
        };
        assert_eq!(Start::parse(&start.to_text()).unwrap(), start);
        for broken in ["", "1", "x/a/b", "1/a"] {
            assert!(Start::parse(broken).is_err(), "{broken}");
        }
    }
}
