//! The kernel's numbers for messages and attributes, from its `linux/netfilter/nf_tables.h`.

/// Flags of netlink requests and answers.
pub(super) mod flag {
    pub(in crate::nft) const REQUEST: u16 = 0x1;
    pub(in crate::nft) const ACK: u16 = 0x4;
    pub(in crate::nft) const ECHO: u16 = 0x8;
    /// In an answer: the objects changed while they were dumped.
    pub(in crate::nft) const DUMP_INTERRUPTED: u16 = 0x10;
    pub(in crate::nft) const DUMP: u16 = 0x300;
    pub(in crate::nft) const REPLACE: u16 = 0x100;
    pub(in crate::nft) const CREATE: u16 = 0x400;
    pub(in crate::nft) const APPEND: u16 = 0x800;
}

/// Types of messages.
pub(super) mod message {
    /// Messages of nftables have this in the upper byte of their type.
    pub(in crate::nft) const SUBSYSTEM: u16 = 10 << 8;
    pub(in crate::nft) const BATCH_BEGIN: u16 = 0x10;
    pub(in crate::nft) const BATCH_END: u16 = 0x11;
    pub(in crate::nft) const ERROR: u16 = 2;
    pub(in crate::nft) const DONE: u16 = 3;

    pub(in crate::nft) const NEW_TABLE: u16 = SUBSYSTEM;
    pub(in crate::nft) const GET_TABLE: u16 = SUBSYSTEM | 0x1;
    pub(in crate::nft) const DELETE_TABLE: u16 = SUBSYSTEM | 0x2;
    pub(in crate::nft) const NEW_CHAIN: u16 = SUBSYSTEM | 0x3;
    pub(in crate::nft) const GET_CHAIN: u16 = SUBSYSTEM | 0x4;
    pub(in crate::nft) const DELETE_CHAIN: u16 = SUBSYSTEM | 0x5;
    pub(in crate::nft) const NEW_RULE: u16 = SUBSYSTEM | 0x6;
    pub(in crate::nft) const GET_RULE: u16 = SUBSYSTEM | 0x7;
    pub(in crate::nft) const DELETE_RULE: u16 = SUBSYSTEM | 0x8;
    pub(in crate::nft) const NEW_SET: u16 = SUBSYSTEM | 0x9;
    pub(in crate::nft) const GET_SET: u16 = SUBSYSTEM | 0xa;
    pub(in crate::nft) const DELETE_SET: u16 = SUBSYSTEM | 0xb;
    pub(in crate::nft) const NEW_ELEMENTS: u16 = SUBSYSTEM | 0xc;
    pub(in crate::nft) const GET_ELEMENTS: u16 = SUBSYSTEM | 0xd;
    pub(in crate::nft) const DELETE_ELEMENTS: u16 = SUBSYSTEM | 0xe;
    pub(in crate::nft) const NEW_GENERATION: u16 = SUBSYSTEM | 0xf;
    pub(in crate::nft) const GET_GENERATION: u16 = SUBSYSTEM | 0x10;
}

/// Attributes of an extended error.
pub(super) mod extended {
    pub(in crate::nft) const TEXT: u16 = 1;
}

pub(super) mod list {
    pub(in crate::nft) const ELEMENT: u16 = 1;
}

pub(super) mod table {
    pub(in crate::nft) const NAME: u16 = 1;
    pub(in crate::nft) const FLAGS: u16 = 2;
}

pub(super) mod chain {
    pub(in crate::nft) const TABLE: u16 = 1;
    pub(in crate::nft) const NAME: u16 = 3;
    pub(in crate::nft) const HOOK: u16 = 4;
    pub(in crate::nft) const POLICY: u16 = 5;
    pub(in crate::nft) const TYPE: u16 = 7;
}

pub(super) mod hook {
    pub(in crate::nft) const NUMBER: u16 = 1;
    pub(in crate::nft) const PRIORITY: u16 = 2;
}

pub(super) mod rule {
    pub(in crate::nft) const TABLE: u16 = 1;
    pub(in crate::nft) const CHAIN: u16 = 2;
    pub(in crate::nft) const HANDLE: u16 = 3;
    pub(in crate::nft) const EXPRESSIONS: u16 = 4;
    pub(in crate::nft) const POSITION: u16 = 6;
    pub(in crate::nft) const USERDATA: u16 = 7;
}

pub(super) mod set {
    pub(in crate::nft) const TABLE: u16 = 1;
    pub(in crate::nft) const NAME: u16 = 2;
    pub(in crate::nft) const FLAGS: u16 = 3;
    pub(in crate::nft) const KEY_TYPE: u16 = 4;
    pub(in crate::nft) const KEY_LENGTH: u16 = 5;
    pub(in crate::nft) const DATA_TYPE: u16 = 6;
    pub(in crate::nft) const DATA_LENGTH: u16 = 7;
    pub(in crate::nft) const DESCRIPTION: u16 = 9;
    pub(in crate::nft) const ID: u16 = 10;
    pub(in crate::nft) const USERDATA: u16 = 13;

    pub(in crate::nft) const FLAG_ANONYMOUS: u32 = 0x1;
    pub(in crate::nft) const FLAG_CONSTANT: u32 = 0x2;
    pub(in crate::nft) const FLAG_INTERVAL: u32 = 0x4;
    pub(in crate::nft) const FLAG_MAP: u32 = 0x8;
    pub(in crate::nft) const FLAG_CONCATENATED: u32 = 0x80;
}

pub(super) mod set_description {
    pub(in crate::nft) const SIZE: u16 = 1;
    pub(in crate::nft) const FIELDS: u16 = 2;
    /// In an element of the fields.
    pub(in crate::nft) const FIELD_LENGTH: u16 = 1;
}

pub(super) mod elements {
    pub(in crate::nft) const TABLE: u16 = 1;
    pub(in crate::nft) const SET: u16 = 2;
    pub(in crate::nft) const LIST: u16 = 3;
    pub(in crate::nft) const SET_ID: u16 = 4;
}

pub(super) mod element {
    pub(in crate::nft) const KEY: u16 = 1;
    pub(in crate::nft) const DATA: u16 = 2;
    pub(in crate::nft) const FLAGS: u16 = 3;
    pub(in crate::nft) const KEY_END: u16 = 10;

    pub(in crate::nft) const FLAG_INTERVAL_END: u32 = 1;
}

pub(super) mod data {
    pub(in crate::nft) const VALUE: u16 = 1;
    pub(in crate::nft) const VERDICT: u16 = 2;
}

pub(super) mod verdict {
    pub(in crate::nft) const CODE: u16 = 1;
    pub(in crate::nft) const CHAIN: u16 = 2;
}

pub(super) mod generation {
    pub(in crate::nft) const ID: u16 = 1;
}

pub(super) mod expression {
    pub(in crate::nft) const NAME: u16 = 1;
    pub(in crate::nft) const DATA: u16 = 2;
}

pub(super) mod lookup {
    pub(in crate::nft) const SET: u16 = 1;
    pub(in crate::nft) const SOURCE: u16 = 2;
    pub(in crate::nft) const DESTINATION: u16 = 3;
    pub(in crate::nft) const SET_ID: u16 = 4;
    pub(in crate::nft) const FLAGS: u16 = 5;
}

pub(super) mod counter {
    pub(in crate::nft) const BYTES: u16 = 1;
    pub(in crate::nft) const PACKETS: u16 = 2;
}
