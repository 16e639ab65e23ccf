//! Hearing of changes that others make.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt;

use super::describe::FAMILY_HEADER;
use super::number::{chain, elements, message, rule, set, table};
use super::table::Family;
use crate::netlink::{Message, attributes, messages};
use crate::sys::NetlinkSocket;

/// More than the kernel puts into one notification.
const BUFFER: usize = 64 << 10;

/// Room for what happens while nobody reads.
const RECEIVE_BUFFER: usize = 4 << 20;

/// `NFNLGRP_NFTABLES`, as a bit.
const GROUP: u32 = 1 << 6;

/// A change that somebody made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The family of the table.
    pub family: Family,
    /// The table that it was made in, or to.
    pub table: &'a str,
    /// What was changed.
    pub what: Changed<'a>,
    /// It was removed.
    pub is_removal: bool,
}

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed<'a> {
    /// The table itself.
    Table,
    /// A chain of this name, or a rule in it.
    Chain(&'a str),
    /// A set of this name, or elements of it.
    Set(&'a str),
}

/// A subscription to changes in the network namespace in which the opening thread was, by others than some sockets.
#[derive(Debug)]
pub struct Monitor {
    socket: NetlinkSocket,
    buffer: Box<[u8]>,
}

impl Monitor {
    /// Subscribes to changes from now on, but for those made through the sockets with these
    /// [ports](super::Socket::port).
    pub fn open(except: &[u32]) -> io::Result<Self> {
        let socket = NetlinkSocket::open(libc::NETLINK_NETFILTER)?;
        sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))?;
        socket.ignore(except)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUP))?;
        Ok(Self {
            socket,
            buffer: vec![0; BUFFER].into_boxed_slice(),
        })
    }

    /// Tells all changes since the last call, without waiting. False if there were more than there was room for, so that
    /// some are not told.
    pub fn drain(&mut self, mut tell: impl FnMut(Change<'_>)) -> io::Result<bool> {
        let mut is_complete = true;
        loop {
            match self.socket.receive(&mut self.buffer, false) {
                Ok(length) => match self.buffer.get(..length) {
                    Some(datagram) => {
                        messages(datagram)
                            .filter_map(|message| read(&message))
                            .for_each(&mut tell);
                    }
                    None => is_complete = false,
                },
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOBUFS) => is_complete = false,
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return Ok(is_complete),
                    _ => return Err(error),
                },
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn read<'a>(message: &Message<'a>) -> Option<Change<'a>> {
    let (header, rest) = message.payload.split_at_checked(FAMILY_HEADER)?;
    let family = Family::from_number(*header.first()?)?;
    let text = |kind: u16| attributes(rest).find(|a| a.kind == kind).map(|a| a.text());
    let (table, what, is_removal) = match message.kind {
        message::NEW_TABLE => (text(table::NAME), Changed::Table, false),
        message::DELETE_TABLE => (text(table::NAME), Changed::Table, true),
        message::NEW_CHAIN | message::DELETE_CHAIN => (
            text(chain::TABLE),
            Changed::Chain(text(chain::NAME)?),
            message.kind == message::DELETE_CHAIN,
        ),
        message::NEW_RULE | message::DELETE_RULE => (
            text(rule::TABLE),
            Changed::Chain(text(rule::CHAIN)?),
            message.kind == message::DELETE_RULE,
        ),
        message::NEW_SET | message::DELETE_SET => (
            text(set::TABLE),
            Changed::Set(text(set::NAME)?),
            message.kind == message::DELETE_SET,
        ),
        message::NEW_ELEMENTS | message::DELETE_ELEMENTS => (
            text(elements::TABLE),
            Changed::Set(text(elements::SET)?),
            message.kind == message::DELETE_ELEMENTS,
        ),
        _ => return None,
    };
    Some(Change {
        family,
        table: table?,
        what,
        is_removal,
    })
}
