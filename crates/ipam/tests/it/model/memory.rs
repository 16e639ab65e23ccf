//! A datastore in memory, quick enough for many thousand runs. It passes the contract that all drivers pass.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use tortie_store::{
    Error, Key, List, Precondition, Query, Resource, Result, Revision, Store, Watch, Write,
};

#[derive(Default)]
pub(crate) struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Resource>,
    revision: u64,
}

impl MemoryStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn get(&self, key: &Key) -> Result<&Resource> {
        self.objects
            .get(key)
            .ok_or_else(|| Error::NotFound(key.clone()))
    }

    fn put(&mut self, mut resource: Resource) -> Resource {
        self.revision += 1;
        resource.metadata_mut().resource_version = self.revision.to_string();
        self.objects.insert(Key::of(&resource), resource.clone());
        resource
    }

    fn create(&mut self, resource: Resource) -> Result<Resource> {
        let key = Key::of(&resource);
        if self.objects.contains_key(&key) {
            return Err(Error::AlreadyExists(key));
        }
        Ok(self.put(resource))
    }

    fn update(&mut self, resource: Resource) -> Result<Resource> {
        self.expect(&Key::of(&resource), &resource.metadata().resource_version)?;
        Ok(self.put(resource))
    }

    fn delete(&mut self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        let found = self.get(key)?;
        let uid = &precondition.uid;
        if uid.as_ref().is_some_and(|uid| *uid != found.metadata().uid) {
            return Err(Error::Conflict(key.clone()));
        }
        if let Some(Revision(revision)) = &precondition.revision {
            self.expect(key, revision)?;
        }
        self.revision += 1;
        self.objects
            .remove(key)
            .ok_or_else(|| Error::NotFound(key.clone()))
    }

    fn expect(&self, key: &Key, revision: &str) -> Result<()> {
        if self.get(key)?.metadata().resource_version == revision {
            Ok(())
        } else {
            Err(Error::Conflict(key.clone()))
        }
    }

    /// No two writes are about one object, so that none changes what another finds.
    fn check(&self, write: &Write) -> Result<()> {
        let key = write.key();
        match write {
            Write::Create(_) if self.objects.contains_key(&key) => Err(Error::AlreadyExists(key)),
            Write::Update(resource) | Write::Delete(resource) => {
                self.expect(&key, &resource.metadata().resource_version)
            }
            Write::Unchanged(_, Some(Revision(revision))) => self
                .expect(&key, revision)
                .map_err(|_| Error::Conflict(key)),
            Write::Unchanged(_, None) if self.objects.contains_key(&key) => {
                Err(Error::Conflict(key))
            }
            Write::Create(_) | Write::Unchanged(_, None) => Ok(()),
        }
    }

    fn apply(&mut self, write: Write) -> Result<Option<Resource>> {
        match write {
            Write::Create(resource) => self.create(resource).map(Some),
            Write::Update(resource) => self.update(resource).map(Some),
            Write::Delete(resource) => {
                let revision = Some(Revision(resource.metadata().resource_version.clone()));
                self.delete(
                    &Key::of(&resource),
                    &Precondition {
                        revision,
                        uid: None,
                    },
                )
                .map(|_| None)
            }
            Write::Unchanged(..) => Ok(None),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.state().get(key).cloned()
    }

    async fn list(&self, query: &Query) -> Result<List> {
        let state = self.state();
        let objects = state.objects.iter().filter(|(key, _)| query.selects(key));
        Ok(List {
            items: objects.map(|(_, resource)| resource.clone()).collect(),
            invalid: Vec::new(),
            revision: Revision(state.revision.to_string()),
        })
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        self.state().create(resource)
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        self.state().update(resource)
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.state().delete(key, precondition)
    }

    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        let mut keys: Vec<Key> = writes.iter().map(Write::key).collect();
        keys.sort();
        keys.dedup();
        if keys.len() != writes.len() {
            return Err(Error::message("an object is written twice"));
        }
        let mut state = self.state();
        for write in &writes {
            state.check(write)?;
        }
        writes
            .into_iter()
            .filter_map(|write| state.apply(write).transpose())
            .collect()
    }

    async fn watch(&self, _: &Query, from: &Revision) -> Result<Watch> {
        Err(Error::Gone(from.0.clone()))
    }
}

mod contract {
    use tortie_store_contract::Subject;

    use super::MemoryStore;

    #[expect(clippy::unused_async, reason = "the suite wants it")]
    async fn setup(case: &str) -> (Subject, ()) {
        (Subject::new(MemoryStore::default(), case), ())
    }

    tortie_store_contract::store_contract! { setup:
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
        every_kind_survives_the_round_trip,
        updates_of_many_writers_are_never_lost,
        writes_made_together_do_not_disturb_each_other,
    }
}
