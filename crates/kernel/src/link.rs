//! Links: the network interfaces of a namespace, and their addresses.
//!
//! The socket and its errors are those of [`crate::route`].

mod address;
mod change;
mod ifb;
mod mac;
mod tunnel;
mod veth;

use std::fmt;

use ipnet::IpNet;

use crate::netlink::{Message, Writer, attributes};
use crate::route::{self, Socket, header, read_number};

pub use mac::{Mac, MacError};
pub use tunnel::Vxlan;
pub use veth::Veth;

pub(crate) use address::read_address_of_link;

/// Counters are not asked for: they are most of what the kernel would tell.
const WITHOUT_STATISTICS: u32 = libc::RTEXT_FILTER_SKIP_STATS as u32;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the kernel's"
)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    pub name: String,
    /// Its hardware address, if it has one of six bytes.
    pub mac: Option<Mac>,
    /// Somebody wants it up.
    pub is_up: bool,
    /// It can carry packets now.
    pub is_running: bool,
    /// How the kernel tells whether it can.
    pub state: OperState,
    /// The largest packet.
    pub mtu: u32,
    /// Somebody wants all packets that pass by.
    pub is_promiscuous: bool,
    /// Somebody wants all packets to groups.
    pub takes_all_multicast: bool,
    /// How many packets may wait to be sent.
    pub queue_length: u32,
    /// A text of whoever made it; mostly empty.
    pub alias: String,
    /// What drives it, such as `veth`; empty for hardware and the loopback interface.
    pub kind: String,
    /// The index of the other end or of the interface below, maybe in another namespace.
    pub lower: Option<u32>,
    /// Its addresses of both families, with the length of their networks. Empty in notifications.
    pub addresses: Vec<IpNet>,
}

/// Whether a link works, after RFC 2863.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperState {
    /// The driver does not tell. The loopback interface is always so.
    Unknown,
    /// The hardware is not there.
    NotPresent,
    /// It carries nothing.
    Down,
    /// An interface below is down.
    LowerLayerDown,
    /// It is being tested.
    Testing,
    /// It waits for something outside.
    Dormant,
    /// It carries packets.
    Up,
}

impl OperState {
    fn from_number(number: u8) -> Self {
        match i32::from(number) {
            libc::IF_OPER_NOTPRESENT => Self::NotPresent,
            libc::IF_OPER_DOWN => Self::Down,
            libc::IF_OPER_LOWERLAYERDOWN => Self::LowerLayerDown,
            libc::IF_OPER_TESTING => Self::Testing,
            libc::IF_OPER_DORMANT => Self::Dormant,
            libc::IF_OPER_UP => Self::Up,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            return write!(f, "interface {}", self.index);
        }
        write!(f, "interface `{}`", self.name)
    }
}

impl Socket {
    /// All links of the namespace with their addresses, by index.
    pub fn links(&mut self) -> route::Result<Vec<Link>> {
        let ask = |out: &mut Writer| {
            out.raw(&[0; header::LINK]);
            out.bytes(libc::IFLA_EXT_MASK, &WITHOUT_STATISTICS.to_ne_bytes());
        };
        let mut links = self.dump(libc::RTM_GETLINK, ask, read_link)?;
        links.sort_by_key(|link| link.index);
        for (index, address) in self.addresses(None)? {
            if let Ok(place) = links.binary_search_by_key(&index, |link| link.index) {
                links[place].addresses.push(address);
            }
        }
        Ok(links)
    }

    /// The link with this name and its addresses, if there is one.
    pub fn link(&mut self, name: &str) -> route::Result<Option<Link>> {
        self.find_link(|out: &mut Writer| {
            out.raw(&[0; header::LINK]);
            out.string(libc::IFLA_IFNAME, name);
            out.bytes(libc::IFLA_EXT_MASK, &WITHOUT_STATISTICS.to_ne_bytes());
        })
    }

    /// The link with this index and its addresses, if there is one.
    pub fn link_at(&mut self, index: u32) -> route::Result<Option<Link>> {
        self.find_link(|out: &mut Writer| {
            change::write_header(out, index, 0, 0);
            out.bytes(libc::IFLA_EXT_MASK, &WITHOUT_STATISTICS.to_ne_bytes());
        })
    }

    fn find_link(&mut self, ask: impl Fn(&mut Writer)) -> route::Result<Option<Link>> {
        let Some(mut link) = self.get(libc::RTM_GETLINK, ask, read_link)? else {
            return Ok(None);
        };
        let addresses = match self.addresses(Some(link.index)) {
            // It went meanwhile.
            Err(error) if error.is_missing() => return Ok(None),
            other => other?,
        };
        link.addresses = addresses.into_iter().map(|(_, address)| address).collect();
        Ok(Some(link))
    }
}

/// The link that a message tells of, if it is one.
pub(crate) fn read_link(message: &Message<'_>) -> Option<Link> {
    let kinds = [libc::RTM_NEWLINK, libc::RTM_DELLINK, libc::RTM_GETLINK];
    if !kinds.contains(&message.kind) {
        return None;
    }
    let (header, rest) = message.payload.split_first_chunk::<{ header::LINK }>()?;
    let [family, _, _, _, i0, i1, i2, i3, f0, f1, f2, f3, ..] = *header;
    // Bridges and IPv6 tell of links in messages of the same type, with less in them.
    if family != 0 {
        return None;
    }
    let flags = u32::from_ne_bytes([f0, f1, f2, f3]);
    let has = |flag: libc::c_int| flags & flag.cast_unsigned() != 0;
    let mut link = Link {
        index: u32::from_ne_bytes([i0, i1, i2, i3]),
        name: String::new(),
        mac: None,
        is_up: has(libc::IFF_UP),
        is_running: has(libc::IFF_RUNNING),
        state: OperState::Unknown,
        mtu: 0,
        is_promiscuous: has(libc::IFF_PROMISC),
        takes_all_multicast: has(libc::IFF_ALLMULTI),
        queue_length: 0,
        alias: String::new(),
        kind: String::new(),
        lower: None,
        addresses: Vec::new(),
    };
    for attribute in attributes(rest) {
        match attribute.kind {
            libc::IFLA_IFNAME => attribute.text().clone_into(&mut link.name),
            libc::IFLA_ADDRESS => link.mac = attribute.value.try_into().ok().map(Mac),
            libc::IFLA_MTU => link.mtu = read_number(attribute)?,
            libc::IFLA_TXQLEN => link.queue_length = read_number(attribute)?,
            libc::IFLA_IFALIAS => attribute.text().clone_into(&mut link.alias),
            libc::IFLA_LINK => link.lower = read_number(attribute),
            libc::IFLA_OPERSTATE => {
                link.state = attribute
                    .value
                    .first()
                    .copied()
                    .map_or(link.state, OperState::from_number);
            }
            libc::IFLA_LINKINFO => {
                let kind = attribute.nested().find(|a| a.kind == libc::IFLA_INFO_KIND);
                link.kind = kind.map_or(String::new(), |kind| kind.text().to_owned());
            }
            _ => {}
        }
    }
    Some(link)
}

/// What a request about a link or an address asks for.
pub(crate) fn describe(message: &Message<'_>) -> Option<String> {
    let link = || read_link(message);
    Some(match message.kind {
        libc::RTM_NEWLINK if message.flags & route::flag::CREATE != 0 => {
            format!("create {}", link()?)
        }
        libc::RTM_NEWLINK => format!("change interface {}", link()?.index),
        libc::RTM_DELLINK => format!("delete interface {}", link()?.index),
        libc::RTM_GETLINK => "list interfaces".to_owned(),
        libc::RTM_GETADDR => "list addresses".to_owned(),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => {
            let (index, address) = read_address_of_link(message)?;
            let verb = if message.kind == libc::RTM_DELADDR {
                "delete"
            } else {
                "add"
            };
            format!("{verb} the address {address} of interface {index}")
        }
        _ => return None,
    })
}
