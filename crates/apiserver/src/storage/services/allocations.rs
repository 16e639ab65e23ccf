//! What services hold: each address of the cluster and each port on nodes has one holder.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use ipnet::IpNet;
use serde_json::{Value, json};
use tortie_api::{Path, Problems};

use super::form::{
    HEADLESS, address, items, needs_address, needs_health_port, needs_node_ports, number, ports,
};

/// The ports on nodes that services may have, as in Kubernetes.
const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;

/// How much of a network is given out; one of IPv6 may be larger than anybody could fill.
const MAX_BITS: u8 = 64;

/// What is given to services.
pub(super) struct Allocations {
    network: IpNet,
    holders: HashMap<Held, Holder>,
}

/// Something that one service can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Held {
    Address(IpAddr),
    NodePort(u16),
}

/// Namespace and name of a service.
type Holder = (String, String);

impl Allocations {
    /// Nothing is given yet of these addresses.
    pub(super) fn new(network: IpNet) -> Self {
        Self {
            network: network.trunc(),
            holders: HashMap::new(),
        }
    }

    /// Notes what a service holds.
    pub(super) fn take(&mut self, service: &Value) {
        let holder = holder(service);
        for held in held_by(&service["spec"]) {
            self.holders.insert(held, holder.clone());
        }
    }

    /// Notes that a service holds nothing any more.
    pub(super) fn give_back(&mut self, service: &Value) {
        let gone = holder(service);
        self.holders.retain(|_, holder| *holder != gone);
    }

    /// Fills in what a service is to have. What it asks for by name must be free, or its own.
    pub(super) fn assign(&self, service: &mut Value, problems: &mut Problems) {
        let holder = holder(service);
        let spec = &mut service["spec"];
        if needs_address(spec) {
            self.assign_address(spec, &holder, problems);
        }
        self.assign_ports(spec, &holder, problems);
    }

    fn assign_address(&self, spec: &mut Value, holder: &Holder, problems: &mut Problems) {
        let root = Path::ROOT;
        let in_spec = root.field("spec");
        let at = in_spec.field("clusterIPs");
        let family = match self.network {
            IpNet::V4(_) => "IPv4",
            IpNet::V6(_) => "IPv6",
        };
        if let Some(other) = items(&spec["ipFamilies"]).find(|wanted| *wanted != family) {
            let why = format!("not configured on cluster, whose services are of {family}");
            return problems.add(&in_spec.field("ipFamilies"), other, why);
        }
        let wanted = match address(spec) {
            Some(HEADLESS) => HEADLESS.to_owned(),
            Some(wanted) => {
                let wanted = wanted.to_owned();
                if let Err(why) = self.check_address(&wanted, holder) {
                    let why = format!("failed to allocate IP {wanted}: {why}");
                    return problems.add(&at, [&wanted], why);
                }
                wanted
            }
            None => {
                let Some(address) = self.free_address() else {
                    let why = format!("failed to allocate a serviceIP: {} is full", self.network);
                    return problems.add_missing(&at, why);
                };
                address.to_string()
            }
        };
        spec["clusterIP"] = json!(wanted);
        spec["clusterIPs"] = json!([wanted]);
        spec["ipFamilies"] = json!([family]);
        if spec["ipFamilyPolicy"].is_null() {
            spec["ipFamilyPolicy"] = json!("SingleStack");
        }
    }

    /// Whether a service may have an address. One that it has already, it may keep.
    fn check_address(&self, wanted: &str, holder: &Holder) -> Result<(), String> {
        let Ok(address) = wanted.parse::<IpAddr>() else {
            return Err("must be a valid IP address".to_owned());
        };
        match self.holders.get(&Held::Address(address)) {
            Some(other) if other == holder => Ok(()),
            Some(_) => Err("provided IP is already allocated".to_owned()),
            None if !self.has(address) => Err(format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {}",
                self.network
            )),
            None => Ok(()),
        }
    }

    /// Whether services may have an address: it is in the network, and neither its first nor, in IPv4, its last.
    fn has(&self, address: IpAddr) -> bool {
        let is_last = address.is_ipv4() && address == self.network.broadcast();
        self.network.contains(&address) && address != self.network.network() && !is_last
    }

    /// An address that nobody has, from anywhere in the network: one that was just given back is not the next to be given.
    fn free_address(&self) -> Option<IpAddr> {
        let bits = self.network.max_prefix_len() - self.network.prefix_len();
        let size = 1_u128 << bits.min(MAX_BITS);
        let start = random() % size;
        // Of as many addresses and those that cannot be given, one is free.
        let tries = size.min(self.holders.len() as u128 + 4);
        let mut candidates = (0..tries).map(|step| self.nth((start + step) % size));
        candidates.find(|address| {
            let is_free = !self.holders.contains_key(&Held::Address(*address));
            is_free && self.has(*address) && *address != self.nth(1)
        })
    }

    /// The address at a place of the network. The one at 1 is that of the API in every cluster, and not given to others.
    fn nth(&self, place: u128) -> IpAddr {
        match self.network.network() {
            IpAddr::V4(first) => {
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                Ipv4Addr::from(u32::from(first).saturating_add(place)).into()
            }
            IpAddr::V6(first) => Ipv6Addr::from(u128::from(first).saturating_add(place)).into(),
        }
    }

    fn assign_ports(&self, spec: &mut Value, holder: &Holder, problems: &mut Problems) {
        let root = Path::ROOT;
        let at = root.field("spec");
        let mut own: Vec<u16> = Vec::new();
        for (index, port) in ports(spec).enumerate() {
            let Some(wanted) = number(&port["nodePort"]) else {
                continue;
            };
            // One port may be open for several protocols.
            if let Err(why) = self.check_port(wanted, holder) {
                let at = at.field("ports");
                let at = at.index(index);
                problems.add(&at.field("nodePort"), wanted, why);
            }
            own.push(wanted);
        }
        let health = number(&spec["healthCheckNodePort"]);
        if let Some(wanted) = health {
            if let Err(why) = self.check_port(wanted, holder) {
                problems.add(&at.field("healthCheckNodePort"), wanted, why);
            }
            own.push(wanted);
        }
        let full = "failed to allocate a nodePort: range is full";
        if needs_node_ports(spec) {
            for port in spec["ports"].as_array_mut().into_iter().flatten() {
                if number(&port["nodePort"]).is_some() {
                    continue;
                }
                let Some(free) = self.free_port(&own) else {
                    return problems.add_missing(&at.field("ports"), full);
                };
                own.push(free);
                port["nodePort"] = json!(free);
            }
        }
        if needs_health_port(spec) && health.is_none() {
            match self.free_port(&own) {
                Some(free) => spec["healthCheckNodePort"] = json!(free),
                None => problems.add_missing(&at.field("healthCheckNodePort"), full),
            }
        }
    }

    fn check_port(&self, wanted: u16, holder: &Holder) -> Result<(), String> {
        match self.holders.get(&Held::NodePort(wanted)) {
            Some(other) if other == holder => Ok(()),
            Some(_) => Err("provided port is already allocated".to_owned()),
            None if !NODE_PORTS.contains(&wanted) => Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                NODE_PORTS.start(),
                NODE_PORTS.end()
            )),
            None => Ok(()),
        }
    }

    fn free_port(&self, own: &[u16]) -> Option<u16> {
        let start = usize::try_from(random() % NODE_PORTS.len() as u128).unwrap_or_default();
        let mut candidates = NODE_PORTS.skip(start).chain(NODE_PORTS.take(start));
        candidates
            .find(|port| !own.contains(port) && !self.holders.contains_key(&Held::NodePort(*port)))
    }
}

fn holder(service: &Value) -> Holder {
    let text = |field: &str| {
        let text = service["metadata"][field].as_str();
        text.unwrap_or_default().to_owned()
    };
    (text("namespace"), text("name"))
}

/// What a service holds.
fn held_by(spec: &Value) -> Vec<Held> {
    let addresses = items(&spec["clusterIPs"]).chain([&spec["clusterIP"]]);
    let addresses = addresses.filter_map(|text| text.as_str()?.parse().ok());
    let on_nodes = ports(spec).map(|port| &port["nodePort"]);
    let on_nodes = on_nodes.chain([&spec["healthCheckNodePort"]]);
    addresses
        .map(Held::Address)
        .chain(on_nodes.filter_map(number).map(Held::NodePort))
        .collect()
}

fn random() -> u128 {
    uuid::Uuid::new_v4().as_u128()
}
