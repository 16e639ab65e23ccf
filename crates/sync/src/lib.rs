//! Follows a datastore: first all there is, then every change, with a status that says when the first is done.
//!
//! ```text
//! Source of one kind ──list, then watch──▶ Follower ──▶ Keeper of whoever follows one kind
//!
//! Source of one kind ──list, then watch──▶ Follower ──▶ slot: name → revision ──what is new──┐
//! another Source ──────list, then watch──▶ Follower ──▶ slot: name → revision ──what is new──┴──▶ mailbox ──▶ Batch
//!                                                                                  newest state per object
//! ```
//!
//! A [`Source`] is a kind of resources in a datastore (`tortie_store::StoreSource`), or a kind of objects of Kubernetes
//! ([`kubernetes::KubernetesSource`]). Who needs nothing but the changes after a revision takes a [`Resumed`] watch.
//!
//! # Invariants
//! - Once the datastore rests and can be reached, what was told so far adds up to what it holds, whatever was lost,
//!   repeated or compacted on the way.
//! - The mailbox holds one state per object, the newest: a slow consumer costs memory for the objects there are, not
//!   for the changes made to them.
//! - A batch has the status that holds after its changes.
//! - Losing the datastore removes nothing.

mod counters;
mod follower;
mod followers;
mod keeper;
mod known;
pub mod kubernetes;
mod mailbox;
mod object;
mod pace;
mod resumed;
mod revision;
mod source;
mod status;

pub use counters::Counters;
pub use follower::Follower;
pub use followers::{Followers, Topic};
pub use keeper::Keeper;
pub use mailbox::{Batch, Changed, Wake};
pub use object::{Item, Name, State};
pub use pace::Pace;
pub use resumed::{Connection, Resumed, Step, Watched};
pub use revision::Revision;
pub use source::{Change, Event, Events, Failure, Part, Reading, Source};
pub use status::Status;
