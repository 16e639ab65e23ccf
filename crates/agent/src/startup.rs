//! A node's start: who it is, which addresses it has, and what the datastore must hold for it.
//!
//! [`Settings`] are read from the environment, as Calico's node has them; [`register`] makes the node's resource and what a
//! cluster begins with; [`tunnel::ensure`] gives its tunnel devices addresses; [`follow`] puts right what gets lost of it.

mod again;
pub mod autodetect;
mod configurations;
mod follow;
mod pools;
mod register;
mod settings;
pub mod tunnel;

pub use again::{Registration, register_again};
pub use follow::{Failure, Registrar, follow};
pub use pools::PoolSettings;
pub use register::{Error, KubernetesFacts, Registered, register};
pub use settings::{Addressing, Settings, SettingsError};
