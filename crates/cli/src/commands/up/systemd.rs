//! Telling systemd that the process is ready.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use tortie_error::Causes;
use tortie_variables as variables;

/// Tells systemd, if it waits, that everything runs.
pub(super) fn notify_ready() {
    let Some(path) = std::env::var_os(variables::NOTIFY_SOCKET) else {
        return;
    };
    let send = || -> std::io::Result<()> {
        let address = match path.as_bytes().split_first() {
            Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address)?;
        Ok(())
    };
    if let Err(error) = send() {
        tracing::warn!(error = %Causes(&error), "Systemd cannot be told that everything runs");
    }
}
