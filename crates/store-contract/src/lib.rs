//! What every datastore driver must do, as test cases that run against any of them.
//!
//! A driver's tests say how to make a [`Subject`] and let [`store_contract!`](crate::store_contract)
//! write one test per case.
//!
//! Cases may run side by side on one datastore: each uses names of its own, from [`Subject::name`].

mod concurrency;
mod objects;
mod reads;
mod watches;
mod writes;

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::{Kind, NetworkSet, Resource};
use tortie_store::{Key, Query, Result, Revision, Store, Watch};

pub use concurrency::{
    updates_of_many_writers_are_never_lost, writes_made_together_do_not_disturb_each_other,
};
pub use reads::{
    every_kind_survives_the_round_trip, lists_are_in_order_of_namespace_and_name,
    lists_select_by_namespace_and_name, several_objects_are_read_at_once,
    the_default_allow_profile_is_always_there, the_parts_of_a_list_make_it_up,
    what_is_not_there_is_not_found,
};
pub use watches::{
    a_watch_from_a_list_misses_nothing, a_watch_replays_what_was_changed_before_it_started,
    a_watch_sees_deletes, many_watches_see_the_same, watches_see_every_change_once_and_in_order,
};
pub use writes::{
    a_create_of_what_is_there_fails, a_created_object_can_be_read, a_delete_gives_what_was_there,
    a_delete_needs_its_preconditions, affinities_are_found_by_their_owner,
    an_object_made_again_is_another_one, an_update_needs_the_current_revision,
    writes_made_together_are_all_made_or_none,
};

/// A datastore to be tested, and what it cannot do.
#[derive(Clone)]
pub struct Subject {
    /// The datastore.
    pub store: Arc<dyn Store>,
    /// What all names in this case start with.
    pub prefix: String,
    /// Kinds that the driver only reads.
    pub read_only: &'static [Kind],
    /// Kinds that the driver stores without metadata: labels and UIDs are not kept.
    pub bare: &'static [Kind],
}

/// Writes one test per case of the contract.
///
/// The argument is an async function from the name of a case to a [`Subject`] and a guard, which is
/// dropped after the case. `subject.namespaces()` must exist where the datastore asks for that.
#[macro_export]
macro_rules! store_contract {
    ($setup:path) => {
        $crate::store_contract! { $setup:
            a_created_object_can_be_read,
            a_create_of_what_is_there_fails,
            what_is_not_there_is_not_found,
            an_update_needs_the_current_revision,
            a_delete_gives_what_was_there,
            a_delete_needs_its_preconditions,
            an_object_made_again_is_another_one,
            writes_made_together_are_all_made_or_none,
            affinities_are_found_by_their_owner,
            several_objects_are_read_at_once,
            lists_select_by_namespace_and_name,
            lists_are_in_order_of_namespace_and_name,
            the_parts_of_a_list_make_it_up,
            every_kind_survives_the_round_trip,
            the_default_allow_profile_is_always_there,
            updates_of_many_writers_are_never_lost,
            writes_made_together_do_not_disturb_each_other,
            a_watch_sees_deletes,
            a_watch_from_a_list_misses_nothing,
            a_watch_replays_what_was_changed_before_it_started,
            watches_see_every_change_once_and_in_order,
            many_watches_see_the_same,
        }
    };
    ($setup:path: $($case:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            let (subject, _guard) = $setup(stringify!($case)).await;
            $crate::$case(&subject).await;
        })*
    };
}

// === impl Subject ===

impl Subject {
    /// A datastore that can do everything. The case becomes part of all names.
    pub fn new(store: impl Store + 'static, case: &str) -> Self {
        // As a name in Kubernetes, and no longer than one of a namespace may be.
        let mut prefix = case.replace('_', "-");
        prefix.truncate(40);
        let prefix = prefix.trim_end_matches('-').to_owned();
        Self {
            store: Arc::new(store),
            prefix,
            read_only: &[],
            bare: &[],
        }
    }

    /// A name that only this case uses.
    pub fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.prefix)
    }

    /// The namespaces that this case uses.
    pub fn namespaces(&self) -> [String; 3] {
        ["a", "a-b", "b"].map(|suffix| self.name(suffix))
    }

    /// A network set in the first namespace.
    fn set(&self, name: &str) -> Resource {
        self.set_in(&self.namespaces()[0], name)
    }

    fn set_in(&self, namespace: &str, name: &str) -> Resource {
        let nets = vec!["10.0.0.0/8".to_owned()];
        NetworkSet::new(namespace, &self.name(name), NetworkSetSpec { nets }).into()
    }

    async fn create(&self, resource: Resource) -> Resource {
        let key = Key::of(&resource);
        let created = self.store.create(resource).await;
        created.unwrap_or_else(|error| panic!("create of {key}: {error}"))
    }
}

/// Where a count is kept in objects, to tell their versions apart.
const COUNT: &str = "count";

fn set_count(resource: &mut Resource, count: usize) {
    resource
        .metadata_mut()
        .labels
        .insert(COUNT.to_owned(), count.to_string());
}

fn count(resource: &Resource) -> usize {
    resource
        .metadata()
        .labels
        .get(COUNT)
        .map_or(0, |text| text.parse().expect("a count is a number"))
}

/// Whether both are the same but for what the datastore adds.
#[track_caller]
fn assert_same(found: &Resource, expected: &Resource) {
    assert_eq!(bookless(found), bookless(expected));
}

fn bookless(resource: &Resource) -> Resource {
    let mut resource = resource.clone();
    let metadata = resource.metadata_mut();
    metadata.resource_version.clear();
    metadata.uid.clear();
    metadata.creation_timestamp = None;
    metadata.generation = None;
    resource
}

/// Watches, and does what the contract leaves to its callers: when a connection ended in good order, watches on.
pub async fn watch(store: &Arc<dyn Store>, query: &Query, from: &Revision) -> Result<Watch> {
    let watch = store.watch(query, from).await?;
    let start = (Arc::clone(store), query.clone(), from.clone(), watch);
    let events = stream::unfold(start, async |(store, query, mut from, mut watch)| {
        loop {
            if let Some(event) = watch.next().await {
                if let Ok(event) = &event {
                    from.clone_from(&event.revision);
                }
                return Some((event, (store, query, from, watch)));
            }
            match store.watch(&query, &from).await {
                Ok(next) => watch = next,
                Err(error) => {
                    let over = stream::empty().boxed();
                    return Some((Err(error), (store, query, from, over)));
                }
            }
        }
    });
    Ok(events.boxed())
}
