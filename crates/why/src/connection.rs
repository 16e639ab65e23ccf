//! The connections that a question can be about.

use tortie_engine::verdict::{Flow, Hop};

/// A packet, and its way.
#[derive(Debug)]
pub struct Connection {
    /// How the destination is called.
    pub to: String,
    /// The packet.
    pub flow: Flow,
    /// Where it passes.
    pub hops: Vec<Hop>,
    /// What could not be told for certain.
    pub remarks: Vec<String>,
}

/// All that a connection to a service can become.
#[derive(Debug)]
pub struct Behind {
    /// `namespace/name`.
    pub service: String,
    /// What is connected to, such as `10.96.0.7` or `host/n1`.
    pub address: Option<String>,
    /// The ports of the service that were asked about, such as `TCP port 5432`.
    pub ports: String,
    /// A connection with each of those behind it.
    pub backends: Vec<Connection>,
    /// Why there are none.
    pub nobody: Option<String>,
}
