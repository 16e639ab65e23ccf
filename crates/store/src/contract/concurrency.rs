//! Many writers at once.

use futures::future::join_all;

use super::{Subject, count, set_count};
use crate::error::Error;
use crate::key::Key;

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
