//! Network namespaces of a thread's own.

use std::io;
use std::panic;
use std::thread;

use crate::sys;

/// Runs `work` on a new thread in a new, empty network namespace, and waits for it.
///
/// Sockets that `work` opens and programs that it starts belong to that namespace, which ends with the last of them.
/// Needs the right to make one (`CAP_SYS_ADMIN`). A panic of `work` goes on in the caller.
pub fn run_in_new<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("network-namespace".to_owned())
            .spawn_scoped(scope, || {
                sys::leave_network_namespace()?;
                Ok(work())
            })?;
        thread
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}
