//! Keys and values in etcd: no bytes make the driver panic, and an object has the key it was found
//! under.
//!
//! Input that starts with `/` is a key, a newline and a value; other input is a value, after one
//! byte that picks its key.

use tortie_store::{Key, Kind, etcd};

const IPAM_KEYS: [&str; 4] = [
    "/calico/ipam/v2/assignment/ipv4/block/10.0.0.0-26",
    "/calico/ipam/v2/host/node-1/ipv6/block/fd00::-122",
    "/calico/ipam/v2/handle/net.0A1B",
    "/calico/resources/v3/projectcalico.org/networkpolicies/ns/default.p",
];

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let Some((&first, value)) = data.split_first() else {
        return;
    };
    let decoded = if first == b'/' {
        let end = data
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(data.len());
        etcd::decode(&data[..end], data.get(end + 1..).unwrap_or_default())
    } else {
        let decoded = etcd::decode(picked_key(first).as_bytes(), value);
        assert!(decoded.is_some(), "the key is that of an object");
        decoded
    };
    match decoded {
        Some((key, Ok(resource))) => assert_eq!(Key::of(&resource), key),
        Some((_, Err(reason))) => assert!(reason.len() < 1000),
        None => {}
    }
}

fn picked_key(byte: u8) -> String {
    let index = usize::from(byte) % (Kind::ALL.len() + IPAM_KEYS.len());
    let kind = match index.checked_sub(IPAM_KEYS.len()) {
        None => return IPAM_KEYS[index].to_owned(),
        Some(index) => Kind::ALL[index],
    };
    match kind {
        Kind::IpamBlock => IPAM_KEYS[0].to_owned(),
        Kind::BlockAffinity => IPAM_KEYS[1].to_owned(),
        Kind::IpamHandle => IPAM_KEYS[2].to_owned(),
        kind => {
            let namespace = if kind.is_namespaced() { "ns/" } else { "" };
            format!(
                "/calico/resources/v3/projectcalico.org/{}/{namespace}a",
                kind.plural()
            )
        }
    }
}
