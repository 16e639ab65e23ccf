//! Creates, updates and deletes, one at a time.

use tortie_api::{BlockAffinity, Resource};

use tortie_store::{Error, Key, Precondition, Revision, Write, ipam_names};

use crate::{Subject, assert_same, count, set_count};

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

type Objection = fn(&Error) -> bool;

/// Writes that are made together are all made, or none of them is and the error is that of the one in the way.
pub async fn writes_made_together_are_all_made_or_none(subject: &Subject) {
    let [updated, deleted, watched] = ["a", "b", "c"].map(|name| subject.set(name));
    let updated = subject.create(updated).await;
    let deleted = subject.create(deleted).await;
    let watched = subject.create(watched).await;
    let revision_of =
        |resource: &Resource| Some(Revision(resource.metadata().resource_version.clone()));
    let stale = {
        let mut change = watched.clone();
        set_count(&mut change, 1);
        subject
            .store
            .update(change)
            .await
            .expect("the revision is current");
        watched
    };
    let watched = subject
        .store
        .get(&Key::of(&stale))
        .await
        .expect("it is there");
    let created = subject.set("d");
    let mut change = updated.clone();
    set_count(&mut change, 2);
    let good = [
        Write::Create(created.clone()),
        Write::Update(change.clone()),
        Write::Delete(deleted.clone()),
        Write::Unchanged(Key::of(&watched), revision_of(&watched)),
        Write::Unchanged(Key::of(&subject.set("none")), None),
    ];
    let is_here = |result: &Result<_, Error>| !matches!(result, Err(Error::Unsupported { .. }));

    let bad: [(Write, Objection); 6] = [
        (Write::Create(watched.clone()), |error| {
            matches!(error, Error::AlreadyExists(_))
        }),
        (Write::Update(stale.clone()), |error| {
            matches!(error, Error::Conflict(_))
        }),
        (Write::Delete(stale.clone()), |error| {
            matches!(error, Error::Conflict(_))
        }),
        (
            Write::Unchanged(Key::of(&stale), revision_of(&stale)),
            |error| matches!(error, Error::Conflict(_)),
        ),
        (Write::Unchanged(Key::of(&stale), None), |error| {
            matches!(error, Error::Conflict(_))
        }),
        (
            {
                let mut gone = subject.set("gone");
                gone.metadata_mut()
                    .resource_version
                    .clone_from(&stale.metadata().resource_version);
                Write::Update(gone)
            },
            |error| matches!(error, Error::NotFound(_)),
        ),
    ];
    for (write, expected) in bad {
        let mut writes = good.to_vec();
        writes.retain(|good| good.key() != write.key());
        writes.push(write.clone());
        let result = subject.store.write_together(writes).await;
        if !is_here(&result) {
            return;
        }
        let error = result.expect_err("one of the writes cannot be made");
        assert!(expected(&error), "{write:?}: {error:?}");
        assert_eq!(
            subject
                .store
                .get(&Key::of(&updated))
                .await
                .expect("it is there"),
            updated
        );
        assert!(subject.store.get(&Key::of(&created)).await.is_err());
    }
    let twice = vec![good[0].clone(), good[0].clone()];
    assert!(subject.store.write_together(twice).await.is_err());

    let written = subject.store.write_together(good.to_vec()).await;
    let written = written.expect("all writes can be made");
    assert_eq!(written.len(), 2);
    assert_same(&written[0], &created);
    assert_same(&written[1], &change);
    for resource in &written {
        let found = subject.store.get(&Key::of(resource)).await;
        assert_eq!(found.expect("it was written"), *resource);
    }
    let result = subject.store.get(&Key::of(&deleted)).await;
    assert!(matches!(result, Err(Error::NotFound(_))), "{result:?}");
    assert!(subject.store.write_together(Vec::new()).await.is_ok());
}

/// The affinities of an owner are found by its name, and not those of owners with a similar one.
pub async fn affinities_are_found_by_their_owner(subject: &Subject) {
    let owners = [
        subject.name("a"),
        subject.name("a-1"),
        subject.name("ab"),
        "n".repeat(220),
    ];
    for owner in &owners {
        for cidr in ["192.0.2.0/30", "192.0.2.4/30"] {
            let mut affinity = BlockAffinity::default();
            affinity.metadata.name = ipam_names::of_affinity(owner, cidr);
            affinity.spec.node.clone_from(owner);
            "host".clone_into(&mut affinity.spec.r#type);
            cidr.clone_into(&mut affinity.spec.cidr);
            subject.create(affinity.into()).await;
        }
    }
    for owner in &owners {
        let list = subject.store.list_affinities(owner).await;
        let found: Vec<_> = list.expect("they can be listed").items;
        assert_eq!(found.len(), 2, "{owner}");
        for item in found {
            let Resource::BlockAffinity(affinity) = item else {
                panic!("{item:?}")
            };
            assert_eq!(affinity.spec.node, *owner);
        }
    }
}
