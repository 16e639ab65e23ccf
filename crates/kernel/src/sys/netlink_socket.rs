//! A netlink socket of the calling thread's network namespace.

use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use super::check;

/// A datagram socket to one netlink family of the kernel.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    fd: OwnedFd,
}

impl NetlinkSocket {
    /// Opens a socket for a family such as `NETLINK_NETFILTER`.
    pub(crate) fn open(family: libc::c_int) -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                family,
            )
        };
        check(fd)?;
        // SAFETY: the descriptor is new, valid and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Sets an option whose value is an integer.
    pub(crate) fn set_option(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        value: libc::c_int,
    ) -> io::Result<()> {
        // SAFETY: the pointer is to a live integer, and the length is its size.
        check(unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                socket_length(mem::size_of_val(&value)),
            )
        })
    }

    /// Receives no datagram whose first message was sent by one of these sockets, or tells of what they did.
    pub(crate) fn ignore(&self, ports: &[u32]) -> io::Result<()> {
        /// Where the header of a message has the port.
        const PORT: u32 = 12;
        const EVERYTHING: u32 = u32::MAX;
        let step = |code: u32, if_so: u8, k: u32| libc::sock_filter {
            code: u16::try_from(code).unwrap_or_default(),
            jt: if_so,
            jf: 0,
            k,
        };
        let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, PORT)];
        for (index, port) in ports.iter().enumerate() {
            // From behind this step to the last one. What is loaded is in the order of the network.
            let rest = u8::try_from(ports.len() - index).map_err(io::Error::other)?;
            let port = u32::from_be_bytes(port.to_ne_bytes());
            program.push(step(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                rest,
                port,
            ));
        }
        program.push(step(libc::BPF_RET | libc::BPF_K, 0, EVERYTHING));
        program.push(step(libc::BPF_RET | libc::BPF_K, 0, 0));
        let filter = libc::sock_fprog {
            len: u16::try_from(program.len()).map_err(io::Error::other)?,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: the structure and the steps that it points to live until the call has copied them.
        check(unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const filter).cast(),
                socket_length(mem::size_of_val(&filter)),
            )
        })
    }

    /// Sends one datagram made of several parts.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: all fields of the structure are integers and pointers, for which zero is a value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len() as _;
        // SAFETY: `IoSlice` has the layout of `iovec`; the parts outlive the call, which only reads them.
        let sent = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const message, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Receives one datagram into `buffer` and tells its length, which may exceed the buffer's.
    ///
    /// Waits for one if `wait`; else it is an error of kind `WouldBlock` if there is none.
    pub(crate) fn receive(&self, buffer: &mut [u8], wait: bool) -> io::Result<usize> {
        let flags = libc::MSG_TRUNC | if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the kernel writes at most `len` bytes to the buffer, which is borrowed for writing.
        let received = unsafe {
            libc::recv(
                self.fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                flags,
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The size of an option's value: a few bytes.
fn socket_length(size: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(size).unwrap_or(0)
}
