//! Addresses of links.

use ipnet::IpNet;

use crate::netlink::{Message, Writer, attributes};
use crate::route::{self, Batch, Scope, Socket, family, flag, header, read_address, write_address};

/// IPv6 addresses are used at once, without asking first whether somebody else has them.
const WITHOUT_DETECTION: u8 = 0x02;

impl Batch {
    /// Gives an address to a link. An IPv6 address is not first searched for on the link.
    pub fn add_address(&mut self, link: u32, address: IpNet) {
        self.add_address_of_scope(link, address, Scope::UNIVERSE);
    }

    /// The same, for an address that packets leave from only if they stay in this scope. That of an IPv6 address is in the
    /// address.
    pub fn add_address_of_scope(&mut self, link: u32, address: IpNet, scope: Scope) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWADDR, flags, |out| {
            write(out, link, address, scope);
        });
    }

    /// Takes an address from a link.
    pub fn delete_address(&mut self, link: u32, address: IpNet) {
        self.push(libc::RTM_DELADDR, 0, |out| {
            write(out, link, address, Scope::UNIVERSE);
        });
    }
}

impl Socket {
    /// The addresses of a link, or of all, each with the link's index.
    pub(super) fn addresses(&mut self, link: Option<u32>) -> route::Result<Vec<(u32, IpNet)>> {
        let ask = |out: &mut Writer| {
            out.raw(&[0; 4]);
            out.raw(&link.unwrap_or(0).to_ne_bytes());
        };
        self.dump(libc::RTM_GETADDR, ask, read_address_of_link)
    }
}

fn write(out: &mut Writer, link: u32, address: IpNet, scope: Scope) {
    let (family, flags) = match address {
        IpNet::V4(_) => (family::IPV4, 0),
        IpNet::V6(_) => (family::IPV6, WITHOUT_DETECTION),
    };
    out.raw(&[family, address.prefix_len(), flags, scope.0]);
    out.raw(&link.to_ne_bytes());
    for kind in [libc::IFA_LOCAL, libc::IFA_ADDRESS] {
        write_address(out, kind, address.addr());
    }
}

/// The index and the address that a message tells of, if it is about an address.
pub(crate) fn read_address_of_link(message: &Message<'_>) -> Option<(u32, IpNet)> {
    if ![libc::RTM_NEWADDR, libc::RTM_DELADDR].contains(&message.kind) {
        return None;
    }
    let (header, rest) = message.payload.split_first_chunk::<{ header::ADDRESS }>()?;
    let [_, length, _, _, index @ ..] = *header;
    let find = |kind| attributes(rest).find(|attribute| attribute.kind == kind);
    // Where there is a peer, the other attribute has the peer's.
    let address = find(libc::IFA_LOCAL).or_else(|| find(libc::IFA_ADDRESS))?;
    let address = IpNet::new(read_address(address)?, length).ok()?;
    Some((u32::from_ne_bytes(index), address))
}
