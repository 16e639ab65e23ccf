//! IP sets that rules in use refer to, and who is in them.
//!
//! A set that a rule begins to use is *fresh* until the next flush, which finds the members of all fresh sets
//! together. From then on every change of an item changes the sets that it is or was in, and no others.

mod content;
pub(crate) mod definition;
pub(crate) mod members;
mod resolve;
mod services;

use crate::slab::Slab;
use hashbrown::HashMap;
use tortie_selector::Selector;

use crate::config::Overlaps;
use crate::id_set::IdSet;
use crate::items::{Item, ItemIdx};
use crate::message::{IpSetDelta, IpSetUpdate, Member, Message, SetId};
use crate::names::Names;
use crate::postings::Postings;
use crate::profiles::{ItemLabels, ProfileIdx};
use crate::selectors::{SelectorIdx, Selectors};
use content::Content;
use definition::{BROKEN, Definition, KINDS};
use members::{Delta, Members};
use services::Services;

/// The number of a set.
pub(crate) type SetIdx = u32;

/// Up to so many items, looking at all of them is cheaper than keeping an index.
const FEW_ITEMS: usize = 128;

/// All sets in use.
pub(crate) struct Sets {
    slots: Slab<IpSet>,
    by_id: HashMap<SetId, SetIdx>,
    /// By definition, as rules spell it; spares parsing and hashing what was seen before.
    by_definition: [HashMap<Box<str>, SetIdx>; KINDS],
    selectors: Selectors<IdSet>,
    services: Services,
    fresh: Vec<SetIdx>,
    unused: Vec<SetIdx>,
    dirty: Vec<SetIdx>,
    overlaps: Overlaps,
    is_first: bool,
    item_postings: Postings,
    profile_postings: Postings,
    /// Space for the selectors that an item matches.
    scratch: Vec<SelectorIdx>,
}

struct IpSet {
    id: SetId,
    content: Content,
    uses: u32,
    definitions: Vec<(usize, Box<str>)>,
    members: Members,
    delta: Delta,
    is_fresh: bool,
    is_sent: bool,
    is_dirty: bool,
}

// === impl Sets ===

impl Sets {
    pub(crate) fn new(overlaps: Overlaps) -> Self {
        Self {
            slots: Slab::default(),
            by_id: HashMap::new(),
            by_definition: Default::default(),
            selectors: Selectors::default(),
            services: Services::default(),
            fresh: Vec::new(),
            unused: Vec::new(),
            dirty: Vec::new(),
            overlaps,
            is_first: true,
            item_postings: Postings::default(),
            profile_postings: Postings::default(),
            scratch: Vec::new(),
        }
    }

    pub(crate) fn id(&self, idx: SetIdx) -> &SetId {
        &self.slots[idx as usize].id
    }

    pub(crate) fn find(&self, id: &SetId) -> Option<SetIdx> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn members(&self, idx: SetIdx) -> &Members {
        &self.slots[idx as usize].members
    }

    /// The set of a definition, which is then used once more; [`BROKEN`] if its selector does not parse.
    pub(crate) fn acquire(&mut self, definition: &Definition<'_>, names: &mut Names) -> SetIdx {
        let (kind, spelling) = definition.spelling();
        if let Some(&idx) = self.by_definition[kind].get(&*spelling) {
            self.slots[idx as usize].uses += 1;
            return idx;
        }
        let selector = match definition.selector().map(Selector::parse) {
            Some(Ok(selector)) => Some(selector),
            Some(Err(_)) => return BROKEN,
            None => None,
        };
        let id = definition.id(selector.as_ref());
        let idx = match self.by_id.get(&id) {
            Some(&idx) => idx,
            None => self.create(id, definition, selector.as_ref(), names),
        };
        let set = &mut self.slots[idx as usize];
        set.uses += 1;
        let spelling: Box<str> = spelling.into();
        set.definitions.push((kind, spelling.clone()));
        self.by_definition[kind].insert(spelling, idx);
        idx
    }

    fn create(
        &mut self,
        id: SetId,
        definition: &Definition<'_>,
        selector: Option<&Selector>,
        names: &mut Names,
    ) -> SetIdx {
        let selector = selector.map(|s| self.selectors.acquire(s, names, IdSet::default));
        let content = match (definition, selector) {
            (Definition::Port { protocol, name, .. }, Some(selector)) => Content::Ports {
                selector,
                protocol: *protocol,
                name: (*name).into(),
            },
            (_, Some(selector)) => Content::Nets(selector),
            (other, None) => Content::Service {
                service: other.service().into(),
                with_ports: other.has_ports(),
            },
        };
        let mut set = IpSet {
            id: id.clone(),
            content,
            uses: 0,
            definitions: Vec::new(),
            members: Members::default(),
            delta: Delta::default(),
            is_fresh: selector.is_some(),
            is_sent: false,
            is_dirty: true,
        };
        if let Content::Service {
            service,
            with_ports,
        } = &set.content
        {
            set.members
                .fill(self.services.members(service, *with_ports));
        }
        let idx = crate::index(self.slots.insert(set));
        match (&self.slots[idx as usize].content, selector) {
            (_, Some(selector)) => {
                self.selectors.owner_mut(selector).insert(idx);
                self.fresh.push(idx);
            }
            (
                Content::Service {
                    service,
                    with_ports,
                },
                None,
            ) => {
                self.services.use_in(service, idx, *with_ports);
            }
            _ => {}
        }
        self.by_id.insert(id, idx);
        self.dirty.push(idx);
        idx
    }

    /// One use of a set less.
    pub(crate) fn release(&mut self, idx: SetIdx) {
        if idx == BROKEN {
            return;
        }
        let set = &mut self.slots[idx as usize];
        set.uses -= 1;
        if set.uses == 0 {
            self.unused.push(idx);
        }
    }

    /// The selectors that an item matches now, to be given to [`Self::item_left`] when it changes.
    pub(crate) fn matches(&mut self, labels: &ItemLabels<'_>) -> Vec<SelectorIdx> {
        if !self.selectors.has_settled() {
            return Vec::new();
        }
        let mut out = std::mem::take(&mut self.scratch);
        self.selectors.matches(labels, &mut out);
        let matches = out.as_slice().to_vec();
        self.scratch = out;
        matches
    }

    /// An item has come, or has changed to this. Call before [`Self::item_left`] for what it was, so that what stays
    /// is never gone in between.
    pub(crate) fn item_came(&mut self, idx: ItemIdx, item: &Item, matched: &[SelectorIdx]) {
        let Self {
            selectors,
            item_postings,
            ..
        } = self;
        item_postings.insert(
            item.labels(),
            idx,
            |value| selectors.value_hash(value),
            |_| true,
        );
        self.contribute(item, matched, Members::add);
    }

    /// An item has gone, or is not this any more.
    pub(crate) fn item_left(&mut self, idx: ItemIdx, item: &Item, matched: &[SelectorIdx]) {
        let Self {
            selectors,
            item_postings,
            ..
        } = self;
        item_postings.remove(item.labels(), idx, |value| selectors.value_hash(value));
        self.contribute(item, matched, Members::remove);
    }

    /// An item matches other selectors than before, because of the labels that it inherits.
    pub(crate) fn item_moved(&mut self, item: &Item, from: &[SelectorIdx], to: &[SelectorIdx]) {
        let only = |these: &[SelectorIdx], others: &[SelectorIdx]| -> Vec<SelectorIdx> {
            these
                .iter()
                .copied()
                .filter(|idx| others.binary_search(idx).is_err())
                .collect()
        };
        self.contribute(item, &only(to, from), Members::add);
        self.contribute(item, &only(from, to), Members::remove);
    }

    pub(crate) fn profile_came(&mut self, idx: ProfileIdx, labels: &[u8]) {
        let Self {
            selectors,
            profile_postings,
            ..
        } = self;
        profile_postings.insert(labels, idx, |value| selectors.value_hash(value), |_| true);
    }

    pub(crate) fn profile_left(&mut self, idx: ProfileIdx, labels: &[u8]) {
        let Self {
            selectors,
            profile_postings,
            ..
        } = self;
        profile_postings.remove(labels, idx, |value| selectors.value_hash(value));
    }

    fn contribute(
        &mut self,
        item: &Item,
        matched: &[SelectorIdx],
        change: fn(&mut Members, Member, Overlaps, Option<&mut Delta>),
    ) {
        for &selector in matched {
            for idx in self.selectors.owner(selector).iter() {
                let set = &mut self.slots[idx as usize];
                if set.is_fresh {
                    continue;
                }
                let IpSet {
                    content,
                    members,
                    delta,
                    is_sent,
                    ..
                } = set;
                content.for_each_member(item, |member| {
                    let delta = is_sent.then_some(&mut *delta);
                    change(members, member, self.overlaps, delta);
                });
                if !set.is_dirty {
                    set.is_dirty = true;
                    self.dirty.push(idx);
                }
            }
        }
    }

    pub(crate) fn slice_update(
        &mut self,
        name: &crate::input::ObjectName,
        slice: Option<&crate::input::EndpointSlice>,
    ) {
        let Self {
            services,
            slots,
            dirty,
            overlaps,
            ..
        } = self;
        services.update(name, slice, |idx, member, came| {
            let set = &mut slots[idx as usize];
            let delta = set.is_sent.then_some(&mut set.delta);
            if came {
                set.members.add(member, *overlaps, delta);
            } else {
                set.members.remove(member, *overlaps, delta);
            }
            if !set.is_dirty {
                set.is_dirty = true;
                dirty.push(idx);
            }
        });
    }

    /// Sends new sets, then changes of the others; forgets those that ceased to be used, and gives the identifiers of
    /// those of them that were sent.
    pub(crate) fn flush(&mut self, names: &mut Names, sink: &mut dyn FnMut(Message)) -> Vec<SetId> {
        let removed = self.remove_unused(names);
        let mut dirty: Vec<SetIdx> = std::mem::take(&mut self.dirty)
            .into_iter()
            .filter(|idx| {
                self.slots
                    .get(*idx as usize)
                    .is_some_and(|set| set.is_dirty)
            })
            .collect();
        dirty.sort_unstable_by(|a, b| self.id(*a).cmp(self.id(*b)));
        dirty.dedup();
        for &idx in &dirty {
            let set = &mut self.slots[idx as usize];
            if !set.is_sent {
                set.is_sent = true;
                set.is_dirty = false;
                sink(Message::IpSetUpdate(IpSetUpdate {
                    id: set.id.clone(),
                    r#type: set.content.set_type(),
                    members: set.members.visible(self.overlaps),
                }));
            }
        }
        for idx in dirty {
            let set = &mut self.slots[idx as usize];
            if std::mem::take(&mut set.is_dirty) && !set.delta.is_empty() {
                let (added, removed) = std::mem::take(&mut set.delta).split();
                sink(Message::IpSetDeltaUpdate(IpSetDelta {
                    id: set.id.clone(),
                    added,
                    removed,
                }));
            }
        }
        removed
    }

    fn remove_unused(&mut self, names: &mut Names) -> Vec<SetId> {
        let mut removed = Vec::new();
        for idx in std::mem::take(&mut self.unused) {
            if self.slots.get(idx as usize).is_none_or(|set| set.uses > 0) {
                continue;
            }
            let set = self.slots.remove(idx as usize);
            self.by_id.remove(&set.id);
            for (kind, spelling) in &set.definitions {
                self.by_definition[*kind].remove(spelling);
            }
            match &set.content {
                Content::Nets(selector) | Content::Ports { selector, .. } => {
                    let users = self.selectors.owner_mut(*selector);
                    users.remove(idx);
                    if users.is_empty()
                        && let Some(name) = self.selectors.remove(*selector, names)
                        && self.item_postings.untrack(name)
                    {
                        self.profile_postings.untrack(name);
                        names.release(name);
                    }
                }
                Content::Service { service, .. } => self.services.unuse_in(service, idx),
            }
            if set.is_sent {
                removed.push(set.id);
            }
        }
        removed.sort_unstable();
        removed
    }
}
