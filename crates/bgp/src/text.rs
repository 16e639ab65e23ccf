//! Texts that may stand in BIRD's configuration: each type is made by a check only, so that nothing that somebody named or
//! wrote can end a statement or begin another.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Longest symbol that BIRD reads, in both of its lines.
const MAX_SYMBOL: usize = 64;

/// Digits of the hash that stands in for what is cut off a name.
const HASH_DIGITS: usize = 16;

/// Longest key of TCP MD5 signatures in Linux.
const MAX_PASSWORD: usize = 80;

/// Longest pattern of an interface: a name, each character of which a wildcard may stand for.
const MAX_PATTERN: usize = 15;

/// A symbol with the name of an object in it, as it stands in the text, in quotes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(String);

impl Symbol {
    /// `'<prefix><name><suffix>'`. A name that is too long, or has characters that symbols cannot have, is cut, and told
    /// from others by its hash. Prefix and suffix are short and of letters, digits and `_`.
    pub fn new(prefix: &'static str, name: &str, suffix: &str) -> Self {
        let room = MAX_SYMBOL.saturating_sub(prefix.len() + suffix.len());
        // No name of Kubernetes has `_`, so that none can look like one that is hashed.
        let is_plain = !name.is_empty() && name.chars().all(is_name_character);
        if is_plain && name.len() <= room {
            return Self(format!("'{prefix}{name}{suffix}'"));
        }
        let keep = room.saturating_sub(HASH_DIGITS + 1);
        let kept: String = name
            .chars()
            .map(|c| if is_symbol_character(c) { c } else { '_' })
            .take(keep)
            .collect();
        let hash = Sha256::digest(name);
        let hash = hash.iter().take(HASH_DIGITS / 2);
        let hash = hash.fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        Self(format!("'{prefix}{kept}_{hash:0HASH_DIGITS$X}{suffix}'"))
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_symbol_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.')
}

/// The name of an interface, or a pattern with `*` for any characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfacePattern(Box<str>);

impl InterfacePattern {
    /// What would be right.
    pub const EXPECTED: &'static str = "a name of an interface: 1 to 15 letters, digits, `_`, `.`, `-` or, for any characters, `*`";

    /// The pattern, unless it has other characters than interfaces have, or too many.
    pub fn new(text: &str) -> Option<Self> {
        let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '*');
        let fits = (1..=MAX_PATTERN).contains(&text.len());
        (fits && text.chars().all(is_right)).then(|| Self(text.into()))
    }

    /// Whether it is that of this interface.
    pub fn matches(&self, interface: &str) -> bool {
        matches_from(self.0.as_bytes(), interface.as_bytes())
    }
}

impl fmt::Display for InterfacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Patterns are at most 15 characters long, so that going back is cheap.
fn matches_from(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            (0..=text.len()).any(|skipped| matches_from(rest, &text[skipped..]))
        }
        (Some((wanted, pattern)), Some((found, text))) if wanted == found => {
            matches_from(pattern, text)
        }
        _ => false,
    }
}

/// A password of a session. It is shown by nothing but the text for BIRD.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Arc<str>);

impl Password {
    /// What would be right.
    pub const EXPECTED: &'static str =
        "1 to 80 bytes of UTF-8 without `\"`, line breaks and other control characters";

    /// The password, if BIRD and the kernel can use it.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=MAX_PASSWORD).contains(&text.len());
        let is_right = |c: char| c != '"' && !c.is_control();
        (fits && text.chars().all(is_right)).then(|| Self(text.into()))
    }

    /// The text itself, for the configuration alone.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_symbol(name: &str, expected: &str) {
        let symbol = Symbol::new("bgp_", name, "_importFilterV4").to_string();
        assert_eq!(symbol, expected);
        assert!(symbol.len() <= MAX_SYMBOL + 2, "{symbol}");
    }

    #[test]
    fn names_that_symbols_cannot_have_are_cut_and_hashed() {
        check_symbol("plain-1.x", "'bgp_plain-1.x_importFilterV4'");
        let full = "a".repeat(45);
        check_symbol(&full, &format!("'bgp_{full}_importFilterV4'"));
        check_symbol(
            "a-filter-with-a-name-much-longer-than-bird-symbols-can-be-in-its-one-dialect",
            "'bgp_a-filter-with-a-name-much-lo_B11AAF0CBAE8E4E5_importFilterV4'",
        );
        check_symbol("x'; }\n", "'bgp_x______9874A7826CEE22D2_importFilterV4'");
        check_symbol("", "'bgp__E3B0C44298FC1C14_importFilterV4'");
    }

    #[test]
    fn interfaces_have_names_and_patterns_of_few_characters() {
        for right in ["eth0", "*", "cali*", "a.b-c_d", "fifteen-letters"] {
            assert!(InterfacePattern::new(right).is_some(), "{right}");
        }
        for wrong in ["", "eth0\"", "a b", "sixteen-letters-", "a\n", "é"] {
            assert!(InterfacePattern::new(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_wildcard_stands_for_any_characters() {
        let matches =
            |pattern, text| InterfacePattern::new(pattern).is_some_and(|p| p.matches(text));
        assert!(matches("bond*", "bond0") && matches("bond*", "bond") && matches("*", "x"));
        assert!(matches("*.cali", "vxlan.cali") && matches("a*c*e", "abcde"));
        assert!(!matches("eth0", "eth01") && !matches("*.cali", "cali") && !matches("a*c", "ab"));
    }

    #[test]
    fn a_password_is_not_shown_and_cannot_end_its_statement() {
        let password = Password::new("se;cr'et");
        assert_eq!(format!("{password:?}"), "Some(Password(…))");
        for wrong in ["", "a\"b", "a\nb", "\0", &"x".repeat(81)] {
            assert!(Password::new(wrong).is_none(), "{wrong}");
        }
    }
}
