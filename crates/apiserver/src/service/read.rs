//! Reads: one object, or a page of a list.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Service;
use super::pages::Scope;
use super::shared_read::Objects;
use crate::access::tiers::tier_of;
use crate::failure::Result;
use crate::hub::Object;
use crate::options::ListOptions;
use crate::registry::ResourceType;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The objects.
    pub items: Vec<Object>,
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

    /// Reads a page of the objects that the options select, for a reader of some name. All pages show the state of the
    /// first.
    pub async fn list(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
        reader: &str,
    ) -> Result<Page> {
        let scope = Scope::new(of, namespace, options, reader);
        let part = match options.continuation.as_str() {
            "" => {
                // Who lists goes on to watch from there: somebody must be taking down what changes.
                let hub = self.hubs.of(of, &self.storage).await?;
                let read = async {
                    let mut items = Vec::new();
                    let mut take = |object| items.push(hub.share(object));
                    let revision = self.storage.list_each(of, namespace, &mut take).await?;
                    Ok(Objects { items, revision })
                };
                let read = self.reads.read(of, namespace, read).await?;
                let revision = read.revision;
                let items = read
                    .items
                    .iter()
                    .filter(|object| options.selects(object.head()));
                let items: Vec<_> = items.cloned().collect();
                drop(read);
                if options.limit == 0 || items.len() <= options.limit {
                    return Ok(Page {
                        items,
                        revision,
                        continuation: String::new(),
                        remaining: None,
                    });
                }
                self.pages.begin(items, revision, options.limit, scope)
            }
            continuation => self.pages.proceed(continuation, options.limit, &scope)?,
        };
        Ok(Page {
            items: part.items,
            revision: part.revision,
            continuation: part.continuation,
            remaining: (part.remaining > 0).then_some(part.remaining),
        })
    }
}

impl ListOptions {
    /// Whether an object is meant.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let is_in_tier = |tiers: &BTreeSet<String>| tiers.contains(tier_of(object));
        self.labels.selects(object)
            && self.fields.selects(object)
            && self.tiers.as_ref().is_none_or(is_in_tier)
    }
}
