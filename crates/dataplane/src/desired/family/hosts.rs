//! The chains of the host's own endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tortie_engine::message::{HostEndpoint, HostEndpointId};
use tortie_rules::{ANY_INTERFACE, HostDispatch, HostInterfaces, Table};

use super::{DesiredState, Family, key};
use crate::desired::endpoints::{Selectors, groups};

impl Family {
    /// Puts the chains of all endpoints of the host, and those that lead to them.
    pub(super) fn host_endpoints(&mut self, desired: &DesiredState) {
        let by_interface = &desired.hosts_by_interface.by_interface;
        let gone: Vec<Arc<str>> = self
            .hosts
            .iter()
            .filter(|name| !by_interface.contains_key(*name))
            .cloned()
            .collect();
        let mut filter = Vec::new();
        let mut untracked = Vec::new();
        let mut pre_dnat = Vec::new();
        for (interface, id) in by_interface {
            let Some(host) = desired.hosts.get(id) else {
                continue;
            };
            filter.push(&**interface);
            if !host.untracked_tiers.is_empty() {
                if &**interface == ANY_INTERFACE {
                    tracing::warn!(
                        endpoint = %id.endpoint_id,
                        "Untracked policies do not apply to a host endpoint for all interfaces"
                    );
                } else {
                    untracked.push(&**interface);
                }
            }
            if !host.pre_dnat_tiers.is_empty() {
                pre_dnat.push(&**interface);
            }
        }
        for interface in by_interface.keys() {
            self.host_endpoint(desired, interface, by_interface);
        }
        for interface in gone {
            self.endpoint_chains(&interface, Vec::new(), Vec::new());
        }
        self.hosts = by_interface.keys().cloned().collect();
        let mut keys = BTreeSet::new();
        for (which, from, to) in [
            (HostDispatch::Filter, &filter, &filter),
            (HostDispatch::Mangle, &pre_dnat, &filter),
            (HostDispatch::Raw, &untracked, &untracked),
        ] {
            let (from_names, from_default) = split_default(from);
            let (to_names, to_default) = split_default(to);
            let from = HostInterfaces {
                names: &from_names,
                default: from_default,
            };
            let to = HostInterfaces {
                names: &to_names,
                default: to_default,
            };
            for chain in self.renderer.host_dispatch_chains(which, from, to) {
                keys.insert(key(&chain));
                self.chains.put(chain);
            }
        }
        let gone: Vec<_> = self.host_dispatch.difference(&keys).cloned().collect();
        self.remove_chains(gone);
        self.host_dispatch = keys;
        self.mark_dispatch(desired);
    }

    fn host_endpoint(
        &mut self,
        desired: &DesiredState,
        interface: &Arc<str>,
        by_interface: &BTreeMap<Arc<str>, HostEndpointId>,
    ) {
        let host = by_interface
            .get(interface)
            .and_then(|id| desired.hosts.get(id));
        let Some(host): Option<&HostEndpoint> = host.map(|host| &**host) else {
            return;
        };
        let selectors: Selectors<'_> = &|id| desired.selector_of(id);
        let (normal, forward) = (
            groups(&host.tiers, selectors),
            groups(&host.forward_tiers, selectors),
        );
        let profiles = &host.profile_ids;
        let renderer = &self.renderer;
        let mut chains = renderer.host_filter_chains(interface, &normal, &forward, profiles);
        chains.push(renderer.host_mangle_egress_chain(interface, &normal, profiles));
        let mut group_chains = self.group_chains(Table::Filter, &normal);
        group_chains.extend(self.group_chains(Table::Filter, &forward));
        group_chains.extend(self.group_chains(Table::Mangle, &normal));
        if !host.pre_dnat_tiers.is_empty() {
            let tiers = groups(&host.pre_dnat_tiers, selectors);
            chains.push(renderer.host_mangle_ingress_chain(interface, &tiers));
            group_chains.extend(self.group_chains(Table::Mangle, &tiers));
        }
        if !host.untracked_tiers.is_empty() {
            let tiers = groups(&host.untracked_tiers, selectors);
            chains.extend(renderer.host_raw_chains(interface, &tiers));
            group_chains.extend(self.group_chains(Table::Raw, &tiers));
        }
        if renderer.config().ipvs {
            let marked = self
                .renderer
                .endpoint_mark_chain(interface, &mut self.marks);
            chains.push(marked);
        }
        self.endpoint_chains(interface, chains, group_chains);
    }
}

/// Takes the name that stands for all other interfaces from among the others.
fn split_default<'a>(names: &[&'a str]) -> (Vec<&'a str>, Option<&'a str>) {
    let is_default = |name: &&&str| **name == ANY_INTERFACE;
    let default = names.iter().find(is_default).copied();
    let others = names.iter().filter(|name| !is_default(name)).copied();
    (others.collect(), default)
}
