//! Tunnel devices.

use std::net::IpAddr;

use super::{Link, Mac, WITHOUT_STATISTICS, read_link};
use crate::netlink::{Message, Writer, attributes};
use crate::route::{self, Batch, Socket, flag, header, read_address, read_number, write_address};

/// Attributes of a VXLAN device.
mod attribute {
    pub(super) const ID: u16 = 1;
    pub(super) const LINK: u16 = 3;
    pub(super) const LOCAL: u16 = 4;
    pub(super) const LEARNING: u16 = 7;
    pub(super) const PORT: u16 = 15;
    pub(super) const LOCAL_V6: u16 = 17;
}

/// The attributes that make one VXLAN device another than a second one. None of them can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vxlan {
    /// The number of the virtual network.
    pub id: u32,
    /// The UDP port.
    pub port: u16,
    /// The address that packets leave from.
    pub local: IpAddr,
    /// The index of the interface that packets leave through.
    pub lower: u32,
    /// Whether it finds out by itself where hardware addresses are.
    pub is_learning: bool,
}

impl Batch {
    /// Creates a VXLAN device.
    pub fn create_vxlan(&mut self, name: &str, mac: Mac, mtu: u32, vxlan: &Vxlan) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWLINK, flags, |out| {
            out.raw(&[0; header::LINK]);
            out.string(libc::IFLA_IFNAME, name);
            out.bytes(libc::IFLA_ADDRESS, &mac.0);
            out.bytes(libc::IFLA_MTU, &mtu.to_ne_bytes());
            out.nest(libc::IFLA_LINKINFO, |out| {
                out.string(libc::IFLA_INFO_KIND, "vxlan");
                out.nest(libc::IFLA_INFO_DATA, |out| {
                    let local = match vxlan.local {
                        IpAddr::V4(_) => attribute::LOCAL,
                        IpAddr::V6(_) => attribute::LOCAL_V6,
                    };
                    out.bytes(attribute::ID, &vxlan.id.to_ne_bytes());
                    out.bytes(attribute::LINK, &vxlan.lower.to_ne_bytes());
                    write_address(out, local, vxlan.local);
                    out.bytes(attribute::LEARNING, &[u8::from(vxlan.is_learning)]);
                    out.u16(attribute::PORT, vxlan.port);
                });
            });
        });
    }

    /// Creates a device that wraps IPv4 packets in IPv4 packets, to wherever routes say.
    pub fn create_ipip(&mut self, name: &str, mtu: u32) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWLINK, flags, |out| {
            out.raw(&[0; header::LINK]);
            out.string(libc::IFLA_IFNAME, name);
            out.bytes(libc::IFLA_MTU, &mtu.to_ne_bytes());
            out.nest(libc::IFLA_LINKINFO, |out| {
                out.string(libc::IFLA_INFO_KIND, "ipip");
            });
        });
    }
}

impl Socket {
    /// What is special of the VXLAN device with this name; none if there is no such device, or if it is of another kind.
    pub fn vxlan(&mut self, name: &str) -> route::Result<Option<(Link, Vxlan)>> {
        let Some(link) = self.link(name)? else {
            return Ok(None);
        };
        let ask = |out: &mut Writer| {
            out.raw(&[0; header::LINK]);
            out.string(libc::IFLA_IFNAME, name);
            out.bytes(libc::IFLA_EXT_MASK, &WITHOUT_STATISTICS.to_ne_bytes());
        };
        let vxlan = self.get(libc::RTM_GETLINK, ask, read_vxlan)?;
        Ok(vxlan.map(|vxlan| (link, vxlan)))
    }
}

fn read_vxlan(message: &Message<'_>) -> Option<Vxlan> {
    if read_link(message)?.kind != "vxlan" {
        return None;
    }
    let attributes = attributes(message.payload.get(header::LINK..)?);
    let info = attributes.clone().find(|a| a.kind == libc::IFLA_LINKINFO)?;
    let data = info.nested().find(|a| a.kind == libc::IFLA_INFO_DATA)?;
    let find = |kind| data.nested().find(|attribute| attribute.kind == kind);
    let local = find(attribute::LOCAL).or_else(|| find(attribute::LOCAL_V6));
    Some(Vxlan {
        id: find(attribute::ID).and_then(read_number)?,
        port: u16::from_be_bytes(find(attribute::PORT)?.value.try_into().ok()?),
        local: local.and_then(read_address)?,
        lower: find(attribute::LINK).and_then(read_number).unwrap_or(0),
        is_learning: find(attribute::LEARNING)?.value != [0],
    })
}
