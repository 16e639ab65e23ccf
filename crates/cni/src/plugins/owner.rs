//! Who something in the kernel belongs to, as a text that is kept with it.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha512};

/// The longest name of a network and of a container that are kept as they are, so that the whole fits a comment.
const LONGEST_NETWORK: usize = 40;
const LONGEST_CONTAINER: usize = 64;

/// Letters of a hash that stands for a longer name.
const HASH_LETTERS: usize = 32;

/// Tells an attachment from all others of the node.
pub(super) fn text(network: &str, container: &str, interface: &str) -> String {
    let container = short(container, LONGEST_CONTAINER);
    format!("{}{container} {interface}", of_network(network))
}

/// What all such texts of a network begin with.
pub(super) fn of_network(network: &str) -> String {
    format!("{} ", short(network, LONGEST_NETWORK))
}

/// The text itself, or a hash of it if it is longer.
fn short(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    hash(text, HASH_LETTERS)
}

/// The first letters of a hash, as the CNI project's plugins make names of it.
pub(super) fn hash(text: &str, letters: usize) -> String {
    let mut out = String::new();
    for byte in Sha512::digest(text.as_bytes()) {
        // Text takes whatever is written to it.
        let _ = write!(out, "{byte:02x}");
    }
    out.truncate(letters);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_tell_networks_and_containers_apart_and_fit_a_comment() {
        assert_eq!(text("net", "c1", "eth0"), "net c1 eth0");
        assert!(text("net", "c1", "eth0").starts_with(&of_network("net")));
        assert!(!text("net2", "c1", "eth0").starts_with(&of_network("net")));
        let long = "x".repeat(200);
        let longest = text(&long, &long, "fifteen_letters");
        assert!(longest.len() <= 127, "{longest}");
        assert_ne!(longest, text(&long, &long[1..], "fifteen_letters"));
    }
}
