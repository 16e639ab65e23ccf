//! Hearing of changes to links, addresses and routes.
//!
//! Open the monitor first and list afterwards: then nothing is missed. What changed between the two is told though it is
//! in the list already.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipnet::IpNet;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

use crate::link::{Link, read_address_of_link, read_link};
use crate::netlink::{Message, messages};
use crate::route::{Route, read_route};

/// More than the kernel puts into one notification.
const BUFFER: usize = 64 << 10;

/// Room for what happens while nobody reads: some ten thousand notifications.
const RECEIVE_BUFFER: usize = 16 << 20;

/// What to hear of, besides links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Topics {
    /// Addresses of links.
    pub addresses: bool,
    /// Routes, whoever makes them.
    pub routes: bool,
}

/// Something that changed in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A link is new or changed. Its addresses are not told.
    Link(Link),
    /// A link is gone.
    LinkGone(Link),
    /// A link has an address, new or changed.
    Address {
        /// The link's index.
        link: u32,
        /// The address with the length of its network.
        address: IpNet,
    },
    /// A link no longer has an address.
    AddressGone {
        /// The link's index.
        link: u32,
        /// The address with the length of its network.
        address: IpNet,
    },
    /// A route is new or changed.
    Route(Route),
    /// A route is gone. Those of a link that goes down go without such an event.
    RouteGone(Route),
    /// More happened than there was room to tell: what the kernel has must be listed again.
    Lost,
}

/// A subscription to changes in the network namespace in which the opening thread was.
#[derive(Debug)]
pub struct Monitor {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

impl Monitor {
    /// Subscribes to changes from now on.
    pub fn open(topics: Topics) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        // Routing is the protocol with the number 0, which is also that of none.
        let socket = rustix::net::socket_with(family, kind, flags, None)?;
        sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, topics.groups()))?;
        Ok(Self {
            socket,
            buffer: vec![0; BUFFER].into_boxed_slice(),
        })
    }

    /// All events since the last call, without waiting.
    pub fn drain(&mut self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            match rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, length)) => match self.buffer.get(..length) {
                    Some(datagram) => {
                        events.extend(messages(datagram).filter_map(|m| read_event(&m)));
                    }
                    None => events.push(Event::Lost),
                },
                Err(Errno::NOBUFS) => events.push(Event::Lost),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(events),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Topics {
    /// The groups of notifications, one bit each.
    fn groups(self) -> u32 {
        let addresses = libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        let routes = libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;
        let mut groups = libc::RTMGRP_LINK;
        if self.addresses {
            groups |= addresses;
        }
        if self.routes {
            groups |= routes;
        }
        groups.cast_unsigned()
    }
}

fn read_event(message: &Message<'_>) -> Option<Event> {
    Some(match message.kind {
        libc::RTM_NEWLINK => Event::Link(read_link(message)?),
        libc::RTM_DELLINK => Event::LinkGone(read_link(message)?),
        libc::RTM_NEWADDR => {
            let (link, address) = read_address_of_link(message)?;
            Event::Address { link, address }
        }
        libc::RTM_DELADDR => {
            let (link, address) = read_address_of_link(message)?;
            Event::AddressGone { link, address }
        }
        libc::RTM_NEWROUTE => Event::Route(read_route(message)?),
        libc::RTM_DELROUTE => Event::RouteGone(read_route(message)?),
        _ => return None,
    })
}
