//! Identifiers made from hashes, in the forms that Calico's components exchange and store.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha224, Sha256};

/// Marks a suffix that was replaced by its hash.
const SHORTENED: char = '_';

/// `prefix:` followed by a hash over `prefix:content`.
///
/// The hash is SHA-224 in URL-safe base64 without padding: 38 characters.
pub fn make_unique_id(prefix: &str, content: &str) -> String {
    let digest = Sha224::new()
        .chain_update(prefix)
        .chain_update(":")
        .chain_update(content)
        .finalize();
    let mut id = String::with_capacity(prefix.len() + 39);
    id.push_str(prefix);
    id.push(':');
    URL_SAFE_NO_PAD.encode_string(digest, &mut id);
    id
}

/// `prefix` and `suffix` together if they fit in `max_length` bytes, otherwise `prefix` and as much
/// as fits of a hash of the suffix, with `_` between.
///
/// A suffix that begins with `_` and would fill the space exactly is hashed too, because it could
/// be mistaken for a shortened one. An empty suffix counts as `_`.
///
/// # Panics
///
/// If a hash is needed and `max_length` leaves no room for one character of it. Prefixes and limits
/// are constants of the caller, so this is a mistake in the program.
pub fn length_limited_id(prefix: &str, suffix: &str, max_length: usize) -> String {
    let suffix = if suffix.is_empty() { "_" } else { suffix };
    let length = prefix.len() + suffix.len();
    if length < max_length || (length == max_length && !suffix.starts_with(SHORTENED)) {
        return [prefix, suffix].concat();
    }
    let room = max_length.saturating_sub(prefix.len() + SHORTENED.len_utf8());
    assert!(
        room > 0,
        "an ID of {max_length} bytes has no room for a hash after `{prefix}`"
    );

    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(suffix));
    let kept = &hash[..room.min(hash.len())];
    format!("{prefix}{SHORTENED}{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_limited(prefix: &str, suffix: &str, max_length: usize, expected: &str) {
        let id = length_limited_id(prefix, suffix, max_length);
        assert_eq!(id, expected, "{prefix} + {suffix} in {max_length}");
        assert!(id.len() <= max_length, "{id} is longer than {max_length}");
    }

    #[test]
    fn the_prefix_is_part_of_what_is_hashed() {
        assert_eq!(
            make_unique_id("s", "all()"),
            "s:5y5I3VdRZfDU01O--xXAPx2yxCQQqMf0M6IWug"
        );
        assert_eq!(
            make_unique_id("svc", "mj8fzw61"),
            "svc:oA9WlxYV8FLK_258KPP2XcoIVf42Kr35lERf8A"
        );
    }

    #[test]
    fn what_fits_is_kept() {
        check_limited("caclc", "90X0X", 15, "caclc90X0X");
        check_limited("caclc", "90X0X", 10, "caclc90X0X");
    }

    #[test]
    fn an_empty_suffix_becomes_an_underscore() {
        check_limited("-l", "", 20, "-l_");
    }

    #[test]
    fn what_does_not_fit_is_hashed_and_cut() {
        check_limited("i-li", "cadX9_b-d1Ya0Za", 16, "i-li_KTWFkBYxwHd");
    }

    #[test]
    fn a_full_length_suffix_that_looks_shortened_is_hashed() {
        check_limited("ab", "_cd", 6, "ab_cd");
        assert_ne!(length_limited_id("ab", "_cd", 5), "ab_cd");
    }

    #[test]
    fn a_limit_longer_than_the_hash_keeps_the_whole_hash() {
        let id = length_limited_id("p", &"x".repeat(300), 256);
        assert_eq!(id.len(), "p_".len() + 43);
    }

    #[test]
    #[should_panic(expected = "no room for a hash")]
    fn a_limit_without_room_for_a_hash_is_refused() {
        length_limited_id("prefix", "suffix", 7);
    }
}
