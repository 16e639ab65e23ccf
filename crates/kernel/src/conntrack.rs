//! Connections that the kernel keeps track of: those that must not go on are forgotten.

use std::net::IpAddr;

use crate::netlink::{Attribute, Message, Writer, attributes};
use crate::route::{self, family, read_address};

/// Messages about connections have this in the upper byte of their type.
const SUBSYSTEM: u16 = 1 << 8;
const GET: u16 = SUBSYSTEM | 1;
const DELETE: u16 = SUBSYSTEM | 2;

/// The length of `struct nfgenmsg`.
const HEADER: usize = 4;

mod attribute {
    pub(super) const ORIGINAL: u16 = 1;
    pub(super) const ID: u16 = 12;
    pub(super) const ZONE: u16 = 18;
    /// Of a direction.
    pub(super) const ADDRESSES: u16 = 1;
    pub(super) const TRANSPORT: u16 = 2;
    /// Of addresses: the destination, for either family.
    pub(super) const DESTINATION: [u16; 2] = [2, 4];
    /// Of a transport.
    pub(super) const PROTOCOL: u16 = 1;
    pub(super) const DESTINATION_PORT: u16 = 3;
}

/// A connection to the kernel's list of connections in the network namespace in which the opening thread was.
#[derive(Debug)]
pub struct Socket {
    socket: route::Socket,
}

/// A connection, as it was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The number of its transport protocol.
    pub protocol: u8,
    /// Where its first packet was sent.
    pub destination: IpAddr,
    pub destination_port: u16,
    family: u8,
    /// The attributes by which the kernel knows it.
    key: Vec<(u16, Vec<u8>)>,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> route::Result<Self> {
        let socket = route::Socket::open_protocol(libc::NETLINK_NETFILTER)?;
        Ok(Self { socket })
    }

    /// All connections of both families with ports.
    pub fn connections(&mut self) -> route::Result<Vec<Connection>> {
        let mut all = Vec::new();
        for family in [family::IPV4, family::IPV6] {
            let ask = |out: &mut Writer| out.raw(&[family, 0, 0, 0]);
            all.extend(self.socket.dump(GET, ask, read)?);
        }
        Ok(all)
    }

    /// Forgets those connections for which this holds, and tells how many they were. The next packet of each begins a new one.
    pub fn forget(&mut self, is_meant: impl Fn(&Connection) -> bool) -> route::Result<usize> {
        let meant: Vec<_> = self.connections()?.into_iter().filter(is_meant).collect();
        let mut batch = route::Batch::new();
        for connection in &meant {
            batch.push(DELETE, 0, |out| {
                out.raw(&[connection.family, 0, 0, 0]);
                for (kind, value) in &connection.key {
                    out.bytes(*kind, value);
                }
            });
        }
        let refused = self.socket.apply(&batch)?;
        // Some may have ended meanwhile.
        match refused.into_iter().find(|(_, error)| !error.is_missing()) {
            Some((_, error)) => Err(error),
            None => Ok(meant.len()),
        }
    }
}

fn read(message: &Message<'_>) -> Option<Connection> {
    let (header, rest) = message.payload.split_first_chunk::<HEADER>()?;
    let find = |kind| attributes(rest).find(|found: &Attribute<'_>| found.kind == kind);
    let original = find(attribute::ORIGINAL)?;
    let part = |kind| original.nested().find(|found| found.kind == kind);
    let mut addresses = part(attribute::ADDRESSES)?.nested();
    let destination = addresses.find(|a| attribute::DESTINATION.contains(&a.kind))?;
    let transport = part(attribute::TRANSPORT)?;
    let of_transport = |kind| transport.nested().find(|found| found.kind == kind);
    let keys = [attribute::ORIGINAL, attribute::ID, attribute::ZONE];
    let key = attributes(rest).filter(|found| keys.contains(&found.kind));
    Some(Connection {
        protocol: *of_transport(attribute::PROTOCOL)?.value.first()?,
        destination: read_address(destination)?,
        destination_port: u16::from_be_bytes(
            of_transport(attribute::DESTINATION_PORT)?
                .value
                .try_into()
                .ok()?,
        ),
        family: header[0],
        key: key
            .map(|found| (found.kind, found.value.to_vec()))
            .collect(),
    })
}

/// What a request about connections asks for.
pub(crate) fn describe(message: &Message<'_>) -> Option<String> {
    Some(match message.kind {
        GET => "list connections".to_owned(),
        DELETE => "forget a connection".to_owned(),
        _ => return None,
    })
}
