//! What `iptables-save` says about a table, as far as it is about rules of ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use tortie_rules::{HASH_PREFIX, Table};

/// What chains of ours begin with: those of today, then those of former versions of Calico.
const CHAIN_PREFIXES: [&str; 8] = [
    "cali-", "califw-", "calitw-", "califh-", "calith-", "calipi-", "calipo-", "felix-",
];

/// Rules that former versions of Calico put into the kernel's chain for translating sources, without a mark of theirs.
const OLD_MASQUERADING_SET: &str = " felix-masq-ipam-pools ";
const OLD_MASQUERADING: &str = "POSTROUTING -o tunl0 -m addrtype ! --src-type LOCAL --limit-iface-out \
     -m addrtype --src-type LOCAL -j MASQUERADE";

/// The hashes of the rules of chains of ours.
pub(super) type Chains = HashMap<Arc<str>, Box<[RuleHash]>>;

/// By which a rule is recognised. It covers the rules before it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleHash([u8; 16]);

/// A table in the kernel.
#[derive(Debug, Default)]
pub(super) struct SavedTable {
    /// The chains of ours.
    pub(super) chains: Chains,
    /// Other chains that have rules of ours.
    pub(super) hooked: BTreeMap<String, HookedChain>,
}

/// A chain of the kernel or of others with rules of ours.
#[derive(Debug, Default)]
pub(super) struct HookedChain {
    pub(super) hashes: Vec<RuleHash>,
    /// The rules of ours, each with the name of the chain in front.
    pub(super) ours: Vec<String>,
}

// === impl RuleHash ===

impl RuleHash {
    /// A rule of somebody else.
    pub(super) const FOREIGN: Self = Self([0; 16]);

    /// A rule of ours that no version today would write.
    const OLD: Self = Self([1; 16]);

    /// The hash as it is in a rule's comment.
    pub(super) fn new(text: &str) -> Self {
        text.as_bytes().try_into().map_or(Self::OLD, Self)
    }
}

// === impl SavedTable ===

impl SavedTable {
    /// Reads the output for one table.
    pub(super) fn parse(text: &str, table: Table) -> Result<Self, String> {
        let mut chains: HashMap<&str, Vec<RuleHash>> = HashMap::new();
        let mut hooked: BTreeMap<&str, HookedChain> = BTreeMap::new();
        for line in text.lines() {
            if let Some(rule) = line.strip_prefix("-A ") {
                let chain = first_word(rule);
                if is_ours(chain) {
                    let hash = hash_in(rule).unwrap_or(RuleHash::FOREIGN);
                    chains.entry(chain).or_default().push(hash);
                    continue;
                }
                let old = || is_old(rule, table).then_some(RuleHash::OLD);
                let hash = hash_in(rule).or_else(old);
                let hooked = hooked.entry(chain).or_default();
                hooked.hashes.push(hash.unwrap_or(RuleHash::FOREIGN));
                hooked.ours.extend(hash.map(|_| rule.to_owned()));
            } else if let Some(declaration) = line.strip_prefix(':') {
                let chain = first_word(declaration);
                if is_ours(chain) {
                    chains.entry(chain).or_default();
                }
            } else if line.starts_with("# Table `") && line.contains("is incompatible") {
                return Err(format!(
                    "the table {} has rules that were not made with iptables",
                    table.name()
                ));
            }
        }
        hooked.retain(|_, chain| !chain.ours.is_empty());
        let chains = chains.into_iter();
        let hooked = hooked.into_iter();
        Ok(Self {
            chains: chains
                .map(|(name, hashes)| (name.into(), hashes.into()))
                .collect(),
            hooked: hooked
                .map(|(name, chain)| (name.to_owned(), chain))
                .collect(),
        })
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

fn is_ours(chain: &str) -> bool {
    CHAIN_PREFIXES
        .iter()
        .any(|prefix| chain.starts_with(prefix))
}

/// The hash in the first comment that has one.
fn hash_in(rule: &str) -> Option<RuleHash> {
    let mut comments = rule.match_indices("--comment ");
    comments.find_map(|(at, option)| {
        let comment = rule[at + option.len()..].trim_start_matches('"');
        let hash = comment.strip_prefix(HASH_PREFIX)?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = hash.find(|c| !is_part(c)).unwrap_or(hash.len());
        (end > 0).then(|| RuleHash::new(&hash[..end]))
    })
}

/// Whether a rule without a hash, in a chain that is not ours, was put there by a former version.
fn is_old(rule: &str, table: Table) -> bool {
    let mut words = rule.split(' ');
    let leads_to_us =
        words.any(|word| matches!(word, "-j" | "-g")) && words.next().is_some_and(is_ours);
    let is_masquerading = table == Table::Nat
        && rule.starts_with("POSTROUTING ")
        && (rule.contains(OLD_MASQUERADING_SET) || rule == OLD_MASQUERADING);
    leads_to_us || is_masquerading
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_A: &str = "aaaaaaaaaaaaaaaa";

    fn parse(text: &str, table: Table) -> SavedTable {
        SavedTable::parse(text, table).unwrap()
    }

    #[test]
    fn our_chains_are_read_by_the_hashes_of_their_rules() {
        let text = format!(
            ":cali-a - [0:0]\n:cali-empty - [0:0]\n:OTHER - [0:0]\n\
             -A cali-a -m comment --comment \"cali:{OF_A}\" -m comment --comment \"cali:x\" -j DROP\n\
             -A cali-a -j ACCEPT\n-A cali-a -m comment --comment cali:{OF_A} -j RETURN\n-A OTHER -j DROP\n"
        );
        let table = parse(&text, Table::Filter);
        let of_a = RuleHash::new(OF_A);
        assert_eq!(*table.chains["cali-a"], [of_a, RuleHash::FOREIGN, of_a]);
        assert!(table.chains["cali-empty"].is_empty());
        assert_eq!(table.chains.len(), 2);
        assert!(table.hooked.is_empty());
    }

    #[test]
    fn rules_that_lead_to_us_are_found_in_other_chains() {
        let text = format!(
            "-A FORWARD -m comment --comment \"cali:{OF_A}\" -j cali-FORWARD\n-A FORWARD -j DOCKER\n\
             -A FORWARD -i eth0 -j felix-FORWARD\n-A FORWARD -g cali-x\n-A INPUT -j calico-dhcp\n"
        );
        let table = parse(&text, Table::Filter);
        let forward = &table.hooked["FORWARD"];
        let old = RuleHash::OLD;
        assert_eq!(
            forward.hashes,
            [RuleHash::new(OF_A), RuleHash::FOREIGN, old, old]
        );
        assert_eq!(forward.ours[1], "FORWARD -i eth0 -j felix-FORWARD");
        assert_eq!(table.hooked.len(), 1);
    }

    #[test]
    fn old_masquerading_is_found_in_its_table_only() {
        let text = "-A POSTROUTING -m set --match-set felix-masq-ipam-pools src -j MASQUERADE\n\
             -A POSTROUTING -o tunl0 -m addrtype ! --src-type LOCAL --limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE\n";
        assert_eq!(parse(text, Table::Nat).hooked["POSTROUTING"].ours.len(), 2);
        assert!(parse(text, Table::Mangle).hooked.is_empty());
    }

    #[test]
    fn a_table_that_cannot_be_shown_is_an_error() {
        let text = "# Table `filter' is incompatible, use 'nft' tool.\n";
        SavedTable::parse(text, Table::Filter).unwrap_err();
    }
}
