//! UIDs of objects that are derived from others.

use std::fmt::Write as _;

/// Bytes that hold version and variant of a UUID.
const FIXED_BYTES: [usize; 2] = [6, 8];

/// The UID of the object derived from the one with this UID: the bits of each byte in reverse, except for version and
/// variant. Applying it twice gives back the original. `None` if the text is not a UUID.
pub fn convert_uid(uid: &str) -> Option<String> {
    let mut bytes = parse(uid)?;
    for (position, byte) in bytes.iter_mut().enumerate() {
        if !FIXED_BYTES.contains(&position) {
            *byte = byte.reverse_bits();
        }
    }
    let mut text = String::with_capacity(36);
    for (position, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&position) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
    }
    Some(text)
}

fn parse(uid: &str) -> Option<[u8; 16]> {
    let groups: Vec<&str> = uid.split('-').collect();
    if !groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) {
        return None;
    }
    let digits = groups.concat();
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 16];
    for (position, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * position..2 * position + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_keeps_version_and_variant_and_is_its_own_inverse() {
        let uid = "bc6eba75-39ef-495e-a8bc-9919214612b1";
        let converted = convert_uid(uid).unwrap();
        assert_eq!(converted, "3d765dae-9cf7-497a-a83d-99988462488d");
        assert_eq!(convert_uid(&converted).unwrap(), uid);
    }

    #[test]
    fn text_that_is_no_uuid_is_refused() {
        for text in [
            "",
            "bc6eba75",
            "bc6eba75-39ef-495e-a8bc-9919214612b",
            "zc6eba75-39ef-495e-a8bc-9919214612b1",
        ] {
            assert_eq!(convert_uid(text), None, "{text}");
        }
    }
}
