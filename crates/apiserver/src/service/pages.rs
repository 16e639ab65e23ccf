//! The rest of long lists, for clients that read them in pages.
//!
//! All pages of a list show the state of its first one: a watch from there tells each later change once. So what the
//! first page has left over is kept for a while: the state, or objects of it. A client that comes too late is told to begin anew.

use std::collections::BTreeSet;
use std::time::Duration;

use super::expiring::Expiring;
use super::listing::{Position, Source};
use crate::failure::{Failure, Reason, Result};
use crate::hub::Object;
use crate::options::ListOptions;
use crate::registry::{ResourceId, ResourceType};
use crate::selector::{FieldSelector, LabelSelector};

/// How many lists are kept.
const MAX_LISTS: usize = 64;

/// How much memory they take together, beyond objects that are as they were, which others have too.
const MAX_BYTES: usize = 64 << 20;

/// How long they are kept, as in Kubernetes.
const LIFETIME: Duration = Duration::from_mins(5);

/// Lists that somebody is reading.
pub(super) struct Pages {
    lists: Expiring<Kept>,
}

struct Kept {
    id: uuid::Uuid,
    scope: Scope,
    source: Source,
    bytes: usize,
}

/// What a list is of, and whose it is: nobody else may go on with it, nor as if it were another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    of: ResourceId,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    tiers: Option<BTreeSet<String>>,
    reader: String,
}

impl Scope {
    pub(super) fn new(
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
        reader: &str,
    ) -> Self {
        Self {
            of: of.id(),
            namespace: namespace.map(ToOwned::to_owned),
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            tiers: options.tiers.clone(),
            reader: reader.to_owned(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            lists: Expiring::new(LIFETIME),
        }
    }
}

impl Pages {
    /// Keeps a list for its next pages, and gives the name under which it is found.
    pub(super) fn keep(&self, source: Source, scope: Scope) -> uuid::Uuid {
        let bytes = match &source {
            Source::Snapshot(_) => 0,
            Source::Objects(objects) => {
                let own = objects.items.iter().filter(|item| !item.is_shared());
                own.map(Object::size).sum()
            }
        };
        let id = uuid::Uuid::new_v4();
        self.lists.push(Kept {
            id,
            scope,
            source,
            bytes,
        });
        self.lists.with(|lists| {
            let mut bytes: usize = lists.iter().map(|(_, list)| list.bytes).sum();
            while lists.len() > MAX_LISTS || (bytes > MAX_BYTES && lists.len() > 1) {
                bytes -= lists.pop_front().map_or(0, |(_, oldest)| oldest.bytes);
            }
        });
        id
    }

    /// The list that a continuation asks for, and where it goes on.
    pub(super) fn find(
        &self,
        continuation: &str,
        scope: &Scope,
    ) -> Result<(uuid::Uuid, Source, Position)> {
        let no_token = || {
            let message = "continue: must be a token that the page before gave";
            Failure::bad_request(message)
        };
        let (id, position) = continuation.split_once('/').ok_or_else(no_token)?;
        let id = uuid::Uuid::parse_str(id).map_err(|_| no_token())?;
        self.lists.with(|lists| {
            let kept = lists.iter().map(|(_, list)| list).find(|list| list.id == id);
            let kept = kept.ok_or_else(too_late)?;
            if kept.scope != *scope {
                let message = "continue: the token is of another list; the next page has the path and the selectors of the first";
                return Err(Failure::bad_request(message));
            }
            let position = kept.source.position(position).ok_or_else(no_token)?;
            Ok((id, kept.source.clone(), position))
        })
    }
}

pub(super) fn too_late() -> Failure {
    let message = "The provided continue parameter is too old to display a consistent list result. You must start a new \
                   list without the continue parameter.";
    Failure::new(Reason::Expired, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use serde_json::json;

    use super::super::shared_read::Objects;
    use super::*;
    use crate::options::Query;
    use crate::registry::Registry;

    fn numbers(count: usize) -> Source {
        let items = (0..count).map(|number| Object::new(json!(number)));
        Source::Objects(Arc::new(Objects {
            items: items.collect(),
            revision: 42,
        }))
    }

    /// Of a path and a query, for a reader.
    fn scope(plural: &str, namespace: Option<&str>, query: &str, reader: &str) -> Scope {
        let registry = Registry::standalone();
        let of = registry.find("projectcalico.org", "v3", plural).unwrap();
        let options = Query::parse(query).list_options(of).unwrap();
        Scope::new(of, namespace, &options, reader)
    }

    fn tiers() -> Scope {
        scope("tiers", None, "", "ann")
    }

    #[track_caller]
    fn refusal(pages: &Pages, token: &str, scope: &Scope) -> Reason {
        pages.find(token, scope).err().unwrap().reason
    }

    #[test]
    fn a_list_is_found_where_it_goes_on() {
        let pages = Pages::default();
        let id = pages.keep(numbers(7), tiers());
        let (found, source, position) = pages.find(&format!("{id}/3"), &tiers()).unwrap();
        assert_eq!((found, source.revision()), (id, 42));
        assert_eq!(position, Position::Index(3));
    }

    #[test]
    fn who_comes_too_late_begins_anew() {
        let pages = Pages::default();
        let id = pages.keep(numbers(7), tiers());
        for _ in 0..MAX_LISTS {
            pages.keep(numbers(7), tiers());
        }
        let token = format!("{id}/3");
        assert_eq!(refusal(&pages, &token, &tiers()), Reason::Expired);
        for wrong in ["", "x", "x/1"] {
            assert_eq!(
                refusal(&pages, wrong, &tiers()),
                Reason::BadRequest,
                "{wrong}"
            );
        }
        let id = pages.keep(numbers(7), tiers());
        let token = format!("{id}/-1");
        assert_eq!(refusal(&pages, &token, &tiers()), Reason::BadRequest);
    }

    #[test]
    fn lists_are_kept_for_a_while() {
        let pages = Pages::default();
        let before = Instant::now();
        let token = format!("{}/3", pages.keep(numbers(7), tiers()));
        pages.lists.forget(before);
        assert!(pages.find(&token, &tiers()).is_ok());
        pages.lists.forget(Instant::now() + LIFETIME);
        assert_eq!(refusal(&pages, &token, &tiers()), Reason::Expired);
    }

    #[test]
    fn a_token_is_good_for_its_own_list_alone() {
        let pages = Pages::default();
        let of = |plural, namespace, query| scope(plural, namespace, query, "ann");
        let (shop, selector) = (Some("shop"), "labelSelector=a%3Db");
        let own = of("networkpolicies", shop, selector);
        let token = format!("{}/3", pages.keep(numbers(7), own.clone()));
        for other in [
            of("networksets", shop, selector),
            of("networkpolicies", Some("bank"), selector),
            of("networkpolicies", None, selector),
            of("networkpolicies", shop, "labelSelector=a%3Dc"),
            of("networkpolicies", shop, ""),
            scope("networkpolicies", shop, selector, "bob"),
        ] {
            assert_eq!(
                refusal(&pages, &token, &other),
                Reason::BadRequest,
                "{other:?}"
            );
        }
        assert!(pages.find(&token, &own).is_ok());
    }
}
