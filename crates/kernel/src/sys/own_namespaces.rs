//! Namespaces of a process's own.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::ptr;

use super::check;

/// Nobody needs more, and a mistake shall not take all memory.
const MEMORY_OPTIONS: &CStr = c"mode=0700,size=64m";

/// Lets a program start in new network and mount namespaces, and `with_users` in a new user namespace, where whoever
/// starts it is root.
pub(crate) fn unshare_before_exec(command: &mut Command, with_users: bool) {
    // SAFETY: the calls take no pointers and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let users = with_users.then(|| (format!("0 {user} 1"), format!("0 {group} 1")));
    let hook = move || {
        let flags = libc::CLONE_NEWNET | libc::CLONE_NEWNS;
        let Some((user_map, group_map)) = &users else {
            // SAFETY: the call takes no pointers and changes the calling process alone.
            return check(unsafe { libc::unshare(flags) });
        };
        // SAFETY: as above.
        check(unsafe { libc::unshare(flags | libc::CLONE_NEWUSER) })?;
        // The kernel lets nobody map groups who could still leave some.
        write_file(c"/proc/self/setgroups", b"deny")?;
        write_file(c"/proc/self/uid_map", user_map.as_bytes())?;
        write_file(c"/proc/self/gid_map", group_map.as_bytes())
    };
    // SAFETY: after the fork the hook makes system calls only; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(hook);
    }
}

/// The calling process's user.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call takes no pointers and cannot fail.
    unsafe { libc::geteuid() }
}

/// Lets the kernel kill the calling process when its parent thread ends.
pub(crate) fn end_with_parent() -> io::Result<()> {
    // SAFETY: this operation takes a number and no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
}

/// Keeps what is mounted from now on from other mount namespaces.
pub(crate) fn keep_mounts_private() -> io::Result<()> {
    // SAFETY: the path is a string that ends; the kernel ignores the other pointers here.
    check(unsafe {
        libc::mount(
            ptr::null(),
            c"/".as_ptr(),
            ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            ptr::null(),
        )
    })
}

/// Mounts an empty file system in memory.
pub(crate) fn mount_memory(folder: &Path) -> io::Result<()> {
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: all pointers are to strings that end and outlive the call.
    check(unsafe {
        libc::mount(
            c"tmpfs".as_ptr(),
            folder.as_ptr(),
            c"tmpfs".as_ptr(),
            libc::MS_NOSUID | libc::MS_NODEV,
            MEMORY_OPTIONS.as_ptr().cast(),
        )
    })
}

/// Writes a whole small file without taking any memory.
fn write_file(path: &CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: the path is a string that ends.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    check(file)?;
    // SAFETY: the pointer and the length are those of a slice, which is only read.
    let written = unsafe { libc::write(file, content.as_ptr().cast(), content.len()) };
    let result = match usize::try_from(written) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(written) if written < content.len() => Err(io::ErrorKind::WriteZero.into()),
        Ok(_) => Ok(()),
    };
    // SAFETY: the descriptor is open and nobody else's.
    unsafe { libc::close(file) };
    result
}
