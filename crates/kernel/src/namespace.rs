//! Namespaces of a thread's own, and of programs that are started.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::panic;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::sys;

/// The calling thread's network namespace.
const OWN: &str = "/proc/thread-self/ns/net";

/// What a program has to itself besides its network and its mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Nothing: it keeps the rights that its user has. Needs `CAP_SYS_ADMIN`.
    Shared,
    /// Its user is root there, with all rights over what belongs to it alone. Needs no rights, but not every system lets
    /// everybody do this.
    Own,
}

/// Runs `work` on a new thread in a new, empty network namespace, and waits for it.
///
/// Sockets that `work` opens and programs that it starts belong to that namespace, which ends with the last of them.
/// Needs the right to make one (`CAP_SYS_ADMIN`). A panic of `work` goes on in the caller.
pub fn run_in_new<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    run_after(sys::leave_network_namespace, work)
}

/// Runs `work` on a new thread in the network namespace that `file` is of, and waits for it.
///
/// Sockets that `work` opens and programs that it starts belong to that namespace. Needs `CAP_SYS_ADMIN`. A panic of
/// `work` goes on in the caller.
pub fn run_in<T: Send>(file: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    run_after(|| sys::enter_network_namespace(file), work)
}

/// Opens the file of a namespace that somebody names. Whatever else is there instead, this does not wait for it: a FIFO
/// would keep its reader until somebody writes.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    options.open(path)
}

/// Whether `file` is of the calling thread's own network namespace.
pub fn is_own(file: &File) -> io::Result<bool> {
    Ok(is_same(&fs::metadata(OWN)?, &file.metadata()?))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Moves the calling thread, for as long as it lives, into a new, empty network namespace, and gives a file of that.
///
/// Threads and programs that it starts are in that namespace too. Needs `CAP_SYS_ADMIN`.
pub fn move_to_new() -> io::Result<File> {
    sys::leave_network_namespace()?;
    File::open(OWN)
}

/// Moves the calling process, for as long as it lives, into the user and network namespaces of another one, where they are
/// not its own.
///
/// It must have one thread only: the kernel lets nobody else change to other users. Needs no rights over namespaces that
/// the same user has made, and all rights over others.
pub fn enter_process(process: u32) -> io::Result<()> {
    let own = Path::new("/proc/self/ns");
    let other = Path::new("/proc").join(process.to_string()).join("ns");
    let open_other = |kind: &str| -> io::Result<Option<File>> {
        let file = File::open(other.join(kind))?;
        let (own, other) = (fs::metadata(own.join(kind))?, file.metadata()?);
        Ok(Some(file).filter(|_| !is_same(&own, &other)))
    };
    // The other users come first: among them there is the right to enter the network. Both are opened before.
    let (users, network) = (open_other("user")?, open_other("net")?);
    if let Some(users) = users {
        sys::enter_user_namespace(users.as_fd())?;
    }
    if let Some(network) = network {
        sys::enter_network_namespace(network.as_fd())?;
    }
    Ok(())
}

/// Runs `work` on a new thread that has moved to another namespace before.
fn run_after<T: Send>(
    moving: impl FnOnce() -> io::Result<()> + Send,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("network-namespace".to_owned())
            .spawn_scoped(scope, || {
                moving()?;
                Ok(work())
            })?;
        thread
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// Lets a program start in network and mount namespaces of its own. When it ends, however it ends, they end with it.
///
/// Starting it fails with the kernel's error if the rights for that are missing.
pub fn isolate(command: &mut Command, users: Users) {
    sys::unshare_before_exec(command, users == Users::Own);
}

/// Whether the calling process has root's identity, if not all its rights.
pub fn is_root() -> bool {
    sys::effective_user() == 0
}

/// Lets the kernel kill the calling process when the thread that started it ends.
///
/// That thread may have ended before: the caller must then look whether its parent is still the one that it expects.
pub fn end_with_parent() -> io::Result<()> {
    sys::end_with_parent()
}

/// Makes an empty folder in memory of one that exists. Only the calling process's own mount namespace sees it, and it is
/// gone when that ends.
pub fn mount_own_memory(folder: &Path) -> io::Result<()> {
    sys::keep_mounts_private()?;
    sys::mount_memory(folder)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn namespaces_of(command: &mut Command) -> String {
        let output = command
            .args([
                "/proc/self/ns/net",
                "/proc/self/ns/mnt",
                "/proc/self/ns/user",
            ])
            .stderr(Stdio::inherit())
            .output()
            .expect("readlink");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    }

    #[track_caller]
    fn check(users: Users, expected_own: [bool; 3]) {
        let outside = namespaces_of(&mut Command::new("readlink"));
        let mut command = Command::new("readlink");
        isolate(&mut command, users);
        let inside = namespaces_of(&mut command);
        let is_own: Vec<bool> = outside
            .lines()
            .zip(inside.lines())
            .map(|(outside, inside)| outside != inside)
            .collect();
        assert_eq!(is_own, expected_own, "{users:?}");
    }

    #[test]
    fn a_program_gets_namespaces_of_its_own() {
        check(Users::Shared, [true, true, false]);
        check(Users::Own, [true, true, true]);
    }

    #[test]
    fn whoever_starts_a_program_is_root_among_users_of_its_own() {
        let mut command = Command::new("sh");
        command.args(["-c", "id -u; id -g; cat /proc/self/uid_map"]);
        isolate(&mut command, Users::Own);
        let output = command.output().expect("sh");
        let text = String::from_utf8(output.stdout).expect("text");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..3], ["0", "0", "0"], "{text}");
        assert_eq!(words[4..], ["1"], "{text}");
    }

    #[test]
    fn work_is_done_in_a_namespace_that_is_there_already() {
        let opened = run_in_new(|| File::open("/proc/thread-self/ns/net")).expect("a namespace");
        let other = opened.expect("a file of it");
        assert!(!is_own(&other).expect("namespaces"));
        let inside = run_in(other.as_fd(), || is_own(&other)).expect("the namespace");
        assert!(inside.expect("namespaces"));
        assert!(!is_own(&other).expect("namespaces"));
    }

    #[test]
    fn what_is_no_namespace_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status();
        assert!(made.expect("mkfifo").success());
        let file = open(&fifo).expect("a FIFO");
        let refused = run_in(file.as_fd(), || ()).expect_err("it is no namespace");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_thread_moves_and_its_threads_with_it() {
        let inode = |path| fs::metadata(path).expect("a namespace").ino();
        let before = inode("/proc/thread-self/ns/net");
        let moved = std::thread::spawn(move || {
            let file = move_to_new().expect("a namespace");
            let inner = std::thread::spawn(move || inode("/proc/thread-self/ns/net"));
            (
                file.metadata().expect("a namespace").ino(),
                inner.join().expect("a thread"),
            )
        });
        let (moved, inner) = moved.join().expect("a thread");
        assert_eq!(moved, inner);
        assert_ne!(moved, before);
        assert_eq!(inode("/proc/thread-self/ns/net"), before);
    }
}
