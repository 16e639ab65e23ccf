//! Creating, changing and deleting links.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::Mac;
use crate::netlink::Writer;
use crate::route::{Batch, flag, header};

/// The attribute of a veth pair with the description of its other end.
const PEER: u16 = 1;

const UP: u32 = libc::IFF_UP.cast_unsigned();

impl Batch {
    /// Creates a veth pair: one end here, the other in another network namespace, which `peer_namespace` is a file of.
    pub fn create_veth(&mut self, name: &str, peer_name: &str, peer_namespace: BorrowedFd<'_>) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWLINK, flags, |out| {
            out.raw(&[0; header::LINK]);
            out.string(libc::IFLA_IFNAME, name);
            out.nest(libc::IFLA_LINKINFO, |out| {
                out.string(libc::IFLA_INFO_KIND, "veth");
                out.nest(libc::IFLA_INFO_DATA, |out| {
                    out.nest(PEER, |out| {
                        out.raw(&[0; header::LINK]);
                        out.string(libc::IFLA_IFNAME, peer_name);
                        out.bytes(
                            libc::IFLA_NET_NS_FD,
                            &peer_namespace.as_raw_fd().to_ne_bytes(),
                        );
                    });
                });
            });
        });
    }

    /// Deletes a link; of a veth pair both ends go.
    pub fn delete_link(&mut self, index: u32) {
        self.push(libc::RTM_DELLINK, 0, |out| write_header(out, index, 0, 0));
    }

    /// Takes a link up or down.
    pub fn set_link_up(&mut self, index: u32, up: bool) {
        let flags = if up { UP } else { 0 };
        self.push(libc::RTM_NEWLINK, 0, |out| {
            write_header(out, index, flags, UP);
        });
    }

    /// Sets a link's hardware address.
    pub fn set_link_mac(&mut self, index: u32, mac: Mac) {
        self.change(index, |out| out.bytes(libc::IFLA_ADDRESS, &mac.0));
    }

    /// Sets the largest packet of a link.
    pub fn set_link_mtu(&mut self, index: u32, mtu: u32) {
        self.change(index, |out| out.bytes(libc::IFLA_MTU, &mtu.to_ne_bytes()));
    }

    /// Gives a link another name.
    pub fn rename_link(&mut self, index: u32, name: &str) {
        self.change(index, |out| out.string(libc::IFLA_IFNAME, name));
    }

    fn change(&mut self, index: u32, fill: impl FnOnce(&mut Writer)) {
        self.push(libc::RTM_NEWLINK, 0, |out| {
            write_header(out, index, 0, 0);
            fill(out);
        });
    }
}

fn write_header(out: &mut Writer, index: u32, flags: u32, changed_flags: u32) {
    out.raw(&[0; 4]);
    for number in [index, flags, changed_flags] {
        out.raw(&number.to_ne_bytes());
    }
}
