//! Where a tunnel device sends the frames of each hardware address.

use std::fmt;
use std::net::IpAddr;

use super::batch::Batch;
use super::encode::{read_address, write_address};
use super::error::Result;
use super::number::{family, flag, header};
use super::socket::Socket;
use crate::link::Mac;
use crate::netlink::{Message, Writer, attributes};

/// The entry is the device's own, not that of a bridge above it.
const OF_DEVICE: u8 = 0x02;

/// A permanent entry: frames to this hardware address go through the tunnel to that machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Forwarding {
    /// The index of the tunnel device.
    pub device: u32,
    /// The hardware address behind the tunnel.
    pub mac: Mac,
    /// The machine at the tunnel's other end.
    pub destination: IpAddr,
}

impl fmt::Display for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            mac,
            destination,
        } = self;
        write!(f, "{mac} at {destination} on interface {device}")
    }
}

impl Batch {
    /// Adds an entry, in place of the one for the same hardware address if there is one.
    pub fn set_forwarding(&mut self, entry: &Forwarding) {
        let flags = flag::CREATE | flag::REPLACE;
        self.push(libc::RTM_NEWNEIGH, flags, |out| write(out, entry));
    }

    pub fn delete_forwarding(&mut self, entry: &Forwarding) {
        self.push(libc::RTM_DELNEIGH, 0, |out| write(out, entry));
    }
}

impl Socket {
    /// The permanent entries of a tunnel device.
    pub fn forwardings(&mut self, device: u32) -> Result<Vec<Forwarding>> {
        let ask = |out: &mut Writer| {
            out.raw(&[family::BRIDGE, 0, 0, 0]);
            out.raw(&device.to_ne_bytes());
            out.raw(&[0; 4]);
        };
        let mut entries = self.dump(libc::RTM_GETNEIGH, ask, read)?;
        entries.retain(|entry| entry.device == device);
        Ok(entries)
    }
}

fn write(out: &mut Writer, entry: &Forwarding) {
    out.raw(&[family::BRIDGE, 0, 0, 0]);
    out.raw(&entry.device.to_ne_bytes());
    out.raw(&libc::NUD_PERMANENT.to_ne_bytes());
    out.raw(&[OF_DEVICE, 0]);
    write_address(out, libc::NDA_DST, entry.destination);
    out.bytes(libc::NDA_LLADDR, &entry.mac.0);
}

/// The permanent entry that a message tells of, if it is one.
pub(super) fn read(message: &Message<'_>) -> Option<Forwarding> {
    let (header, rest) = message
        .payload
        .split_first_chunk::<{ header::NEIGHBOUR }>()?;
    let [family, _, _, _, i0, i1, i2, i3, s0, s1, _, _] = *header;
    let state = u16::from_ne_bytes([s0, s1]);
    if family != family::BRIDGE || state & libc::NUD_PERMANENT == 0 {
        return None;
    }
    let find = |kind| attributes(rest).find(|attribute| attribute.kind == kind);
    Some(Forwarding {
        device: u32::from_ne_bytes([i0, i1, i2, i3]),
        mac: Mac(find(libc::NDA_LLADDR)?.value.try_into().ok()?),
        destination: find(libc::NDA_DST).and_then(read_address)?,
    })
}
