//! Objects of an API server of Kubernetes: reading them page by page, watching them over one connection, and what its
//! refusals mean.

mod connection;
mod endpoint;
mod failure;
mod page;
mod source;

pub use connection::{Connection, Told};
pub use endpoint::{Endpoint, Selection, built, in_time, path_segment};
pub use failure::Error;
pub use page::{PAGE_SIZE, Page};
pub use source::{KubernetesSource, item};
