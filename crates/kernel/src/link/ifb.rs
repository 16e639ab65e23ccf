//! Devices that packets are sent through on their way in, so that they can be queued there as on their way out.

use crate::netlink::Writer;
use crate::route::{Batch, flag, header};

impl Batch {
    /// Creates such a device, which is up.
    pub fn create_ifb(&mut self, name: &str, mtu: u32) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        let up = libc::IFF_UP.cast_unsigned().to_ne_bytes();
        self.push(libc::RTM_NEWLINK, flags, |out: &mut Writer| {
            let mut link = [0; header::LINK];
            link[8..12].copy_from_slice(&up);
            link[12..16].copy_from_slice(&up);
            out.raw(&link);
            out.string(libc::IFLA_IFNAME, name);
            out.bytes(libc::IFLA_MTU, &mtu.to_ne_bytes());
            out.bytes(libc::IFLA_TXQLEN, &0_u32.to_ne_bytes());
            out.nest(libc::IFLA_LINKINFO, |out| {
                out.string(libc::IFLA_INFO_KIND, "ifb");
            });
        });
    }
}
