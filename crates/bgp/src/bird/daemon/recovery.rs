//! Whether a BIRD that is started has something to recover.
//!
//! One that recovers tells nobody of anything before all peers are back, or the time for that is over: a new node with a peer
//! that is down would be reached by nobody meanwhile.

use std::path::Path;

use tokio::task::spawn_blocking;
use tortie_error::Causes;
use tortie_kernel::route::{self, MAIN_TABLE, Protocol, Socket};

/// Whether another BIRD ran before and did not say good-bye: it has left its socket, or routes in the kernel.
pub(super) async fn is_needed(socket: &Path) -> bool {
    if socket.exists() {
        return true;
    }
    let listed = spawn_blocking(|| Socket::open()?.routes(MAIN_TABLE)).await;
    match listed.unwrap_or(Err(route::Error::AnswersLost)) {
        Ok(routes) => routes.iter().any(|one| one.protocol == Protocol::BIRD),
        Err(error) => {
            tracing::warn!(error = %Causes(&error), "It is not known whether the kernel has routes of an earlier BIRD");
            true
        }
    }
}
