//! Sets and maps, and their members as elements of the kernel.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use tortie_engine::message::Member;
use tortie_kernel::nft::{Element, Field, Key, Set, Value, Verdict};
use tortie_rules::IpVersion;

use crate::change::SetKind;

/// The key of all fingerprints, which do not outlive the process. Who can choose members cannot choose two sets that look
/// alike without knowing it.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A sum over elements that does not depend on their order, and how many they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    sum: u64,
    pub(super) count: usize,
}

impl Fingerprint {
    pub(super) fn of<'a>(elements: impl IntoIterator<Item = &'a Element>) -> Self {
        let mut fingerprint = Self::default();
        for element in elements {
            fingerprint.add(element);
        }
        fingerprint
    }

    pub(super) fn add(&mut self, element: &Element) {
        self.sum = self.sum.wrapping_add(hash(element));
        self.count += 1;
    }

    pub(super) fn remove(&mut self, element: &Element) {
        self.sum = self.sum.wrapping_sub(hash(element));
        self.count = self.count.saturating_sub(1);
    }
}

fn hash(element: &Element) -> u64 {
    let mut hasher = KEY.build_hasher();
    for key in [element.first(), element.last()] {
        key.as_bytes().hash(&mut hasher);
    }
    if let Some(verdict) = element.verdict() {
        format!("{verdict:?}").hash(&mut hasher);
    }
    hasher.finish()
}

pub(super) fn set(name: &str, kind: SetKind, ip_version: IpVersion) -> Set {
    let address = match ip_version {
        IpVersion::V4 => Field::Ipv4Addr,
        IpVersion::V6 => Field::Ipv6Addr,
    };
    match kind {
        SetKind::Addresses => Set::new(name, [address]),
        SetKind::Networks => Set::interval(name, [address]),
        SetKind::Ports => Set::new(name, [address, Field::InetProto, Field::InetService]),
    }
}

/// A map from interfaces to chains.
pub(super) fn map(name: &str) -> Set {
    Set::verdict_map(name, [Field::Ifname])
}

pub(super) fn element(member: &Member) -> Element {
    match member {
        Member::Net(net) if net.prefix_len() == net.max_prefix_len() => {
            Element::single(Value::address(net.addr()))
        }
        Member::Net(net) => Element::prefix(*net),
        Member::Port(address, protocol, port) => Element::single(Key::concatenated(&[
            Value::address(*address),
            Value::byte(protocol.number()),
            Value::network16(*port),
        ])),
    }
}

/// An interface of a map.
pub(super) fn interface(name: &str, chain: &Arc<str>) -> Element {
    let goto = Verdict::Goto(Arc::clone(chain));
    Element::single(Value::interface(name)).with_verdict(goto)
}
