//! Registers, and the values that are compared with or put into them.

use std::net::IpAddr;

/// A place of four bytes where a rule keeps what it looks at; a longer value takes the next ones too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(u8);

/// Up to 16 bytes, as they are in a packet or in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    length: u8,
    bytes: [u8; Value::CAPACITY],
}

impl Register {
    /// The first register, where nearly all rules keep everything.
    pub const FIRST: Self = Self(0);

    /// The kernel's numbers: 16-byte registers 1 to 4, four-byte ones 8 to 23. It dumps a place that both can name
    /// under the former.
    const FIRST_OF_16_BYTES: u32 = 1;
    const FIRST_OF_4_BYTES: u32 = 8;

    /// The register `index` places after the first, of which there are 16.
    pub const fn at(index: u8) -> Self {
        Self(index)
    }

    pub(crate) fn number(self) -> u32 {
        let place = u32::from(self.0);
        if place.is_multiple_of(4) {
            place / 4 + Self::FIRST_OF_16_BYTES
        } else {
            place + Self::FIRST_OF_4_BYTES
        }
    }
}

impl Value {
    const CAPACITY: usize = 16;

    /// The bytes given, of which there may be 16; those beyond are left out.
    pub const fn from_bytes(from: &[u8]) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        let mut length = 0;
        while length < from.len() && length < Self::CAPACITY {
            bytes[length] = from[length];
            length += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
        let length = length as u8;
        Self { length, bytes }
    }

    /// One byte, such as a protocol number.
    pub const fn byte(value: u8) -> Self {
        Self::from_bytes(&[value])
    }

    /// Two bytes in network order, such as a port.
    pub const fn network16(value: u16) -> Self {
        Self::from_bytes(&value.to_be_bytes())
    }

    /// Four bytes in network order.
    pub const fn network32(value: u32) -> Self {
        Self::from_bytes(&value.to_be_bytes())
    }

    /// Four bytes in the machine's order, such as a mark.
    pub const fn host32(value: u32) -> Self {
        Self::from_bytes(&value.to_ne_bytes())
    }

    /// An address: 4 or 16 bytes.
    pub const fn address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::from_bytes(&v4.octets()),
            IpAddr::V6(v6) => Self::from_bytes(&v6.octets()),
        }
    }

    /// An interface's whole name: 16 bytes, filled with zeros.
    pub const fn interface(name: &str) -> Self {
        let mut value = Self::from_bytes(name.as_bytes());
        value.length = 16;
        value
    }

    /// How interfaces' names begin.
    pub const fn interface_prefix(prefix: &str) -> Self {
        Self::from_bytes(prefix.as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Register, Value};

    #[test]
    fn registers_have_the_numbers_that_the_kernel_dumps() {
        let numbers: Vec<u32> = (0..9).map(|i| Register::at(i).number()).collect();
        assert_eq!(numbers, [1, 9, 10, 11, 2, 13, 14, 15, 3]);
    }

    #[test]
    fn a_value_has_at_most_16_bytes() {
        assert_eq!(Value::from_bytes(&[7; 20]).as_bytes(), [7; 16]);
        assert_eq!(
            Value::interface("eth0").as_bytes(),
            b"eth0\0\0\0\0\0\0\0\0\0\0\0\0"
        );
        assert_eq!(Value::interface_prefix("cali").as_bytes(), b"cali");
    }
}
