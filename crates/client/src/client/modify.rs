//! Read, change, write by compare-and-swap, and again from the start when another write came in between.

use std::time::Duration;

use tortie_api::Resource;
use tortie_backoff::{Backoff, Retries};

use super::{Client, identify};
use tortie_store::{Error, Key, Result};

/// How often something is tried that conflicts with the writes of others.
const ATTEMPTS: usize = 10;

/// The pauses between attempts, a second in all: who conflicts with many must not keep conflicting with them.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(5),
    most: Duration::from_millis(200),
    jitter: 0.5,
};

/// An object of one kind, or of any.
pub trait Modifiable: TryFrom<Resource> + Into<Resource> + Clone + PartialEq {}

impl<T: TryFrom<Resource> + Into<Resource> + Clone + PartialEq> Modifiable for T {}

impl Client {
    /// Reads an object, changes it, and replaces it by compare-and-swap; with what others wrote, if they came in between.
    /// Nothing is written if the change refuses, which is the error then, or leaves the object as it is. Gives the object
    /// as it is stored. After too many conflicts the error is that of the last.
    pub async fn modify<T, E>(
        &self,
        key: &Key,
        change: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<T, E>
    where
        T: Modifiable,
        E: From<Error>,
    {
        // Boxed, as it holds several objects.
        Box::pin(self.read_change_write(key, None, change)).await
    }

    /// The same, for an object that is created where it is absent: `new`, with the change.
    pub async fn modify_or_create<T, E>(
        &self,
        new: T,
        change: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<T, E>
    where
        T: Modifiable,
        E: From<Error>,
    {
        let new = Box::new(new);
        let key = Key::of(&(*new).clone().into());
        Box::pin(self.read_change_write(&key, Some(&*new), change)).await
    }

    /// The same for the observed state of an object. Gives the object as it is stored.
    pub async fn modify_status<T: Modifiable>(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut T),
    ) -> Result<T> {
        let mut retries = ConflictRetries::default();
        loop {
            let mut object: T = typed(key, self.get(key).await?)?;
            change(&mut object);
            match self.update_status(object.into()).await {
                Err(error) if error.is_conflict() && retries.wait().await => {}
                written => return typed(key, written?),
            }
        }
    }

    async fn read_change_write<T, E>(
        &self,
        key: &Key,
        new: Option<&T>,
        mut change: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<T, E>
    where
        T: Modifiable,
        E: From<Error>,
    {
        let mut retries = ConflictRetries::default();
        loop {
            match self.change_once(key, new, &mut change).await {
                Err(error) if error.is_conflict() && retries.wait().await => {}
                outcome => return outcome?,
            }
        }
    }

    /// The outer error is of the store, the inner one of the change, which is never tried again.
    async fn change_once<T, E>(
        &self,
        key: &Key,
        new: Option<&T>,
        change: &mut impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<Result<T, E>>
    where
        T: Modifiable,
    {
        let (before, mut after) = match (self.get(key).await, new) {
            (Err(Error::NotFound(_)), Some(new)) => (None, new.clone()),
            (found, _) => {
                let found: T = typed(key, found?)?;
                (Some(found.clone()), found)
            }
        };
        if let Err(refusal) = change(&mut after) {
            return Ok(Err(refusal));
        }
        if before.as_ref() == Some(&after) {
            return Ok(Ok(after));
        }
        let mut after: Resource = after.into();
        let written = if before.is_some() {
            // It may have been written by somebody who knows nothing of identities.
            identify(after.metadata_mut());
            match self.update(after).await {
                // Deleted since it was read: the next attempt creates it.
                Err(Error::NotFound(key)) if new.is_some() => return Err(Error::Conflict(key)),
                written => written?,
            }
        } else {
            self.create(after).await?
        };
        Ok(Ok(typed(key, written)?))
    }
}

/// Makes attempts, each from the start, while they end with a conflict; a few, with growing pauses.
pub async fn retry_conflicts<T, E, F>(
    is_conflict: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut retries = ConflictRetries::default();
    loop {
        match attempt().await {
            Err(error) if is_conflict(&error) && retries.wait().await => {}
            outcome => return outcome,
        }
    }
}

/// The attempts after a first one.
struct ConflictRetries {
    left: usize,
    pauses: Retries,
}

impl Default for ConflictRetries {
    fn default() -> Self {
        Self {
            left: ATTEMPTS - 1,
            pauses: Retries::new(BACKOFF),
        }
    }
}

impl ConflictRetries {
    /// Waits for the next one. There may be none left.
    async fn wait(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        tokio::time::sleep(self.pauses.failed()).await;
        true
    }
}

fn typed<T: TryFrom<Resource>>(key: &Key, resource: Resource) -> Result<T> {
    T::try_from(resource).map_err(|_| {
        Error::message(format!(
            "the datastore gave another kind of object for {key}"
        ))
    })
}
