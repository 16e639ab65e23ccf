//! Hardware addresses.

use std::fmt;
use std::str::FromStr;

/// The hardware address of an Ethernet interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

/// A text is not a hardware address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hardware address: six numbers such as ee:ee:ee:ee:ee:ee were expected")]
pub struct MacError(String);

impl Mac {
    /// The address that Calico gives to the node's end of each workload's interface.
    pub const CALICO: Self = Self([0xee; 6]);
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { ":" };
            write!(f, "{separator}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let parse = || {
            let mut bytes = [0; 6];
            let mut parts = text.split([':', '-']);
            for byte in &mut bytes {
                let part = parts.next()?;
                let is_hexadecimal = part.bytes().all(|digit| digit.is_ascii_hexdigit());
                *byte = Some(part)
                    .filter(|_| part.len() == 2 && is_hexadecimal)
                    .and_then(|part| u8::from_str_radix(part, 16).ok())?;
            }
            parts.next().is_none().then_some(Self(bytes))
        };
        parse().ok_or_else(|| MacError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Mac;

    #[track_caller]
    fn check(text: &str, expected: Option<[u8; 6]>) {
        assert_eq!(text.parse::<Mac>().ok(), expected.map(Mac), "{text}");
    }

    #[test]
    fn six_pairs_of_digits_are_an_address() {
        check("ee:EE:00:0a:b0:01", Some([0xee, 0xee, 0, 0x0a, 0xb0, 1]));
        check("ee-ee-ee-ee-ee-ee", Some([0xee; 6]));
        check("", None);
        check("ee:ee:ee:ee:ee", None);
        check("ee:ee:ee:ee:ee:ee:ee", None);
        check("ee:ee:ee:ee:ee:+e", None);
        check("ee:ee:ee:ee:ee:e", None);
        assert_eq!(Mac::CALICO.to_string(), "ee:ee:ee:ee:ee:ee");
    }
}
