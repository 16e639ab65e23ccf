//! Many writers at once.

use futures::future::join_all;

use tortie_store::{Error, Key, Revision, Write};

use crate::{Subject, count, set_count};

const WRITERS: usize = 8;
const UPDATES: usize = 25;

/// Each writer adds to one count by reading, changing and writing; the sum is right in the end.
pub async fn updates_of_many_writers_are_never_lost(subject: &Subject) {
    let key = Key::of(&subject.create(subject.set("a")).await);
    let writers = (0..WRITERS).map(|_| tokio::spawn(add(subject.clone(), key.clone())));
    for writer in join_all(writers).await {
        writer.expect("no writer failed");
    }
    let found = subject.store.get(&key).await.expect("it is there");
    assert_eq!(count(&found), WRITERS * UPDATES);
}

/// Writers who write several objects at once, and rely on one that none of them changes, get what each of them asked for:
/// those who are wrong about an object change nothing, and do not keep the others from theirs.
pub async fn writes_made_together_do_not_disturb_each_other(subject: &Subject) {
    let guard = subject.create(subject.set("guard")).await;
    let at = Revision(guard.metadata().resource_version.clone());
    let writers = (0..4 * WRITERS).map(|number| {
        let (subject, guard, at) = (subject.clone(), Key::of(&guard), at.clone());
        tokio::spawn(async move {
            for round in 0..UPDATES {
                let expected = match number % 4 {
                    0 if round % 3 == 0 => None,
                    _ => Some(at.clone()),
                };
                let names = ["x", "y"].map(|name| format!("{name}-{number}-{round}"));
                let [x, y] = names.map(|name| subject.set(&name));
                let keys = [Key::of(&x), Key::of(&y)];
                let is_right = expected.is_some();
                let writes = vec![
                    Write::Create(x),
                    Write::Unchanged(guard.clone(), expected),
                    Write::Create(y),
                ];
                match subject.store.write_together(writes).await {
                    Err(Error::Unsupported { .. }) => return,
                    Err(Error::Conflict(key)) if !is_right && key == guard => {}
                    Ok(written) if is_right => {
                        let written: Vec<Key> = written.iter().map(Key::of).collect();
                        assert_eq!(written, keys);
                    }
                    other => panic!("writer {number}, round {round}: {other:?}"),
                }
                let found = subject
                    .store
                    .revisions(&keys)
                    .await
                    .expect("it can be read");
                let are_there = found.iter().filter(|revision| revision.is_some()).count();
                assert_eq!(are_there, if is_right { 2 } else { 0 });
            }
        })
    });
    for writer in join_all(writers).await {
        writer.expect("no writer failed");
    }
}

async fn add(subject: Subject, key: Key) {
    for _ in 0..UPDATES {
        loop {
            let mut resource = subject.store.get(&key).await.expect("it is there");
            let next = count(&resource) + 1;
            set_count(&mut resource, next);
            match subject.store.update(resource).await {
                Ok(_) => break,
                Err(Error::Conflict(_)) => {}
                Err(error) => panic!("update of {key}: {error}"),
            }
        }
    }
}
