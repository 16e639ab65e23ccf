//! Items that come, change and go, and the sets that they are in.

use std::net::IpAddr;

use super::{Engine, HOST, NETWORK_SET, WORKLOAD};
use crate::bytes::{Reader, put_number};
use crate::input::{
    HostEndpoint, HostEndpointKey, NetworkSet, WorkloadEndpoint, WorkloadEndpointKey,
};
use crate::items::{self, Item, ItemBuilder, ItemIdx, NOT_LOCAL};
use crate::labels;
use crate::locals::LocalEndpoint;
use crate::selectors::SelectorIdx;

impl Engine {
    pub(super) fn update_workload(
        &mut self,
        key: &WorkloadEndpointKey,
        endpoint: Option<&WorkloadEndpoint>,
    ) {
        let endpoint = endpoint.filter(|endpoint| self.config.admits(endpoint));
        let parts = [&*key.node, &*key.orchestrator, &*key.endpoint];
        let found = self.find_item(WORKLOAD, parts, &key.workload);
        let Some(endpoint) = endpoint else {
            self.remove_item(found);
            return;
        };
        let addresses = endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets);
        let idx = self.set_item(
            found,
            (WORKLOAD, parts, &key.workload),
            &endpoint.profiles,
            &endpoint.labels,
            |builder| {
                addresses.for_each(|net| builder.address(net.addr()));
                builder.ports(&endpoint.ports);
            },
        );
        if self.config.is_local(&key.node) {
            self.set_local(idx, || {
                LocalEndpoint::Workload(key.clone(), Box::new(endpoint.clone()))
            });
        }
    }

    pub(super) fn update_host(&mut self, key: &HostEndpointKey, endpoint: Option<&HostEndpoint>) {
        let parts = [&*key.node, "", ""];
        let found = self.find_item(HOST, parts, &key.name);
        let Some(endpoint) = endpoint else {
            self.remove_item(found);
            return;
        };
        let idx = self.set_item(
            found,
            (HOST, parts, &key.name),
            &endpoint.profiles,
            &endpoint.labels,
            |builder| {
                let ips: &[IpAddr] = &endpoint.expected_ips;
                for ip in ips {
                    builder.address(*ip);
                }
                builder.ports(&endpoint.ports);
            },
        );
        if self.config.is_local(&key.node) {
            self.set_local(idx, || {
                LocalEndpoint::Host(key.clone(), Box::new(endpoint.clone()))
            });
        }
    }

    pub(super) fn update_network_set(&mut self, name: &str, set: Option<&NetworkSet>) {
        let parts = ["", "", ""];
        let found = self.find_item(NETWORK_SET, parts, name);
        let Some(set) = set else {
            self.remove_item(found);
            return;
        };
        self.set_item(
            found,
            (NETWORK_SET, parts, name),
            &set.profiles,
            &set.labels,
            |builder| set.nets.iter().for_each(|net| builder.net(*net)),
        );
    }

    /// The item of a key. Its parts are numbers in the key, so a part that is not in use is in no key.
    fn find_item(&mut self, kind: u8, parts: [&str; 3], name: &str) -> Option<ItemIdx> {
        let mut key = std::mem::take(&mut self.key);
        let found = self.find_by_key(kind, parts, name, &mut key);
        self.key = key;
        found
    }

    fn find_by_key(
        &self,
        kind: u8,
        parts: [&str; 3],
        name: &str,
        key: &mut Vec<u8>,
    ) -> Option<ItemIdx> {
        key.clear();
        key.push(kind);
        for part in parts {
            put_number(key, self.parts.find(part)?);
        }
        key.extend_from_slice(name.as_bytes());
        self.items.find(key)
    }

    pub(crate) fn find_workload(&self, key: &WorkloadEndpointKey) -> Option<ItemIdx> {
        let parts = [&*key.node, &*key.orchestrator, &*key.endpoint];
        self.find_by_key(WORKLOAD, parts, &key.workload, &mut Vec::new())
    }

    pub(crate) fn find_host(&self, key: &HostEndpointKey) -> Option<ItemIdx> {
        self.find_by_key(HOST, [&*key.node, "", ""], &key.name, &mut Vec::new())
    }

    fn set_item(
        &mut self,
        found: Option<ItemIdx>,
        (kind, parts, name): (u8, [&str; 3], &str),
        profiles: &[String],
        own_labels: &crate::input::Labels,
        content: impl FnOnce(&mut ItemBuilder),
    ) -> ItemIdx {
        if found.is_none() {
            self.key.clear();
            self.key.push(kind);
            for part in parts {
                put_number(&mut self.key, self.parts.acquire(part));
            }
            self.key.extend_from_slice(name.as_bytes());
        }
        self.builder.start(&self.key);
        for profile in profiles {
            self.builder.parent(self.profiles.entry(profile));
        }
        self.builder.start_labels();
        labels::pack(own_labels, &mut self.names, &mut self.builder.packed);
        self.builder.start_nets();
        content(&mut self.builder);
        let item = self.builder.build();
        match found {
            None => self.insert_item(item),
            Some(idx) if self.items.get(idx).same_content(&item) => {
                labels::release(item.labels(), &mut self.names);
                idx
            }
            Some(idx) => {
                self.replace_item(idx, item);
                idx
            }
        }
    }

    fn insert_item(&mut self, item: Item) -> ItemIdx {
        let matched = self.set_matches(&item);
        let idx = self.items.insert(item);
        let item = self.items.get(idx);
        for profile in items::parents(item.parents()) {
            self.profiles.get_mut(profile).items.insert(idx);
        }
        self.sets.item_came(idx, item, &matched);
        idx
    }

    fn replace_item(&mut self, idx: ItemIdx, mut item: Item) {
        item.local = self.items.get(idx).local;
        let matched = self.set_matches(&item);
        let old = self.items.replace(idx, item);
        let old_matched = self.set_matches(&old);
        let item = self.items.get(idx);
        for profile in items::parents(item.parents()) {
            self.profiles.get_mut(profile).items.insert(idx);
        }
        self.sets.item_came(idx, item, &matched);
        self.sets.item_left(idx, &old, &old_matched);
        // A profile can be named twice, so all entries must last until the item is out of each.
        let is_dropped =
            |profile: &u32| !items::parents(item.parents()).any(|kept| kept == *profile);
        for profile in items::parents(old.parents()).filter(is_dropped) {
            self.profiles.get_mut(profile).items.remove(idx);
        }
        for profile in items::parents(old.parents()).filter(is_dropped) {
            if self.profiles.contains(profile) {
                self.profiles.tidy(profile);
            }
        }
        labels::release(old.labels(), &mut self.names);
    }

    fn remove_item(&mut self, found: Option<ItemIdx>) {
        let Some(idx) = found else { return };
        let local = self.items.get(idx).local;
        if local != NOT_LOCAL {
            self.remove_local(local);
        }
        let item = self.items.remove(idx);
        let matched = self.set_matches(&item);
        self.sets.item_left(idx, &item, &matched);
        for profile in items::parents(item.parents()) {
            self.profiles.get_mut(profile).items.remove(idx);
        }
        for profile in items::parents(item.parents()) {
            if self.profiles.contains(profile) {
                self.profiles.tidy(profile);
            }
        }
        labels::release(item.labels(), &mut self.names);
        let mut key = Reader::new(item.key());
        key.byte();
        for _ in 0..3 {
            self.parts.release(key.number());
        }
    }

    fn set_matches(&mut self, item: &Item) -> Vec<SelectorIdx> {
        self.sets.matches(&item.all_labels(&self.profiles))
    }
}
