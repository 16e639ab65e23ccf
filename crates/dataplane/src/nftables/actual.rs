//! What is in the kernel.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tortie_kernel::nft::{Chain, Field, Set, Socket, Table};

use crate::change::{Drift, Error};

use super::digest::RuleDigest;
use super::sets::Fingerprint;
use super::{Applied, RuleState, SetState, is_ours};

/// The type of the entry in a rule's userdata that holds its digest. `nft` skips types that it does not know.
const DIGEST: u8 = 200;

type Rules = HashMap<Arc<str>, Vec<RuleState>>;

/// What is in the kernel: what we know to have put there, or what was read.
#[derive(Debug, Default)]
pub(super) struct Actual {
    pub(super) applied: Applied,
    /// Chains and sets whose contents are read from the kernel rather than known; those that a full batch does not
    /// name are left over.
    pub(super) left_over_chains: HashSet<Arc<str>>,
    pub(super) left_over_sets: HashSet<Arc<str>>,
    /// Base chains that are there as they should be need not be added.
    pub(super) base_chains: Vec<Chain>,
    /// Chains of which a later change needs the handles.
    pub(super) numbered_chains_changed: Vec<Arc<str>>,
    /// Sets in the kernel that have our names and another form.
    pub(super) misshapen_sets: HashSet<Arc<str>>,
}

impl Actual {
    pub(super) fn from_applied(applied: Applied) -> Self {
        Self {
            applied,
            ..Self::default()
        }
    }

    pub(super) fn into_applied(self) -> Applied {
        self.applied
    }

    /// Reads our table.
    pub(super) fn read(socket: &mut Socket, table: &Table) -> Result<Self, Error> {
        let mut actual = Self::default();
        if !socket.tables()?.contains(table) {
            return Ok(actual);
        }
        for chain in socket.chains(table)? {
            let name: Arc<str> = chain.name().into();
            if !is_ours(&name) {
                continue;
            }
            actual.left_over_chains.insert(Arc::clone(&name));
            actual.applied.chains.insert(name, Vec::new());
            if matches!(chain, Chain::Base(..)) {
                actual.base_chains.push(chain);
            }
        }
        let rules = socket.rules(table, None, |rules: &mut Rules, rule| {
            let state = RuleState {
                digest: digest_of(rule.userdata).unwrap_or_default(),
                handle: rule.handle,
            };
            match rules.get_mut(rule.chain) {
                Some(chain) => chain.push(state),
                None => {
                    rules.insert(rule.chain.into(), vec![state]);
                }
            }
        })?;
        for (chain, rules) in rules {
            if let Some(known) = actual.applied.chains.get_mut(&chain) {
                *known = rules;
            }
        }
        for found in socket.sets(table)? {
            let name: Arc<str> = found.name.as_str().into();
            actual.left_over_sets.insert(Arc::clone(&name));
            let form = forms(&name).into_iter().find(|set| found.is(set));
            let Some(set) = form else {
                actual.misshapen_sets.insert(name);
                continue;
            };
            let elements = socket.elements(table, &set)?;
            let fingerprint = Fingerprint::of(&elements);
            actual
                .applied
                .sets
                .insert(name, SetState { set, fingerprint });
        }
        Ok(actual)
    }

    /// How the kernel differs from what it should have.
    pub(super) fn drift_from(&self, wanted: &Applied) -> Vec<Drift> {
        let mut drift = Vec::new();
        let mut add = |object: String, what: String| drift.push(Drift { object, what });
        for (name, rules) in &wanted.chains {
            let object = || format!("chain {name}");
            match self.applied.chains.get(name) {
                None => add(object(), "is missing".to_owned()),
                Some(actual) => {
                    if let Some(what) = rule_drift(rules, actual) {
                        add(object(), what);
                    }
                }
            }
        }
        for name in &self.left_over_chains {
            if !wanted.chains.contains_key(name) {
                add(format!("chain {name}"), "should not be there".to_owned());
            }
        }
        for (name, state) in &wanted.sets {
            let object = || format!("set {name}");
            match self.applied.sets.get(name) {
                None if self.misshapen_sets.contains(name) => {
                    add(object(), "is of another type".to_owned());
                }
                None => add(object(), "is missing".to_owned()),
                Some(actual) if actual.fingerprint != state.fingerprint => {
                    let (has, should) = (actual.fingerprint.count, state.fingerprint.count);
                    let what = if has == should {
                        format!("has {has} members, and some are not the right ones")
                    } else {
                        format!("has {has} members instead of {should}")
                    };
                    add(object(), what);
                }
                Some(_) => {}
            }
        }
        for name in &self.left_over_sets {
            if !wanted.sets.contains_key(name) {
                add(format!("set {name}"), "should not be there".to_owned());
            }
        }
        drift.sort();
        drift
    }
}

fn rule_drift(wanted: &[RuleState], actual: &[RuleState]) -> Option<String> {
    let digests = |rules: &[RuleState]| rules.iter().map(|rule| rule.digest).collect::<Vec<_>>();
    let (wanted, actual) = (digests(wanted), digests(actual));
    if wanted == actual {
        return None;
    }
    let missing = wanted.iter().filter(|digest| !actual.contains(digest));
    let foreign = actual.iter().filter(|digest| !wanted.contains(digest));
    Some(match (missing.count(), foreign.count()) {
        (0, 0) => "has its rules in another order or number".to_owned(),
        (missing, 0) => format!("lacks {missing} of its {} rules", wanted.len()),
        (0, foreign) => format!("has {foreign} rules that are not ours"),
        (missing, foreign) => {
            format!("lacks {missing} of its rules and has {foreign} that are not ours")
        }
    })
}

/// The forms that our sets have.
fn forms(name: &str) -> Vec<Set> {
    let mut forms = vec![super::sets::map(name)];
    for address in [Field::Ipv4Addr, Field::Ipv6Addr] {
        forms.push(Set::new(name, [address]));
        forms.push(Set::interval(name, [address]));
        let ports = [address, Field::InetProto, Field::InetService];
        forms.push(Set::new(name, ports));
    }
    forms
}

/// Adds a digest to a rule's userdata.
pub(super) fn put_digest(digest: RuleDigest, userdata: &mut Vec<u8>) {
    let length = u8::try_from(digest.len()).unwrap_or(u8::MAX);
    userdata.extend_from_slice(&[DIGEST, length]);
    userdata.extend_from_slice(&digest);
}

/// The digest in a rule's userdata; `None` if the rule is not ours, or of a version that had shorter ones.
fn digest_of(mut userdata: &[u8]) -> Option<RuleDigest> {
    while let [kind, length, rest @ ..] = userdata {
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        if *kind == DIGEST {
            return value.try_into().ok();
        }
        userdata = rest;
    }
    None
}
