//! Endpoints of this node: what the data plane is told of them.

use std::sync::Arc;

use crate::slab::Slab;

use crate::input::{HostEndpoint, HostEndpointKey, WorkloadEndpoint, WorkloadEndpointKey};
use crate::items::ItemIdx;
use crate::message::{self, HostEndpointId, Message, QosPolicy, SkipRedirect, WorkloadEndpointId};
use crate::policies::classes::{ClassIdx, TierLists};
use crate::roles::Role;
use crate::verdict::EndpointKey;

/// The number of a local endpoint.
pub(crate) type LocalIdx = u32;

/// All local endpoints.
#[derive(Default)]
pub(crate) struct Locals {
    slots: Slab<Local>,
    dirty: Vec<LocalIdx>,
    /// Endpoints that the data plane has and that are gone.
    pub(crate) gone: std::collections::BTreeSet<LocalId>,
}

/// An endpoint of this node.
pub(crate) struct Local {
    pub(crate) item: ItemIdx,
    pub(crate) endpoint: LocalEndpoint,
    pub(crate) class: ClassIdx,
    /// The policies that the data plane was told; none if it was told nothing.
    pub(crate) sent: Option<Arc<TierLists>>,
    /// Whether more than its policies may have changed since.
    is_changed: bool,
    is_dirty: bool,
}

/// What kind of endpoint it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LocalEndpoint {
    Workload(WorkloadEndpointKey, Box<WorkloadEndpoint>),
    Host(HostEndpointKey, Box<HostEndpoint>),
}

/// How the data plane knows an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LocalId {
    Host(HostEndpointId),
    Workload(WorkloadEndpointId),
}

// === impl Locals ===

impl Locals {
    pub(crate) fn insert(
        &mut self,
        item: ItemIdx,
        endpoint: LocalEndpoint,
        class: impl FnOnce(LocalIdx) -> ClassIdx,
    ) -> LocalIdx {
        let idx = crate::index(self.slots.vacant_key());
        // If it was there before, the data plane still has it.
        let sent = self.gone.remove(&endpoint.id()).then(Arc::default);
        self.slots.insert(Local {
            item,
            endpoint,
            class: class(idx),
            sent,
            is_changed: true,
            is_dirty: false,
        });
        self.touch(idx);
        idx
    }

    pub(crate) fn remove(&mut self, idx: LocalIdx) -> Local {
        let local = self.slots.remove(idx as usize);
        if local.sent.is_some() {
            self.gone.insert(local.endpoint.id());
        }
        local
    }

    pub(crate) fn get(&self, idx: LocalIdx) -> &Local {
        &self.slots[idx as usize]
    }

    pub(crate) fn find(&self, idx: LocalIdx) -> Option<&Local> {
        self.slots.get(idx as usize)
    }

    pub(crate) fn get_mut(&mut self, idx: LocalIdx) -> &mut Local {
        &mut self.slots[idx as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LocalIdx, &Local)> {
        self.slots
            .iter()
            .map(|(idx, local)| (crate::index(idx), local))
    }

    pub(crate) fn indexes(&self) -> Vec<LocalIdx> {
        self.iter().map(|(idx, _)| idx).collect()
    }

    /// Its policies may have changed.
    pub(crate) fn touch(&mut self, idx: LocalIdx) {
        let local = &mut self.slots[idx as usize];
        if !local.is_dirty {
            local.is_dirty = true;
            self.dirty.push(idx);
        }
    }

    /// Something else of it changed.
    pub(crate) fn change(&mut self, idx: LocalIdx) {
        self.slots[idx as usize].is_changed = true;
        self.touch(idx);
    }

    /// The endpoints of which there may be something to send, in order.
    pub(crate) fn take_dirty(&mut self) -> Vec<LocalIdx> {
        let mut dirty: Vec<LocalIdx> = std::mem::take(&mut self.dirty)
            .into_iter()
            .filter(|idx| {
                self.slots
                    .get(*idx as usize)
                    .is_some_and(|local| local.is_dirty)
            })
            .collect();
        dirty.sort_unstable();
        dirty.dedup();
        dirty.sort_by_cached_key(|idx| self.get(*idx).endpoint.id());
        dirty
    }

    /// The message about an endpoint, if there is anything new.
    pub(crate) fn message(
        &mut self,
        idx: LocalIdx,
        lists: &Arc<TierLists>,
        role: Role,
    ) -> Option<Message> {
        let local = &mut self.slots[idx as usize];
        local.is_dirty = false;
        let is_changed = std::mem::take(&mut local.is_changed);
        let same = |sent: &Arc<TierLists>| match &local.endpoint {
            LocalEndpoint::Workload(..) => sent.normal == lists.normal,
            LocalEndpoint::Host(..) => sent == lists,
        };
        if !is_changed && local.sent.as_ref().is_some_and(same) {
            return None;
        }
        local.sent = Some(Arc::clone(lists));
        Some(local.endpoint.message(lists, role))
    }
}

// === impl LocalEndpoint ===

impl LocalEndpoint {
    pub(crate) fn id(&self) -> LocalId {
        match self {
            Self::Workload(key, _) => LocalId::Workload(key.into()),
            Self::Host(key, _) => LocalId::Host(HostEndpointId {
                endpoint_id: key.name.clone(),
            }),
        }
    }

    pub(crate) fn key(&self) -> EndpointKey {
        match self {
            Self::Workload(key, _) => EndpointKey::Workload(key.clone()),
            Self::Host(key, _) => EndpointKey::Host(key.clone()),
        }
    }

    /// On the side of the host; `*` and empty as input has it.
    pub(crate) fn interface(&self) -> &str {
        match self {
            Self::Workload(_, endpoint) => &endpoint.interface,
            Self::Host(_, endpoint) => &endpoint.interface,
        }
    }

    pub(crate) fn profiles(&self) -> &[String] {
        match self {
            Self::Workload(_, endpoint) => &endpoint.profiles,
            Self::Host(_, endpoint) => &endpoint.profiles,
        }
    }

    fn message(&self, lists: &TierLists, role: Role) -> Message {
        match self {
            Self::Workload(key, endpoint) => Message::WorkloadEndpointUpdate(
                key.into(),
                Box::new(workload_message(endpoint, lists, role)),
            ),
            Self::Host(key, endpoint) => Message::HostEndpointUpdate(
                HostEndpointId {
                    endpoint_id: key.name.clone(),
                },
                Box::new(host_message(endpoint, lists)),
            ),
        }
    }
}

fn workload_message(
    endpoint: &WorkloadEndpoint,
    lists: &TierLists,
    role: Role,
) -> message::WorkloadEndpoint {
    let nats = |is_wanted: fn(&std::net::IpAddr) -> bool| {
        let wanted = endpoint.nats.iter().filter(|nat| is_wanted(&nat.internal));
        wanted.map(Into::into).collect()
    };
    let qos = endpoint.qos.unwrap_or_default();
    let is_machine = endpoint
        .labels
        .get("kubevirt.io")
        .is_some_and(|v| v == "virt-launcher");
    let skip_redir = SkipRedirect {
        ingress: is_machine || qos.ingress_bandwidth > 0 || qos.ingress_packet_rate > 0,
        egress: qos.egress_bandwidth > 0 || qos.egress_packet_rate > 0,
    };
    message::WorkloadEndpoint {
        state: "active",
        name: endpoint.interface.clone(),
        mac: endpoint.mac.clone(),
        profile_ids: endpoint.profiles.clone(),
        ipv4_nets: endpoint.ipv4_nets.clone(),
        ipv6_nets: endpoint.ipv6_nets.clone(),
        tiers: Arc::clone(&lists.normal),
        ipv4_nat: nats(std::net::IpAddr::is_ipv4),
        ipv6_nat: nats(std::net::IpAddr::is_ipv6),
        allow_spoofed_source_prefixes: endpoint.allow_spoofed_source_prefixes.clone(),
        annotations: endpoint.annotations.clone(),
        qos_controls: endpoint.qos,
        local_bgp_peer: role.bgp_peer,
        skip_redir: (skip_redir != SkipRedirect::default()).then_some(skip_redir),
        qos_policies: marking(qos.dscp),
        live_migration_role: role.migration,
        live_migration_uid: role.migration_uid,
        live_migration_vmi_name: role.machine,
    }
}

fn host_message(endpoint: &HostEndpoint, lists: &TierLists) -> message::HostEndpoint {
    let (v4, v6) = endpoint.expected_ips.iter().partition(|ip| ip.is_ipv4());
    message::HostEndpoint {
        name: endpoint.interface.clone(),
        profile_ids: endpoint.profiles.clone(),
        tiers: Arc::clone(&lists.normal),
        expected_ipv4_addrs: v4,
        expected_ipv6_addrs: v6,
        untracked_tiers: Arc::clone(&lists.untracked),
        pre_dnat_tiers: Arc::clone(&lists.pre_dnat),
        forward_tiers: Arc::clone(&lists.forward),
        qos_policies: marking(endpoint.dscp),
    }
}

fn marking(dscp: Option<u8>) -> Vec<QosPolicy> {
    dscp.map(|dscp| QosPolicy { dscp }).into_iter().collect()
}
