//! Pairs of interfaces that are joined: what goes into one comes out of the other.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::Mac;
use crate::netlink::Writer;
use crate::route::{Batch, flag, header};

/// The attribute of a veth pair with the description of its other end.
const PEER: u16 = 1;

/// A veth pair to be created: one end here, the other in another network namespace.
#[derive(Debug, Clone, Copy)]
pub struct Veth<'a> {
    /// The name of the end here.
    pub name: &'a str,
    /// Its hardware address; the kernel makes one up if there is none.
    pub mac: Option<Mac>,
    /// The name of the other end.
    pub peer_name: &'a str,
    /// A file of the other end's network namespace.
    pub peer_namespace: BorrowedFd<'a>,
    /// The hardware address of the other end.
    pub peer_mac: Option<Mac>,
    /// The largest packet of both ends; the kernel's default if there is none.
    pub mtu: Option<u32>,
    /// Queues for each direction, of both ends; the kernel's default if there is none.
    pub queues: Option<u32>,
}

impl<'a> Veth<'a> {
    /// A pair with everything else left to the kernel.
    pub fn new(name: &'a str, peer_name: &'a str, peer_namespace: BorrowedFd<'a>) -> Self {
        Self {
            name,
            mac: None,
            peer_name,
            peer_namespace,
            peer_mac: None,
            mtu: None,
            queues: None,
        }
    }

    fn write_end(&self, out: &mut Writer, name: &str, mac: Option<Mac>) {
        out.raw(&[0; header::LINK]);
        out.string(libc::IFLA_IFNAME, name);
        if let Some(mac) = mac {
            out.bytes(libc::IFLA_ADDRESS, &mac.0);
        }
        if let Some(mtu) = self.mtu {
            out.bytes(libc::IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(queues) = self.queues {
            out.bytes(libc::IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes());
            out.bytes(libc::IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
        }
    }
}

impl Batch {
    /// Creates a veth pair with everything else left to the kernel.
    pub fn create_veth(&mut self, name: &str, peer_name: &str, peer_namespace: BorrowedFd<'_>) {
        self.create_veth_pair(&Veth::new(name, peer_name, peer_namespace));
    }

    /// Creates a veth pair. It is refused if either end's name is taken where that end is to be.
    pub fn create_veth_pair(&mut self, veth: &Veth<'_>) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWLINK, flags, |out| {
            veth.write_end(out, veth.name, veth.mac);
            out.nest(libc::IFLA_LINKINFO, |out| {
                out.string(libc::IFLA_INFO_KIND, "veth");
                out.nest(libc::IFLA_INFO_DATA, |out| {
                    out.nest(PEER, |out| {
                        veth.write_end(out, veth.peer_name, veth.peer_mac);
                        let namespace = veth.peer_namespace.as_raw_fd();
                        out.bytes(libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes());
                    });
                });
            });
        });
    }
}
