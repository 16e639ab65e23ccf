//! The two IP versions, which BGP treats apart.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// An IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, in the order in which they are planned and written.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The one that an address belongs to.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// The one that a network belongs to.
    pub fn of_network(network: IpNet) -> Self {
        Self::of(network.addr())
    }

    /// How many bits an address has.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// Something of each IP version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerFamily<T> {
    /// That of IPv4.
    pub v4: T,
    /// That of IPv6.
    pub v6: T,
}

impl<T> PerFamily<T> {
    /// Makes that of each IP version.
    pub fn new(mut make: impl FnMut(Family) -> T) -> Self {
        Self {
            v4: make(Family::V4),
            v6: make(Family::V6),
        }
    }

    /// That of this IP version.
    pub fn get(&self, family: Family) -> &T {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    /// That of this IP version, to change.
    pub fn get_mut(&mut self, family: Family) -> &mut T {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}
