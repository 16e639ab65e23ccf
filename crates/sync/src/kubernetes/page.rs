//! Lists, page by page. Each object is read by itself, from the text of the answer: one that cannot be read is no failure
//! of the others, and what is not kept of it is never in memory as a tree.

use kube::api::ListParams;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::endpoint::{Endpoint, Selection, built, in_time};
use super::failure::Error;

/// How many objects to ask for at once, where nothing else is wanted.
pub const PAGE_SIZE: u32 = 500;

/// Some objects of a selection. All pages of a list show one revision.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub revision: String,
    /// Where the next page begins; nothing if this is the last one.
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct PageJson<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    r#continue: String,
}

impl Endpoint {
    /// Reads so many objects of a selection, or all, from the start or where the page before ended. Each is taken as JSON,
    /// and the first that is refused is the failure of the page.
    pub async fn page<T>(
        &self,
        client: &kube::Client,
        at: &Selection,
        limit: Option<u32>,
        from: Option<String>,
        mut take: impl FnMut(&str) -> serde_json::Result<T>,
    ) -> Result<Page<T>, Error> {
        let params = ListParams {
            limit,
            continue_token: from,
            field_selector: at.field_selector(),
            label_selector: at.label_selector(),
            ..ListParams::default()
        };
        let collection = self.collection(&at.namespace)?;
        let request = if self.has_metadata_only {
            collection.list_metadata(&params)
        } else {
            collection.list(&params)
        };
        let text = in_time("a list", client.request_text(built(request)?)).await?;
        let page: PageJson<'_> = serde_json::from_str(&text)?;
        let items = page.items.unwrap_or_default().into_iter();
        let items = items.map(|item| take(item.get()));
        let PageMetadata {
            resource_version,
            r#continue,
        } = page.metadata;
        Ok(Page {
            items: items.collect::<serde_json::Result<_>>()?,
            revision: resource_version,
            next: (!r#continue.is_empty()).then_some(r#continue),
        })
    }
}
