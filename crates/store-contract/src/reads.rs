//! Gets and lists.

use futures::StreamExt as _;
use tortie_api::{Kind, Resource};

use tortie_store::{Error, Key, List, Precondition, Query, Revision};

use crate::{Subject, assert_same, objects};

const DEFAULT_ALLOW: &str = "projectcalico-default-allow";

/// Reading, replacing and removing nothing all say so.
pub async fn what_is_not_there_is_not_found(subject: &Subject) {
    let other = subject.create(subject.set("other")).await;
    let mut resource = subject.set("none");
    let key = Key::of(&resource);
    let revision = &other.metadata().resource_version;
    resource
        .metadata_mut()
        .resource_version
        .clone_from(revision);
    resource
        .metadata_mut()
        .uid
        .clone_from(&other.metadata().uid);
    let store = &subject.store;
    let results = [
        store.get(&key).await,
        store.update(resource).await,
        store.delete(&key, &Precondition::default()).await,
    ];
    for result in results {
        assert!(
            matches!(&result, Err(Error::NotFound(at)) if *at == key),
            "{result:?}"
        );
    }
    let list = list(subject, &Query::from(&key)).await;
    assert!(list.items.is_empty() && list.invalid.is_empty());
}

/// A list has what its query selects and nothing else.
pub async fn lists_select_by_namespace_and_name(subject: &Subject) {
    let namespaces = subject.namespaces();
    for namespace in &namespaces {
        for name in ["x", "xy"] {
            subject.create(subject.set_in(namespace, name)).await;
        }
    }
    let [a, a_b, b] = &namespaces;
    let (x, xy) = (subject.name("x"), subject.name("xy"));
    let kind = Kind::NetworkSet;
    let in_a = Query::in_namespace(kind, a);
    check(subject, &in_a, &[(a, &x), (a, &xy)]).await;
    let exact = Query {
        name: Some(x.clone()),
        ..in_a
    };
    check(subject, &exact, &[(a, &x)]).await;
    let by_name = Query {
        namespace: None,
        name: Some(xy.clone()),
        kind,
    };
    check(subject, &by_name, &[(a, &xy), (a_b, &xy), (b, &xy)]).await;
    let everything = [(a, &x), (a, &xy), (a_b, &x), (a_b, &xy), (b, &x), (b, &xy)];
    check(subject, &Query::all(kind), &everything).await;
    check(
        subject,
        &Query::in_namespace(kind, subject.name("none")),
        &[],
    )
    .await;
}

/// Several objects are answered in the order in which they were asked for, and one that is missing does not hide others.
pub async fn several_objects_are_read_at_once(subject: &Subject) {
    let mut keys = Vec::new();
    let mut expected = Vec::new();
    // More than etcd reads in one transaction.
    for number in (0..150).rev() {
        let set = subject.set(&format!("{number:03}"));
        keys.push(Key::of(&set));
        let is_there = number % 3 > 0;
        expected.push(if is_there {
            Some(subject.create(set).await)
        } else {
            None
        });
    }
    let found = subject.store.get_many(&keys).await;
    let found = found.unwrap_or_else(|error| panic!("get of several: {error}"));
    let revisions = subject.store.revisions(&keys).await;
    let revisions = revisions.unwrap_or_else(|error| panic!("revisions of several: {error}"));
    assert_eq!((found.len(), revisions.len()), (keys.len(), keys.len()));
    for (((key, expected), found), revision) in keys.iter().zip(expected).zip(found).zip(revisions)
    {
        match (expected, found) {
            (Some(expected), Ok(found)) => {
                assert_same(&found, &expected);
                let expected = Revision(expected.metadata().resource_version.clone());
                assert_eq!(revision, Some(expected), "{key}");
            }
            (None, Err(Error::NotFound(missing))) => {
                assert_eq!(missing, *key);
                assert_eq!(revision, None, "{key}");
            }
            (expected, found) => panic!("{key}: {found:?} instead of {expected:?}"),
        }
    }
}

/// Namespaces come before names, and `a` before `a-b`, whatever stands between them in storage.
pub async fn lists_are_in_order_of_namespace_and_name(subject: &Subject) {
    let namespaces = subject.namespaces();
    let names = ["a", "a-b", "a.b", "ab", "b"];
    for name in names.iter().rev() {
        for namespace in namespaces.iter().rev() {
            subject.create(subject.set_in(namespace, name)).await;
        }
    }
    let names = names.map(|name| subject.name(name));
    let expected: Vec<_> = namespaces
        .iter()
        .flat_map(|space| names.iter().map(move |name| (space, name)))
        .collect();
    check(subject, &Query::all(Kind::NetworkSet), &expected).await;
}

/// An object with most of its fields set comes back as it was, of every kind.
pub async fn every_kind_survives_the_round_trip(subject: &Subject) {
    for kind in Kind::ALL
        .iter()
        .copied()
        .filter(|kind| !subject.read_only.contains(kind))
    {
        let resource = objects::rich(subject, kind);
        let key = Key::of(&resource);
        let created = subject.create(resource.clone()).await;
        let got = subject.store.get(&key).await;
        let got = got.unwrap_or_else(|error| panic!("get of {key}: {error}"));
        let list = list(subject, &Query::from(&key)).await;
        assert_eq!(list.items.len(), 1, "{key}: {:?}", list.invalid);
        for found in [&created, &got, &list.items[0]] {
            assert_same(
                &without_lost(subject, found),
                &without_lost(subject, &resource),
            );
            assert!(!found.metadata().uid.is_empty(), "{key}");
        }
        assert_eq!(got, created);
        let several = subject.store.get_many(std::slice::from_ref(&key)).await;
        let several = several.unwrap_or_else(|error| panic!("get of {key} with others: {error}"));
        assert!(
            matches!(several.as_slice(), [Ok(found)] if *found == got),
            "{key}: {several:?}"
        );
        let revisions = subject.store.revisions(std::slice::from_ref(&key)).await;
        let revisions = revisions.unwrap_or_else(|error| panic!("revision of {key}: {error}"));
        let expected = Revision(got.metadata().resource_version.clone());
        assert_eq!(revisions, [Some(expected)], "{key}");
        let deleted = subject.store.delete(&key, &Precondition::default()).await;
        let deleted = deleted.unwrap_or_else(|error| panic!("delete of {key}: {error}"));
        assert_same(&deleted, &created);
    }
}

/// The profile that allows everything can be read but not changed.
pub async fn the_default_allow_profile_is_always_there(subject: &Subject) {
    let key = Key::global(Kind::Profile, DEFAULT_ALLOW);
    let profile = subject.store.get(&key).await.expect("it is always there");
    let value = profile.to_value();
    assert_eq!(value["spec"]["ingress"][0]["action"], "Allow");
    assert_eq!(value["spec"]["egress"][0]["action"], "Allow");
    let all = list(subject, &Query::all(Kind::Profile)).await;
    let one = list(subject, &Query::from(&key)).await;
    for list in [all, one] {
        let found = list
            .items
            .iter()
            .filter(|item| item.metadata().name == DEFAULT_ALLOW);
        assert_eq!(found.collect::<Vec<_>>(), [&profile]);
    }
    if !subject.read_only.contains(&Kind::Profile) {
        let result = subject.store.create(profile.clone()).await;
        assert!(matches!(result, Err(Error::AlreadyExists(_))), "{result:?}");
    }
    let update = subject.store.update(profile).await;
    assert!(
        matches!(update, Err(Error::Unsupported { .. })),
        "{update:?}"
    );
    let delete = subject.store.delete(&key, &Precondition::default()).await;
    assert!(
        matches!(delete, Err(Error::Unsupported { .. })),
        "{delete:?}"
    );
}

/// Read in parts, a list is the same: nothing is missing, nothing comes twice.
pub async fn the_parts_of_a_list_make_it_up(subject: &Subject) {
    let namespace = &subject.namespaces()[0];
    for number in 0..5 {
        subject.create(subject.set(&format!("x{number}"))).await;
    }
    for query in [
        Query::in_namespace(Kind::NetworkSet, namespace),
        Query {
            name: Some(DEFAULT_ALLOW.to_owned()),
            ..Query::all(Kind::Profile)
        },
    ] {
        let mut items = Vec::new();
        let mut parts = subject.store.list_in_parts(&query);
        while let Some(part) = parts.next().await {
            let part = part.unwrap_or_else(|error| panic!("a part of {query:?}: {error}"));
            assert_ne!(part.revision, Revision::default());
            items.extend(part.items);
        }
        let whole = list(subject, &query).await;
        assert_eq!(items, whole.items);
        assert!(!items.is_empty());
    }
}

async fn list(subject: &Subject, query: &Query) -> List {
    let list = subject.store.list(query).await;
    list.unwrap_or_else(|error| panic!("list of {query:?}: {error}"))
}

/// Other cases may have objects in the same datastore; those are not looked at.
async fn check(subject: &Subject, query: &Query, expected: &[(&String, &String)]) {
    let list = list(subject, query).await;
    let metadata = list.items.iter().map(Resource::metadata);
    let found: Vec<_> = metadata
        .filter(|metadata| metadata.name.starts_with(&subject.prefix))
        .filter(|metadata| metadata.namespace.starts_with(&subject.prefix))
        .map(|metadata| (&metadata.namespace, &metadata.name))
        .collect();
    assert_eq!(found, expected, "{query:?}");
    assert!(!list.revision.0.is_empty());
}

/// The resource without what the driver need not keep.
fn without_lost(subject: &Subject, resource: &Resource) -> Resource {
    let mut resource = resource.clone();
    if subject.bare.contains(&resource.kind()) {
        resource.metadata_mut().labels.clear();
        resource.metadata_mut().annotations.clear();
    }
    resource
}
