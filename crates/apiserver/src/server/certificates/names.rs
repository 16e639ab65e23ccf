//! Certificates that name several groups.
//!
//! `rcgen` keeps each attribute of a name once, so the name is put into a certificate of its making afterwards, which is
//! then signed again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{KeyPair, SigningKey as _};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The tags of DER that are needed.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Marks a length that takes more than one byte.
const LONG: u8 = 0x80;

/// The attributes of a name: `2.5.4.3` and `2.5.4.10`.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The same certificate for this user in these groups, in PEM.
pub(super) fn renamed(
    certificate: &[u8],
    user: &str,
    groups: &[String],
    authority: &KeyPair,
) -> Result<String, rcgen::Error> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) = parsed.map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
    let body = parsed.tbs_certificate.as_ref();
    let old = parsed.subject().as_raw();
    // All are parts of the same bytes.
    let place = |part: &[u8]| part.as_ptr().addr() - certificate.as_ptr().addr();
    let (start, end) = (place(old), place(old) + old.len());
    let body_end = place(body) + body.len();
    let before = place(body) + header_length(body);
    let rest = &certificate[body_end..];
    let algorithm = &rest[..header_length(rest) + content_length(rest)];
    let content = [
        &certificate[before..start],
        &name(user, groups),
        &certificate[end..body_end],
    ];
    let body = der(SEQUENCE, &content.concat());
    let signature = authority.sign(&body)?;
    let signature = der(BIT_STRING, &[&[0], &signature[..]].concat());
    let certificate = der(SEQUENCE, &[&body[..], algorithm, &signature].concat());
    Ok(pem(&certificate))
}

fn name(user: &str, groups: &[String]) -> Vec<u8> {
    let attribute = |kind: &[u8], value: &str| {
        let pair = [
            der(OBJECT_IDENTIFIER, kind),
            der(UTF8_STRING, value.as_bytes()),
        ];
        der(SET, &der(SEQUENCE, &pair.concat()))
    };
    let groups = groups.iter().map(|group| attribute(ORGANIZATION, group));
    let attributes: Vec<_> = std::iter::once(attribute(COMMON_NAME, user))
        .chain(groups)
        .collect();
    der(SEQUENCE, &attributes.concat())
}

/// A value with its tag and length.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut value = vec![tag];
    let bytes = content.len().to_be_bytes();
    let first = bytes.iter().position(|byte| *byte != 0);
    let length = &bytes[first.unwrap_or(bytes.len() - 1)..];
    match length {
        [short] if *short < LONG => value.push(*short),
        // A length has eight bytes at most.
        long => {
            value.push(LONG | u8::try_from(long.len()).unwrap_or_default());
            value.extend_from_slice(long);
        }
    }
    value.extend_from_slice(content);
    value
}

/// How many bytes the tag and the length of a value take.
fn header_length(value: &[u8]) -> usize {
    match value[1] {
        short if short < LONG => 2,
        long => 2 + usize::from(long & !LONG),
    }
}

/// How many bytes of content a value has.
fn content_length(value: &[u8]) -> usize {
    match value[1] {
        short if short < LONG => short.into(),
        _ => {
            let length = &value[2..header_length(value)];
            length
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte))
        }
    }
}

fn pem(der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().copied().map(char::from));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}
