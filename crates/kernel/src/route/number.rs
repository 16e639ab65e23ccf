//! Numbers that netlink messages are made of. The `libc` crate has the rest.

/// Flags of requests and answers.
pub(crate) mod flag {
    pub(crate) const REQUEST: u16 = 0x1;
    pub(crate) const ACK: u16 = 0x4;
    /// In an answer: the objects changed while they were dumped.
    pub(crate) const DUMP_INTERRUPTED: u16 = 0x10;
    pub(crate) const DUMP: u16 = 0x300;
    pub(crate) const REPLACE: u16 = 0x100;
    pub(crate) const EXCLUSIVE: u16 = 0x200;
    pub(crate) const CREATE: u16 = 0x400;
}

/// Types of messages that all families have.
pub(crate) mod control {
    pub(crate) const NOTHING: u16 = 1;
    pub(crate) const ERROR: u16 = 2;
    pub(crate) const DONE: u16 = 3;
}

/// The attribute with the text of an error.
pub(crate) const ERROR_TEXT: u16 = 1;

/// Lengths of the headers that follow a message's own.
pub(crate) mod header {
    /// `struct ifinfomsg`
    pub(crate) const LINK: usize = 16;
    /// `struct ifaddrmsg`
    pub(crate) const ADDRESS: usize = 8;
    /// `struct rtmsg`
    pub(crate) const ROUTE: usize = 12;
    /// `struct ndmsg`
    pub(crate) const NEIGHBOUR: usize = 12;
}

/// Families of addresses, as messages have them.
pub(crate) mod family {
    pub(crate) const ANY: u8 = 0;
    pub(crate) const IPV4: u8 = 2;
    pub(crate) const IPV6: u8 = 10;
    pub(crate) const BRIDGE: u8 = 7;
}

pub(crate) mod route_flag {
    /// The gateway is on the link, whatever the addresses say.
    pub(crate) const ON_LINK: u32 = 0x4;
    /// Not a route but something learned from one.
    pub(crate) const CLONED: u32 = 0x200;
}
