//! What `ipset save` says about the sets of ours.

use std::sync::Arc;

use hashbrown::HashMap;
use tortie_engine::message::Member;
use tortie_rules::IpVersion;

use super::member::parse;
use crate::SetKind;

/// A set in the kernel.
#[derive(Debug, Default)]
pub(super) struct SavedSet {
    /// What it holds; none if it is of a type that we do not use.
    pub(super) kind: Option<SetKind>,
    /// How many members it can have.
    pub(super) capacity: u32,
    pub(super) members: Vec<Member>,
    /// How many more it has that are none of ours, whatever they are.
    pub(super) odd: usize,
}

/// Reads the output; leaves out the sets of others.
pub(super) fn parse_sets(text: &str, ip_version: IpVersion) -> HashMap<Arc<str>, SavedSet> {
    let mut sets = HashMap::new();
    let mut current: Option<(&str, SavedSet)> = None;
    let mut keep = |set: Option<(&str, SavedSet)>| {
        sets.extend(set.map(|(name, set)| (Arc::from(name), set)));
    };
    for line in text.lines() {
        let mut words = line.split(' ');
        let (command, name) = (words.next(), words.next().unwrap_or_default());
        match (command, &mut current) {
            (Some("create"), _) => {
                keep(current.take());
                current = is_ours(name, ip_version).then(|| (name, SavedSet::of_type(words)));
            }
            (Some("add"), Some((owner, set))) if *owner == name => {
                let member = words.next().and_then(parse);
                // What follows is an option, and we use none.
                match (member, words.next()) {
                    (Some(member), None) => set.members.push(member),
                    _ => set.odd += 1,
                }
            }
            _ => {}
        }
    }
    keep(current);
    sets
}

/// Whether a set is one of ours, of today or of former versions of Calico.
pub(super) fn is_ours(name: &str, ip_version: IpVersion) -> bool {
    let prefixes: &[&str] = match ip_version {
        IpVersion::V4 => &[
            "cali4",
            "felix-4",
            "felix-masq-ipam-pools",
            "felix-all-ipam-pools",
        ],
        IpVersion::V6 => &["cali6", "felix-6"],
    };
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

// === impl SavedSet ===

impl SavedSet {
    /// Of the type that the words after the name say.
    fn of_type<'a>(mut words: impl Iterator<Item = &'a str>) -> Self {
        let kind = match words.next() {
            Some("hash:ip") => Some(SetKind::Addresses),
            Some("hash:net") => Some(SetKind::Networks),
            Some("hash:ip,port") => Some(SetKind::Ports),
            _ => None,
        };
        let capacity = words.skip_while(|word| *word != "maxelem").nth(1);
        Self {
            kind,
            capacity: capacity.and_then(|number| number.parse().ok()).unwrap_or(0),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sets_of_ours_and_of_the_version_are_read() {
        let text = "create cali40a hash:net family inet hashsize 1024 maxelem 10 bucketsize 12 initval 0xc3\n\
             add cali40a 10.0.0.0\nadd cali40a 10.1.0.0/16\nadd cali40a 10.2.0.0/16 nomatch\n\
             create other hash:ip family inet hashsize 1024 maxelem 65536\nadd other 10.0.0.9\n\
             create cali60a hash:ip,port family inet6 hashsize 1024 maxelem 7\nadd cali60a fe80::1,tcp:80\n\
             create felix-4x bitmap:port range 0-100\nadd felix-4x 7\n";
        let sets = parse_sets(text, IpVersion::V4);
        let mut names: Vec<_> = sets.keys().map(|name| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, ["cali40a", "felix-4x"]);
        let set = &sets["cali40a"];
        assert_eq!(set.kind, Some(SetKind::Networks));
        assert_eq!(set.capacity, 10);
        let members: Vec<_> = set.members.iter().map(ToString::to_string).collect();
        assert_eq!(members, ["10.0.0.0/32", "10.1.0.0/16"]);
        assert_eq!(set.odd, 1);
        assert_eq!(sets["felix-4x"].kind, None);
        let sets = parse_sets(text, IpVersion::V6);
        assert_eq!(sets["cali60a"].kind, Some(SetKind::Ports));
        assert_eq!(sets["cali60a"].members.len(), 1);
    }
}
