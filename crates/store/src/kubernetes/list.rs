//! Lists, page by page: never more than a page of each source is in memory as text, and an object as JSON.

use std::collections::{HashSet, VecDeque};

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use tortie_error::Causes;
use tortie_sync::kubernetes::{Error as Failure, PAGE_SIZE, Page, Selection};

use super::failure::Refusal as _;
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
    page: Option<Page<Box<str>>>,
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
                match self.page(&source, &at, limit, None).await {
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
        let page = match page.take() {
            Some(page) => Ok(page),
            None => self.page(source, at, rest.limit, from.take()).await,
        };
        let failed = |failure: Failure| failure.into_error(&key_of_query(query));
        let page = page.map_err(failed)?;
        for object in page.items {
            let object = serde_json::from_str(&object).map_err(|error| failed(error.into()))?;
            self.add_to(&mut list, source, query, &object).await;
            if source.is_optional() {
                ids.insert(id_of(&object));
            }
        }
        *from = page.next;
        if from.is_none() {
            self.presence.set_all(source, at, std::mem::take(ids));
            rest.sources.pop_front();
        }
        Ok(Some(list))
    }

    /// Objects as JSON, which are read one by one.
    async fn page(
        &self,
        source: &Source,
        at: &Selection,
        limit: Option<u32>,
        from: Option<String>,
    ) -> Result<Page<Box<str>>, Failure> {
        let take = |object: &str| Ok(object.into());
        source
            .endpoint
            .page(&self.client, at, limit, from, take)
            .await
    }

    /// Adds the resource of a query that an object stands for, or completes its deletion.
    async fn add_to(&self, list: &mut List, source: &Source, query: &Query, object: &Value) {
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

fn empty(revision: Revision) -> List {
    List {
        items: Vec::new(),
        invalid: Vec::new(),
        revision,
    }
}
