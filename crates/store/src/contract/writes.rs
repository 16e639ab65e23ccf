//! Creates, updates and deletes, one at a time.

use super::{Subject, assert_same, count, set_count};
use crate::error::Error;
use crate::key::{Key, Revision};
use crate::store::Precondition;

/// What was created is there, with a revision.
pub async fn a_created_object_can_be_read(subject: &Subject) {
    let mut resource = subject.set("a");
    resource
        .metadata_mut()
        .labels
        .insert("l".to_owned(), "1".to_owned());
    // To be ignored.
    "nonsense".clone_into(&mut resource.metadata_mut().resource_version);
    let created = subject.create(resource.clone()).await;
    assert_same(&created, &resource);
    assert!(!created.metadata().resource_version.is_empty());
    let found = subject
        .store
        .get(&Key::of(&resource))
        .await
        .expect("it was just created");
    assert_eq!(found, created);
}

/// A second object of a name is refused and changes nothing.
pub async fn a_create_of_what_is_there_fails(subject: &Subject) {
    let created = subject.create(subject.set("a")).await;
    let mut other = subject.set("a");
    set_count(&mut other, 1);
    let key = Key::of(&other);
    let result = subject.store.create(other).await;
    assert!(
        matches!(&result, Err(Error::AlreadyExists(at)) if *at == key),
        "{result:?}"
    );
    assert_eq!(subject.store.get(&key).await.expect("it is there"), created);
}

/// An update replaces the revision it is based on and no other.
pub async fn an_update_needs_the_current_revision(subject: &Subject) {
    let first = subject.create(subject.set("a")).await;
    let key = Key::of(&first);
    let mut change = first.clone();
    set_count(&mut change, 1);
    let second = subject
        .store
        .update(change.clone())
        .await
        .expect("the revision is current");
    assert_same(&second, &change);
    assert_ne!(
        second.metadata().resource_version,
        first.metadata().resource_version
    );

    for revision in [first.metadata().resource_version.as_str(), ""] {
        set_count(&mut change, 2);
        revision.clone_into(&mut change.metadata_mut().resource_version);
        let result = subject.store.update(change.clone()).await;
        assert!(
            matches!(&result, Err(Error::Conflict(at)) if *at == key),
            "{result:?}"
        );
    }
    let found = subject.store.get(&key).await.expect("it is there");
    assert_eq!((count(&found), &found), (1, &second));
}

/// A delete gives the last state, and afterwards there is nothing.
pub async fn a_delete_gives_what_was_there(subject: &Subject) {
    let created = subject.create(subject.set("a")).await;
    let key = Key::of(&created);
    let deleted = subject.store.delete(&key, &Precondition::default()).await;
    assert_same(&deleted.expect("it is there"), &created);
    let result = subject.store.get(&key).await;
    assert!(
        matches!(&result, Err(Error::NotFound(at)) if *at == key),
        "{result:?}"
    );
}

/// A delete is refused if the object is at another revision or is another one.
pub async fn a_delete_needs_its_preconditions(subject: &Subject) {
    let mut resource = subject.set("a");
    "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f".clone_into(&mut resource.metadata_mut().uid);
    let first = subject.create(resource).await;
    let key = Key::of(&first);
    let mut change = first.clone();
    set_count(&mut change, 1);
    let second = subject
        .store
        .update(change)
        .await
        .expect("the revision is current");

    let at = |revision: &str| Some(Revision(revision.to_owned()));
    let stale = at(&first.metadata().resource_version);
    let current = at(&second.metadata().resource_version);
    let uid = Some(second.metadata().uid.clone());
    let other = Some("11111111-1111-4111-8111-111111111111".to_owned());
    for precondition in [
        Precondition {
            revision: stale.clone(),
            uid: None,
        },
        Precondition {
            revision: None,
            uid: other.clone(),
        },
        Precondition {
            revision: stale,
            uid: uid.clone(),
        },
        Precondition {
            revision: current.clone(),
            uid: other,
        },
    ] {
        let result = subject.store.delete(&key, &precondition).await;
        assert!(
            matches!(&result, Err(Error::Conflict(at)) if *at == key),
            "{result:?}"
        );
    }
    let precondition = Precondition {
        revision: current,
        uid,
    };
    let deleted = subject
        .store
        .delete(&key, &precondition)
        .await
        .expect("the precondition holds");
    assert_eq!(count(&deleted), 1);
}

/// An object that was deleted and made again has another revision than it ever had.
pub async fn an_object_made_again_is_another_one(subject: &Subject) {
    let first = subject.create(subject.set("a")).await;
    let key = Key::of(&first);
    subject
        .store
        .delete(&key, &Precondition::default())
        .await
        .expect("it is there");
    let second = subject.create(subject.set("a")).await;
    assert_ne!(
        second.metadata().resource_version,
        first.metadata().resource_version
    );
    let mut change = first;
    set_count(&mut change, 1);
    let result = subject.store.update(change).await;
    assert!(
        matches!(&result, Err(Error::Conflict(at)) if *at == key),
        "{result:?}"
    );
}
