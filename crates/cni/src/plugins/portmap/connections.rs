//! Connections that went to a port before somebody else got it.

use tortie_error::Causes;
use tortie_kernel::conntrack::{Connection, Socket};

use super::config::Mapping;
use super::rules::UDP;

/// Lets the kernel forget where packets of UDP to these ports went: whoever sends goes on for as long as he likes, and would
/// never get to the container. What fails of it is told in the log only.
pub(super) fn forget(mappings: &[Mapping]) {
    if !mappings.iter().any(|mapping| mapping.protocol == UDP) {
        return;
    }
    let is_meant = |connection: &Connection| {
        mappings.iter().any(|mapping| {
            mapping.protocol == UDP
                && connection.protocol == UDP
                && connection.destination_port == mapping.node_port
                && mapping
                    .node
                    .is_none_or(|node| node == connection.destination)
        })
    };
    let forgotten = Socket::open().and_then(|mut socket| socket.forget(is_meant));
    match forgotten {
        Ok(0) => {}
        Ok(forgotten) => tracing::info!(forgotten, "Old connections to the ports were forgotten"),
        Err(error) => tracing::warn!(
            error = %Causes(&error),
            "Old connections to the ports could not be forgotten; some may go on to nowhere"
        ),
    }
}
