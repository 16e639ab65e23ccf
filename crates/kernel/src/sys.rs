//! System calls: the only place with `unsafe`.
#![expect(unsafe_code, reason = "system calls take and fill memory")]

mod allocator;
mod netlink_socket;
mod own_namespaces;

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

pub use allocator::release_unused_memory;
pub(crate) use netlink_socket::NetlinkSocket;
pub(crate) use own_namespaces::{
    effective_user, end_with_parent, keep_mounts_private, mount_memory, unshare_before_exec,
};

/// Moves the calling thread into a new network namespace.
pub(crate) fn leave_network_namespace() -> io::Result<()> {
    // SAFETY: the call takes no pointers and changes the calling thread alone.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Moves the calling thread into the network namespace that `file` is of.
pub(crate) fn enter_network_namespace(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no pointers, and the descriptor is open as long as it is borrowed.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Moves the calling process, which must have one thread only, into the user namespace that `file` is of.
pub(crate) fn enter_user_namespace(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: as above; the kernel refuses where there are other threads.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWUSER) })
}

/// Turns the return value of a call that gives nothing but success into a result.
fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
