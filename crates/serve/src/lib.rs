//! Servers: TLS with certificates that are read again when they change, clients that prove who they are, HTTP with
//! limits, and what a process answers about itself.
//!
//! # Invariants
//! - A client that is slow, or many that come at once, hold up nobody else: handshakes are done beside each other, and all
//!   that a client may take is limited.
//! - A certificate of a client counts only after [`Peer::is_verified_by`] has said so of the authorities in question.

mod acceptor;
mod answers;
mod authorities;
mod certificate;
mod error;
mod http;
mod peer;
mod places;
mod plain;

pub use self::acceptor::{Acceptor, Clients, TlsListener};
pub use self::answers::{Answers, OPENMETRICS};
pub use self::authorities::Authorities;
pub use self::certificate::Certificate;
pub use self::error::{Error, Result};
pub use self::http::{Established, Identified, Incoming, Limits, Protocol, serve};
pub use self::peer::Peer;
pub use self::plain::{PlainListener, listen};
