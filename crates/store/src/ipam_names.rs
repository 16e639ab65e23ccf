//! Names of the IPAM objects: those that Calico gives them in Kubernetes, so that an object has one
//! name in all datastores. A handle's name is its ID, which Kubernetes keeps in lower case.

use std::fmt::Write as _;

use ipnet::IpNet;
use sha2::{Digest, Sha256};
use tortie_api::net::{Cidr, parse_cidr};

/// What Kubernetes allows for a name.
const MAX_NAME: usize = 253;
/// Digits of the hash that ends a shortened name.
const HASH_DIGITS: usize = 11;

/// `10.0.0.0/26` becomes `10-0-0-0-26`.
pub fn of_cidr(cidr: &str) -> String {
    cidr.replace(['.', ':', '/'], "-")
}

/// The reverse of [`of_cidr`]; none if the name is that of no network.
pub(crate) fn to_cidr(name: &str) -> Option<Cidr> {
    let (address, length) = name.rsplit_once('-')?;
    [".", ":"].into_iter().find_map(|separator| {
        let cidr = parse_cidr(&format!("{}/{length}", address.replace('-', separator)))?;
        (of_cidr(&cidr.network().to_string()) == name).then_some(cidr)
    })
}

/// The network of a block with this name; none if it is that of no network.
pub fn to_net(name: &str) -> Option<IpNet> {
    to_cidr(name).map(Cidr::network)
}

/// Node and block, with a hash if that is too long.
pub fn of_affinity(node: &str, cidr: &str) -> String {
    let cidr = of_cidr(cidr);
    let name = format!("{node}-{cidr}");
    if name.len() < MAX_NAME {
        return name;
    }
    let mut hash = String::new();
    for byte in Sha256::digest(format!("{node}+{cidr}")) {
        let _ = write!(hash, "{byte:02x}");
    }
    let space = (MAX_NAME - 1).saturating_sub(cidr.len() + 2 + HASH_DIGITS);
    let node = &node[..node.floor_char_boundary(space)];
    format!("{node}-{cidr}-{}", &hash[..HASH_DIGITS])
}

/// All nodes and blocks whose affinity has this name, unless it is a shortened one. There may be
/// several, because nodes have dashes in their names, too.
pub(crate) fn to_affinities(name: &str) -> impl Iterator<Item = (&str, Cidr)> {
    name.match_indices('-').filter_map(|(at, dash)| {
        let node = &name[..at];
        let cidr = to_cidr(&name[at + dash.len()..])?;
        (!node.is_empty()).then_some((node, cidr))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_cidr(cidr: &str, name: &str) {
        assert_eq!(of_cidr(cidr), name);
        assert_eq!(to_cidr(name).unwrap().to_string(), cidr);
    }

    #[test]
    fn names_of_blocks_lead_back_to_the_block() {
        check_cidr("10.0.0.0/26", "10-0-0-0-26");
        check_cidr("fd00::/122", "fd00---122");
        check_cidr("fd69:2303::e22b:0/122", "fd69-2303--e22b-0-122");
        check_cidr("::/0", "---0");
        for none in [
            "",
            "-",
            "a",
            "10-0-0-0",
            "10-0-0-1-26",
            "10-0-0-0-33",
            "010-0-0-0-8",
        ] {
            assert_eq!(to_cidr(none), None, "{none}");
        }
    }

    #[test]
    fn names_of_affinities_lead_back_to_node_and_block() {
        for (node, cidr) in [
            ("a", "10.0.0.0/26"),
            ("a-1-2", "10.0.0.0/26"),
            ("b-1", "fd00::/122"),
        ] {
            let name = of_affinity(node, cidr);
            let mut found = to_affinities(&name).map(|(node, cidr)| (node, cidr.to_string()));
            assert!(
                found.any(|found| found == (node, cidr.to_owned())),
                "{name}"
            );
        }
    }

    #[test]
    fn long_names_of_affinities_end_in_a_hash() {
        let node = "n".repeat(253);
        let name = of_affinity(&node, "10.0.0.0/26");
        assert_eq!(name.len(), 252);
        assert!(name.contains("nnn-10-0-0-0-26-"));
        assert_ne!(name, of_affinity(&format!("{node}n"), "10.0.0.0/26"));
        of_affinity(&"ä".repeat(200), "10.0.0.0/26");
    }
}
