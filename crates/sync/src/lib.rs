//! Follows a datastore: first all there is, then every change, with a status that says when the first is done.
//!
//! ```text
//! Store, per kind ──list, then watch──▶ cache: name → revision ──what is new──┐
//! Store, per kind ──list, then watch──▶ cache: name → revision ──what is new──┼──▶ mailbox ──▶ Batch: updates, status
//! Services, slices ─list, then watch──▶ cache: name → revision ──what is new──┘  latest per object
//! ```
//!
//! # Invariants
//! - Once the datastore rests and can be reached, the updates so far add up to what it holds, whatever was lost,
//!   repeated or compacted on the way.
//! - The mailbox holds one state per object, the newest: a slow consumer costs memory for the objects there are, not
//!   for the changes made to them.
//! - A batch has the status that holds after its updates.
//! - Losing the datastore removes nothing.

mod cache;
mod counters;
mod known;
mod mailbox;
mod object;
mod pace;
mod remarks;
mod source;
mod status;
mod syncer;

pub use counters::Counters;
pub use pace::Pace;
pub use remarks::Remark;
pub use status::Status;
pub use syncer::{Batch, Config, Consequence, Problem, Syncer, Wake};
