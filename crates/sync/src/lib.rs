//! Follows a datastore: first all there is, then every change, with a status that says when the first is done.
//!
//! ```text
//! Store, per kind ──list, then watch──▶ follower ──▶ slot: name → revision ──what is new──┐
//! Store, per kind ──list, then watch──▶ follower ──▶ slot: name → revision ──what is new──┼──▶ mailbox ──▶ Batch
//! Services, slices ─list, then watch──▶ follower ──▶ slot: name → revision ──what is new──┘  latest per object
//! ```
//!
//! # Invariants
//! - Once the datastore rests and can be reached, the updates so far add up to what it holds, whatever was lost,
//!   repeated or compacted on the way.
//! - The mailbox holds one state per object, the newest: a slow consumer costs memory for the objects there are, not
//!   for the changes made to them.
//! - A batch has the status that holds after its updates.
//! - Losing the datastore removes nothing.

mod counters;
mod follower;
mod keeper;
mod known;
mod mailbox;
mod object;
mod pace;
mod remarks;
mod resumed;
mod source;
mod status;
mod syncer;

pub use counters::Counters;
pub use follower::Follower;
pub use keeper::Keeper;
pub use mailbox::Wake;
pub use object::{Item, Name, State};
pub use pace::Pace;
pub use remarks::Remark;
pub use resumed::watch_resumed;
pub use source::store::StoreSource;
pub use source::{Change, Event, Events, Failure, Part, Source};
pub use status::Status;
pub use syncer::{Batch, Config, Consequence, Problem, Syncer};
