//! Lists, page by page: never more than a page of each source is in memory as JSON.

use std::collections::{HashSet, VecDeque};

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use tortie_error::Causes;

use super::api::{PAGE_SIZE, Page, Selection};
use super::failure::Failure;
use super::presence::id_of;
use super::source::{Reading, Source};
use super::{KubernetesStore, key_of_query, revision};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};
use crate::store::List;

/// How often a list begins anew because its continuation expired, before it asks for everything at once.
const MAX_PAGED_ATTEMPTS: u32 = 3;

/// What is left of a list.
struct Rest {
    revision: Revision,
    sources: VecDeque<Unread>,
    limit: Option<u32>,
    is_first: bool,
}

/// What is left of one source.
struct Unread {
    source: Source,
    at: Selection,
    /// Its first page, until that is converted.
    page: Option<Page>,
    /// Where the next page begins.
    from: Option<String>,
    /// The objects that were seen.
    ids: HashSet<String>,
}

impl KubernetesStore {
    /// Reads what a query selects and, unless it is empty, a label selector of Kubernetes as well.
    pub(super) async fn list_labelled(&self, query: &Query, labels: &str) -> Result<List> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let limit = (attempts <= MAX_PAGED_ATTEMPTS).then_some(PAGE_SIZE);
            let parts = self.parts(query, labels, limit);
            let whole = parts.try_fold(empty(Revision::default()), async |mut whole, part| {
                whole.items.extend(part.items);
                whole.invalid.extend(part.invalid);
                whole.revision = part.revision;
                Ok(whole)
            });
            match whole.await {
                Err(Error::Gone(_)) if limit.is_some() => {}
                Err(error) => return Err(error),
                Ok(mut whole) => {
                    whole.items.sort_by_cached_key(Key::of);
                    return Ok(whole);
                }
            }
        }
    }

    /// The same in parts: the pages of one source, then those of the next. Fails with [`Error::Gone`] if a continuation
    /// expires.
    pub(super) fn parts(
        &self,
        query: &Query,
        labels: &str,
        limit: Option<u32>,
    ) -> BoxStream<'_, Result<List>> {
        let (query, labels) = (query.clone(), labels.to_owned());
        let start = async move {
            let rest = self.first_pages(&query, &labels, limit).await?;
            let parts = stream::try_unfold(rest, move |mut rest| {
                let query = query.clone();
                async move {
                    let part = self.next_part(&query, &mut rest).await?;
                    Ok::<_, Error>(part.map(|part| (part, rest)))
                }
            });
            Ok::<_, Error>(parts)
        };
        stream::once(start).try_flatten().boxed()
    }

    /// Reads the first page of each source, which together tell the revision.
    async fn first_pages(&self, query: &Query, labels: &str, limit: Option<u32>) -> Result<Rest> {
        let mut sources = VecDeque::new();
        let mut parts = Vec::new();
        for source in Source::of(query.kind, &self.settings) {
            let mut part = String::new();
            if let Some(mut at) = source.select(query) {
                labels.clone_into(&mut at.labels);
                match source.endpoint.page(&self.client, &at, limit, None).await {
                    Ok(page) => {
                        part.clone_from(&page.revision);
                        sources.push_back(Unread {
                            source,
                            at,
                            page: Some(page),
                            from: None,
                            ids: HashSet::new(),
                        });
                    }
                    // Whether the kind is served or not.
                    Err(Failure::NoSuchName) => {}
                    Err(failure) if failure.is_not_found() => {
                        self.presence.check_missing(&source)?;
                    }
                    Err(failure) => return Err(failure.into_error(&key_of_query(query))),
                }
            }
            parts.push(part);
        }
        Ok(Rest {
            revision: revision::join(&parts),
            sources,
            limit,
            is_first: true,
        })
    }

    /// Converts the next page.
    async fn next_part(&self, query: &Query, rest: &mut Rest) -> Result<Option<List>> {
        let mut list = empty(rest.revision.clone());
        let is_first = std::mem::take(&mut rest.is_first);
        if is_first {
            default_profile::add_to(&mut list.items, query);
        }
        let Some(unread) = rest.sources.front_mut() else {
            return Ok(is_first.then_some(list));
        };
        let Unread {
            source,
            at,
            page,
            from,
            ids,
        } = unread;
        let page = if let Some(page) = page.take() {
            page
        } else {
            let page = source
                .endpoint
                .page(&self.client, at, rest.limit, from.take());
            page.await
                .map_err(|failure| failure.into_error(&key_of_query(query)))?
        };
        self.add_to(&mut list, source, query, &page.items).await;
        if source.is_optional() {
            ids.extend(page.items.iter().map(id_of));
        }
        *from = page.next;
        if from.is_none() {
            self.presence.set_all(source, at, std::mem::take(ids));
            rest.sources.pop_front();
        }
        Ok(Some(list))
    }

    /// Adds the resources of a query that objects stand for, and completes deletions.
    async fn add_to(&self, list: &mut List, source: &Source, query: &Query, objects: &[Value]) {
        for object in objects {
            match source.read(object) {
                Reading::Present(resource) if query.selects(&Key::of(&resource)) => {
                    list.items.push(resource);
                }
                Reading::Invalid(invalid) if query.selects(&invalid.key) => {
                    list.invalid.push(invalid);
                }
                Reading::Absent(key) => {
                    // Readers may lack the permission, and the next one will try again.
                    if let Err(error) = self.complete_delete(source, object).await {
                        tracing::debug!(%key, error = %Causes(&error), "A deletion could not be completed");
                    }
                }
                Reading::Present(_) | Reading::Invalid(_) | Reading::Unrelated => {}
            }
        }
    }
}

fn empty(revision: Revision) -> List {
    List {
        items: Vec::new(),
        invalid: Vec::new(),
        revision,
    }
}
