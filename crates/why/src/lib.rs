//! Why a connection is allowed or denied: a world of files or of a datastore, who is meant, and the answers as data.
//!
//! ```text
//! files, datastore ─▶ load ─▶ World: engine, directory ─┐
//!                             Question ─▶ its meaning ──┴─▶ Reply: connections, each with a verdict
//! ```
//!
//! Nothing is printed: what is to be known beside an answer is a [`Remark`].

mod answers;
mod connection;
mod directory;
mod flow;
mod kernels;
mod load;
mod meaning;
mod object;
mod party;
mod placeholders;
mod reply;
mod route;
mod services;
mod sources;
mod spelling;
mod suggest;
pub mod updates;
mod world;

pub use answers::{Answer, Answers};
pub use connection::{Behind, Connection};
pub use directory::Directory;
pub use flow::{Asked, Port, Question, has_authentication_header};
pub use kernels::Kernels;
pub use load::{Files, Remark, Tell, from_datastore, from_files};
pub use party::Party;
pub use placeholders::Placeholders;
pub use reply::{Form, Judged, Reply};
pub use sources::Sources;
pub use world::World;
