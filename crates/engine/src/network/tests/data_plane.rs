//! A data plane that holds what it is told, and objects to messages that it should not get.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ipnet::IpNet;
use tortie_config::DatastoreConfig;

use crate::message::{
    Encapsulation, GlobalBgpConfig, Host, IpamPool, Message, Route, RouteTypes, Vtep,
};

#[derive(Debug, Default, PartialEq)]
pub(super) struct DataPlane {
    pub(super) not_ready: bool,
    pub(super) config: Option<DatastoreConfig>,
    pub(super) routes: BTreeMap<IpNet, Route>,
    pub(super) vteps: BTreeMap<String, Vtep>,
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) pools: BTreeMap<String, IpamPool>,
    pub(super) encapsulation: Option<Encapsulation>,
    pub(super) bgp: GlobalBgpConfig,
}

impl DataPlane {
    /// Takes the messages of one flush.
    pub(super) fn apply(&mut self, messages: Vec<Message>) {
        let ranks: Vec<usize> = messages.iter().map(rank).collect();
        assert!(ranks.is_sorted(), "out of order: {messages:#?}");
        if let Some(Message::ConfigUpdate(_)) = messages.first() {
            assert!(
                self.not_ready || self.config.as_ref() != config(&messages),
                "the same parameters again"
            );
            self.not_ready = false;
        }
        for message in messages {
            self.apply_one(message);
        }
    }

    fn apply_one(&mut self, message: Message) {
        match message {
            Message::DatastoreNotReady => self.not_ready = true,
            Message::ConfigUpdate(config) => self.config = Some(config),
            Message::RouteUpdate(route) => update(&mut self.routes, route.dst, route),
            Message::RouteRemove(dst) => remove(&mut self.routes, &dst),
            Message::VtepUpdate(vtep) => {
                assert!(!self.vteps.contains_key(&vtep.node), "change of {vtep:?}");
                update(&mut self.vteps, vtep.node.clone(), vtep);
            }
            Message::VtepRemove(node) => remove(&mut self.vteps, &node),
            Message::HostMetadataUpdate(host) => {
                update(&mut self.hosts, host.hostname.clone(), host);
            }
            Message::HostMetadataRemove(node) => remove(&mut self.hosts, &node),
            Message::IpamPoolUpdate(id, pool) => update(&mut self.pools, id, pool),
            Message::IpamPoolRemove(id) => remove(&mut self.pools, &id),
            Message::Encapsulation(new) => {
                assert_ne!(self.encapsulation.replace(new), Some(new));
            }
            Message::GlobalBgpConfigUpdate(bgp) => {
                assert_ne!(self.bgp, bgp);
                self.bgp = bgp;
            }
            other => panic!("not the network's: {other:?}"),
        }
    }

    /// What it holds of one kind, one line for each object.
    pub(super) fn lines(&self, kind: &str) -> Vec<String> {
        match kind {
            "config" => vec![config_line(self)],
            "route" => self.routes.values().map(route_line).collect(),
            "vtep" => self.vteps.values().map(json).collect(),
            "host" => self.hosts.values().map(json).collect(),
            "pool" => self.pools.iter().map(|entry| json(&entry)).collect(),
            "encapsulation" => self
                .encapsulation
                .into_iter()
                .map(encapsulation_line)
                .collect(),
            "bgp" => vec![json(&self.bgp)],
            _ => panic!("no such kind: {kind}"),
        }
    }
}

fn config(messages: &[Message]) -> Option<&DatastoreConfig> {
    messages.iter().find_map(|message| match message {
        Message::ConfigUpdate(config) => Some(config),
        _ => None,
    })
}

fn update<K: Ord + Debug, V: PartialEq + Debug>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    assert_ne!(map.get(&key), Some(&value), "{key:?} was the same before");
    map.insert(key, value);
}

fn remove<K: Ord + Debug, V>(map: &mut BTreeMap<K, V>, key: &K) {
    assert!(map.remove(key).is_some(), "{key:?} was not there");
}

/// The place of a message in a flush.
fn rank(message: &Message) -> usize {
    match message {
        Message::DatastoreNotReady => 0,
        Message::ConfigUpdate(_) => 1,
        Message::RouteRemove(_) => 10,
        Message::VtepRemove(_) => 11,
        Message::VtepUpdate(_) => 12,
        Message::RouteUpdate(_) => 13,
        Message::HostMetadataRemove(_) => 22,
        Message::HostMetadataUpdate(_) => 23,
        Message::IpamPoolRemove(_) => 24,
        Message::IpamPoolUpdate(..) => 25,
        Message::Encapsulation(_) => 26,
        Message::GlobalBgpConfigUpdate(_) => 30,
        other => panic!("not the network's: {other:?}"),
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn config_line(data_plane: &DataPlane) -> String {
    let state = if data_plane.not_ready {
        "not ready"
    } else {
        "ready"
    };
    format!("{state} {}", json(&data_plane.config))
}

fn encapsulation_line(encapsulation: Encapsulation) -> String {
    let flags = [
        (encapsulation.ipip_enabled, "ipip"),
        (encapsulation.vxlan_enabled, "vxlan"),
        (encapsulation.vxlan_enabled_v6, "vxlan-v6"),
        (encapsulation.no_encap_enabled, "no-encap"),
    ];
    words(&flags)
}

/// Such as `10.0.0.1/32 local-workload in Vxlan at node-a 192.168.0.1 nat`.
fn route_line(route: &Route) -> String {
    let types = [
        (RouteTypes::REMOTE_WORKLOAD, "remote-workload"),
        (RouteTypes::REMOTE_HOST, "remote-host"),
        (RouteTypes::LOCAL_WORKLOAD, "local-workload"),
        (RouteTypes::LOCAL_HOST, "local-host"),
        (RouteTypes::REMOTE_TUNNEL, "remote-tunnel"),
        (RouteTypes::LOCAL_TUNNEL, "local-tunnel"),
    ]
    .map(|(bit, name)| (route.types.contains(bit), name));
    let tunnel = route.tunnel_type.unwrap_or_default();
    let flags = [
        (tunnel.ipip, "ipip-device"),
        (tunnel.vxlan, "vxlan-device"),
        (tunnel.wireguard, "wireguard-device"),
        (route.same_subnet, "same-subnet"),
        (route.nat_outgoing, "nat"),
        (route.local_workload, "live"),
        (route.borrowed, "borrowed"),
    ];
    let mut parts = vec![
        route.dst.to_string(),
        words(&types),
        format!("in {:?}", route.ip_pool_type),
    ];
    if !route.dst_node_name.is_empty() {
        parts.push(format!("at {}", route.dst_node_name));
    }
    parts.extend(route.dst_node_ip.map(|address| address.to_string()));
    parts.push(words(&flags));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn words(flags: &[(bool, &str)]) -> String {
    let set: Vec<&str> = flags
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| *name)
        .collect();
    set.join(" ")
}
