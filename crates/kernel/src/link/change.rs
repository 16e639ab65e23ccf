//! Changing and deleting links.

use super::Mac;
use crate::netlink::Writer;
use crate::route::Batch;

const UP: u32 = libc::IFF_UP.cast_unsigned();
const PROMISCUOUS: u32 = libc::IFF_PROMISC.cast_unsigned();
const ALL_MULTICAST: u32 = libc::IFF_ALLMULTI.cast_unsigned();

impl Batch {
    /// Deletes a link; of a veth pair both ends go.
    pub fn delete_link(&mut self, index: u32) {
        self.push(libc::RTM_DELLINK, 0, |out| write_header(out, index, 0, 0));
    }

    /// Takes a link up or down.
    pub fn set_link_up(&mut self, index: u32, up: bool) {
        self.set_flag(index, UP, up);
    }

    /// Lets a link take all packets that pass by, or only those for it.
    pub fn set_link_promiscuous(&mut self, index: u32, promiscuous: bool) {
        self.set_flag(index, PROMISCUOUS, promiscuous);
    }

    /// Lets a link take packets to all groups, or only to those that somebody joined.
    pub fn set_link_all_multicast(&mut self, index: u32, all: bool) {
        self.set_flag(index, ALL_MULTICAST, all);
    }

    /// Sets how many packets may wait to be sent.
    pub fn set_link_queue_length(&mut self, index: u32, length: u32) {
        self.change(index, |out| {
            out.bytes(libc::IFLA_TXQLEN, &length.to_ne_bytes());
        });
    }

    /// Gives a link a text that says whose it is. One that is being created takes none.
    pub fn set_link_alias(&mut self, index: u32, alias: &str) {
        self.change(index, |out| out.bytes(libc::IFLA_IFALIAS, alias.as_bytes()));
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

    fn set_flag(&mut self, index: u32, flag: u32, on: bool) {
        let flags = if on { flag } else { 0 };
        self.push(libc::RTM_NEWLINK, 0, |out| {
            write_header(out, index, flags, flag);
        });
    }

    fn change(&mut self, index: u32, fill: impl FnOnce(&mut Writer)) {
        self.push(libc::RTM_NEWLINK, 0, |out| {
            write_header(out, index, 0, 0);
            fill(out);
        });
    }
}

pub(super) fn write_header(out: &mut Writer, index: u32, flags: u32, changed_flags: u32) {
    out.raw(&[0; 4]);
    for number in [index, flags, changed_flags] {
        out.raw(&number.to_ne_bytes());
    }
}
