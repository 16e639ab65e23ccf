//! Changing addresses.

use std::ops::BitOr;

use crate::nft::table::Family;
use crate::nft::value::Register;

/// A change of a connection's source or destination.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Nat {
    /// Which of the two.
    pub kind: NatKind,
    /// The family of the address: `Ip` or `Ip6`.
    pub family: Family,
    /// The first and last address.
    pub addresses: Option<Registers>,
    /// The first and last port.
    pub ports: Option<Registers>,
    /// How among several.
    pub flags: NatFlags,
}

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NatKind {
    Source = 0,
    Destination = 1,
}

/// The registers of the first and last of a range; twice the same for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Registers {
    pub first: Register,
    pub last: Register,
}

/// How an address or port is chosen among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NatFlags(u32);

impl Registers {
    /// A range of one.
    pub const fn one(register: Register) -> Self {
        Self {
            first: register,
            last: register,
        }
    }
}

impl NatFlags {
    /// The kernel's choice.
    pub const NONE: Self = Self(0);
    /// A random port.
    pub const RANDOM: Self = Self(1 << 2);
    /// The same address for the same client.
    pub const PERSISTENT: Self = Self(1 << 3);
    /// A random port by a better generator.
    pub const FULLY_RANDOM: Self = Self(1 << 4);

    /// The kernel sets these itself, and dumps them, where there are registers.
    pub(super) const ADDRESSES: Self = Self(1);
    pub(super) const PORTS: Self = Self(1 << 1);

    pub(super) const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for NatFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
