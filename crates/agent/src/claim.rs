//! One agent per network namespace: two would undo each other's work, rule by rule.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::{Agent, Error};
use crate::local::{Listening, LocalAgent};

/// How long an agent that was told to end may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before it is looked again.
const INTERVAL: Duration = Duration::from_millis(200);

/// Takes the network namespace of the calling thread, from another agent if that is wanted: who listens there has the right
/// to change the kernel.
pub(crate) fn take(agent: &Agent) -> Result<Listening, Error> {
    let end = Instant::now() + PATIENCE;
    loop {
        match Listening::start(agent) {
            Ok(listening) => return Ok(listening),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error.into()),
        }
        match LocalAgent::find() {
            Ok(Some(other)) => {
                let holder = other.about().to_owned();
                if !agent.options.take_over {
                    return Err(Error::Taken { holder });
                }
                if Instant::now() >= end {
                    return Err(Error::Stays { holder });
                }
                // It may have ended just now.
                let _ = other.end();
                tracing::info!(%holder, "Waiting for another agent to end");
            }
            // It ended just now, or will answer the next time.
            Err(error) if Instant::now() >= end => return Err(error.into()),
            Ok(None) | Err(_) => {}
        }
        thread::sleep(INTERVAL);
    }
}
