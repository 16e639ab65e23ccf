//! A datastore through a unix socket, for when one process has the file and others need the data.
//!
//! ```text
//! SocketStore ──requests──▶ one connection ──▶ a task per request ──▶ any Store
//!      ▲                          │
//!      ├──answers, in any order───┘
//!      └──events────────── a connection per watch ◀── Store::watch
//! ```
//!
//! Both sides send frames: a head with length, number and mark, and JSON after it. The server greets
//! first, the client says which protocol it speaks, then come requests. A request and its answer have
//! the same number. A long list comes in several frames, so that it neither holds up other answers nor
//! has a limit.
//!
//! # Invariants
//! - Only root and the user of the server are served.
//! - A frame that is none ends its connection and nothing else.
//! - Nothing grows without bound: a connection's requests under way have a budget of bytes, and a watch
//!   that is not read stops at the socket.
//! - A write is sent once. Who loses the connection before the answer is told so.

mod bind;
mod client;
mod connection;
mod failure;
mod frame;
mod message;
mod problems;
mod server;
mod session;

pub use self::bind::bind;
pub use self::client::SocketStore;
pub use self::frame::{Head, Malformed};
pub use self::server::serve;

use std::path::{Path, PathBuf};

use self::message::Call;

/// Raised when the other side could not understand what this one says.
const PROTOCOL: u32 = 1;

/// The longest request. An object that is longer is a mistake: etcd and Kubernetes refuse 1.5 MiB.
const MAX_REQUEST: usize = 8 << 20;

/// The longest frame of an answer.
const MAX_ANSWER: usize = 64 << 20;

/// Where a process that has the file of the embedded store open serves it to others.
pub fn path_beside(file: &Path) -> PathBuf {
    file.with_extension("sock")
}

/// Reads the request at the start of these bytes as the server does: its head, and whether its content is one. `None`
/// if there is more to come.
pub fn decode_request(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let Some((head, rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let head = Head::decode(head, MAX_REQUEST)?;
    let Some(body) = rest.get(..head.length) else {
        return Ok(None);
    };
    for object in Call::decode(body)?.into_objects() {
        object.decode()?;
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests;
