//! The sockets of one namespace.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, sockopt,
};

use super::super::error::{Result, cannot};
use super::super::namespace::Namespace;

/// Room for what is sent before anyone reads, or waits for the receiver's hardware address.
const BUFFER: usize = 16 << 20;

/// Longer than any probe, and than what else is worth a look.
const LONGEST: usize = 2048;

/// The protocol number of sockets that take whole packets.
const WHOLE_PACKETS: u32 = 255;

/// What a raw socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Receiver {
    pub(super) is_ipv4: bool,
    pub(super) protocol: u8,
}

/// A namespace with the sockets that were needed in it so far.
#[derive(Debug)]
pub(super) struct SiteSockets {
    namespace: Namespace,
    /// By whether they are for IPv4.
    senders: BTreeMap<bool, OwnedFd>,
    receivers: BTreeMap<Receiver, OwnedFd>,
}

impl SiteSockets {
    pub(super) fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
        }
    }

    pub(super) fn open_sender(&mut self, is_ipv4: bool) -> Result<()> {
        if !self.senders.contains_key(&is_ipv4) {
            self.senders
                .insert(is_ipv4, self.open(is_ipv4, WHOLE_PACKETS)?);
        }
        Ok(())
    }

    pub(super) fn open_receiver(&mut self, receiver: Receiver) -> Result<()> {
        if !self.receivers.contains_key(&receiver) {
            let socket = self.open(receiver.is_ipv4, receiver.protocol.into())?;
            self.receivers.insert(receiver, socket);
        }
        Ok(())
    }

    pub(super) fn descriptor(&self, receiver: Receiver) -> Option<BorrowedFd<'_>> {
        self.receivers.get(&receiver).map(|socket| socket.as_fd())
    }

    /// Sends a whole packet. That the sender's own packet filter or routing does not let it out is no error.
    pub(super) fn send(&self, packet: &[u8], destination: IpAddr) -> io::Result<()> {
        let Some(socket) = self.senders.get(&destination.is_ipv4()) else {
            return Err(io::Error::other(
                "source and destination are of different families",
            ));
        };
        let destination = SocketAddr::new(destination, 0);
        match rustix::net::sendto(socket, packet, SendFlags::DONTWAIT, &destination) {
            Ok(_)
            | Err(
                Errno::PERM
                | Errno::ACCESS
                // A blackhole.
                | Errno::INVAL
                | Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::AGAIN
                | Errno::NOBUFS
                | Errno::INTR,
            ) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Visits the sources and payloads of all packets that have arrived.
    pub(super) fn receive(
        &self,
        receiver: Receiver,
        mut visit: impl FnMut(IpAddr, &[u8]),
    ) -> io::Result<()> {
        let Some(socket) = self.descriptor(receiver) else {
            return Ok(());
        };
        let mut buffer = [0; LONGEST];
        loop {
            match rustix::net::recvfrom(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _, source)) => {
                    let payload = strip_header(receiver, &buffer[..length]);
                    if let (Some(payload), Some(source)) = (payload, source.and_then(address)) {
                        visit(source, payload);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn open(&self, is_ipv4: bool, protocol: u32) -> Result<OwnedFd> {
        let open = || -> io::Result<OwnedFd> {
            let family = if is_ipv4 {
                AddressFamily::INET
            } else {
                AddressFamily::INET6
            };
            let protocol = NonZeroU32::new(protocol).map(Protocol::from_raw);
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?;
            sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)?;
            sockopt::set_socket_send_buffer_size_force(&socket, BUFFER)?;
            Ok(socket)
        };
        self.namespace
            .run(open)?
            .map_err(cannot("open a raw socket"))
    }
}

/// What follows the header of IP: for IPv4 the kernel hands it over too.
fn strip_header(receiver: Receiver, packet: &[u8]) -> Option<&[u8]> {
    if !receiver.is_ipv4 {
        return Some(packet);
    }
    let words = packet.first()? & 0x0f;
    packet.get(usize::from(words) * 4..)
}

fn address(source: SocketAddrAny) -> Option<IpAddr> {
    SocketAddr::try_from(source).ok().map(|source| source.ip())
}
