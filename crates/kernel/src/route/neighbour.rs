//! Neighbours that were told rather than found: they stay until they are deleted.

use std::fmt;
use std::net::IpAddr;

use super::batch::Batch;
use super::encode::{read_address, write_address};
use super::error::Result;
use super::number::{family, flag, header};
use super::socket::Socket;
use crate::link::Mac;
use crate::netlink::{Message, Writer, attributes};

/// A permanent entry: packets to this address through this interface go to that hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Neighbour {
    /// The index of the interface.
    pub device: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its hardware address.
    pub mac: Mac,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            address,
            mac,
        } = self;
        write!(f, "{address} at {mac} on interface {device}")
    }
}

impl Batch {
    /// Adds a permanent neighbour, in place of what is known of that address, however it is known.
    pub fn set_neighbour(&mut self, neighbour: &Neighbour) {
        let flags = flag::CREATE | flag::REPLACE;
        self.push(libc::RTM_NEWNEIGH, flags, |out| write(out, neighbour));
    }

    /// Deletes what is known of the neighbour's address on its interface.
    pub fn delete_neighbour(&mut self, neighbour: &Neighbour) {
        self.push(libc::RTM_DELNEIGH, 0, |out| write(out, neighbour));
    }
}

impl Socket {
    /// The permanent neighbours of both families, of one interface or of all.
    pub fn neighbours(&mut self, device: Option<u32>) -> Result<Vec<Neighbour>> {
        let ask = |out: &mut Writer| {
            out.raw(&[family::ANY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            if let Some(device) = device {
                out.bytes(libc::NDA_IFINDEX, &device.to_ne_bytes());
            }
        };
        self.dump(libc::RTM_GETNEIGH, ask, read)
    }
}

fn write(out: &mut Writer, neighbour: &Neighbour) {
    let family = match neighbour.address {
        IpAddr::V4(_) => family::IPV4,
        IpAddr::V6(_) => family::IPV6,
    };
    out.raw(&[family, 0, 0, 0]);
    out.raw(&neighbour.device.to_ne_bytes());
    out.raw(&libc::NUD_PERMANENT.to_ne_bytes());
    out.raw(&[0, 0]);
    write_address(out, libc::NDA_DST, neighbour.address);
    out.bytes(libc::NDA_LLADDR, &neighbour.mac.0);
}

/// The permanent neighbour that a message tells of, if it is one.
pub(super) fn read(message: &Message<'_>) -> Option<Neighbour> {
    let (header, rest) = message
        .payload
        .split_first_chunk::<{ header::NEIGHBOUR }>()?;
    let [family, _, _, _, i0, i1, i2, i3, s0, s1, _, _] = *header;
    let state = u16::from_ne_bytes([s0, s1]);
    if ![family::IPV4, family::IPV6].contains(&family) || state & libc::NUD_PERMANENT == 0 {
        return None;
    }
    let find = |kind| attributes(rest).find(|attribute| attribute.kind == kind);
    Some(Neighbour {
        device: u32::from_ne_bytes([i0, i1, i2, i3]),
        address: find(libc::NDA_DST).and_then(read_address)?,
        mac: Mac(find(libc::NDA_LLADDR)?.value.try_into().ok()?),
    })
}
