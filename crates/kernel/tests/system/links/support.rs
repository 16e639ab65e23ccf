//! A world to test in: an empty network namespace, a socket, and `ip` as the second opinion.

use std::fs::File;
use std::process::Command;

use tortie_kernel::link::Link;
use tortie_kernel::namespace;
use tortie_kernel::route::Socket;

/// Runs a test in a new network namespace.
#[track_caller]
pub(crate) fn in_namespace<T: Send>(test: impl FnOnce(&mut Socket) -> T + Send) -> T {
    namespace::run_in_new(|| test(&mut Socket::open().unwrap()))
        .expect("tests of the kernel need the right to make a network namespace: run them as root")
}

/// Another network namespace, which lives as long as the file.
pub(crate) fn other_namespace() -> File {
    namespace::run_in_new(this_namespace).unwrap()
}

/// The calling thread's network namespace.
pub(crate) fn this_namespace() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}

/// A veth pair with both ends up, here.
pub(crate) fn veth(socket: &mut Socket, name: &str, peer: &str) -> (Link, Link) {
    use std::os::fd::AsFd as _;
    let here = this_namespace();
    socket
        .execute(|batch| batch.create_veth(name, peer, here.as_fd()))
        .unwrap();
    let indexes = [name, peer].map(|name| link(socket, name).index);
    socket
        .execute(|batch| {
            for index in indexes {
                batch.set_link_up(index, true);
            }
        })
        .unwrap();
    (link(socket, name), link(socket, peer))
}

#[track_caller]
pub(crate) fn link(socket: &mut Socket, name: &str) -> Link {
    socket.link(name).unwrap().unwrap()
}

/// What the program `ip` prints in this namespace, with single spaces.
#[track_caller]
pub(crate) fn ip(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {errors}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines = printed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}
