//! Lists in parts, so that very many objects are never all in memory.

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use super::found::{Found, list_of};
use super::messages::RangeRequest;
use super::paths::Range;
use super::{EtcdStore, PAGE, is_compacted, is_too_large};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Query};
use crate::store::List;

/// Where a list is.
struct Position {
    request: RangeRequest,
    is_end: bool,
}

impl EtcdStore {
    pub(super) fn parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        let range = Range::of(query);
        let request = RangeRequest {
            key: range.start,
            range_end: range.end,
            limit: PAGE,
            ..RangeRequest::default()
        };
        let start = Position {
            request,
            is_end: false,
        };
        let query = query.clone();
        let parts = stream::try_unfold(start, move |mut position| {
            let query = query.clone();
            async move {
                if position.is_end {
                    return Ok(None);
                }
                let part = self.part(&query, &mut position).await?;
                Ok(Some((part, position)))
            }
        });
        parts.boxed()
    }

    async fn part(&self, query: &Query, position: &mut Position) -> Result<List> {
        let request = &mut position.request;
        let response = loop {
            match self.client.range(request.clone()).await {
                Err(status) if is_too_large(&status) && request.limit > 1 => request.limit /= 2,
                Err(status) if is_compacted(&status) => {
                    return Err(Error::Gone(request.revision.to_string()));
                }
                answer => break answer.map_err(|status| self.client.error(status))?,
            }
        };
        let is_first = request.revision == 0;
        if is_first {
            request.revision = response.header.map_or(0, |header| header.revision);
        }
        if let Some(last) = response.kvs.last() {
            request.key = [last.key.as_slice(), b"\0"].concat();
        }
        position.is_end = !response.more || response.kvs.is_empty();
        let found: Vec<Found> = response.kvs.into_iter().filter_map(Found::new).collect();
        let mut list = list_of(&found, query, request.revision);
        if !is_first {
            // It is in every list, and needs to be in one part only.
            list.items
                .retain(|item| !default_profile::is(&Key::of(item)));
        }
        Ok(list)
    }
}
