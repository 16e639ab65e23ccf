//! Who is told what a follower learns.

use async_trait::async_trait;

use crate::object::Name;
use crate::source::Change;
use crate::status::Status;

/// Is told what a follower learns, and remembers which objects there are.
///
/// A keeper that cannot take more lets the follower wait.
#[async_trait]
pub trait Keeper<V>: Send + 'static {
    /// Whether there are no objects, as far as was told.
    fn is_empty(&self) -> bool;

    /// Whether there is an object of this name, as far as was told.
    fn has(&self, name: &Name) -> bool;

    /// Takes changes, in their order, and the status that holds after them. Gives how many of them were news.
    async fn take(&mut self, changes: Vec<Change<V>>, status: Status) -> usize;

    /// Everything there is begins to be read, and then to be told. It may begin again without having ended.
    fn begin_list(&mut self);

    /// Everything there is has been told since the list began: all else is gone, and the status is
    /// [`Status::InSync`]. Gives how much of it was news.
    async fn end_list(&mut self) -> usize;

    /// The datastore answers.
    async fn in_contact(&mut self) {}

    /// The datastore does not answer or, with the reason, it does not let us read.
    async fn lose_contact(&mut self, refusal: Option<String>) {
        let _ = refusal;
    }
}
