//! Which nodes a packet passes, and which host endpoints it meets there.

use std::net::IpAddr;

use anyhow::Result;
use tortie_engine::input::EncapMode;
use tortie_engine::verdict::{End, EndpointKey, Gate, Hop, Translated};

use crate::directory::{Directory, Host, HostInterface};
use crate::party::{Party, Who};

/// How the destination of a packet is translated on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way<'d> {
    /// It is not.
    Direct,
    /// On the node where the packet begins, or the first that it comes to.
    AtOnce(Translated),
    /// On this node, which puts its own address in the place of the source if it sends the packet on to another.
    Through {
        node: &'d Host,
        arrives_for: Translated,
    },
}

/// The nodes that a packet passes.
#[derive(Debug, Default)]
pub(crate) struct Route {
    pub(crate) hops: Vec<Hop>,
    /// What could not be told for certain.
    pub(crate) remarks: Vec<String>,
}

/// A packet on its way.
struct Travel<'d> {
    directory: &'d Directory,
    is_ipv4: bool,
    route: Route,
}

/// The way of a packet between two parties.
pub(crate) fn find(
    directory: &Directory,
    (from, to): (&Party<'_>, &Party<'_>),
    (source, destination): (IpAddr, IpAddr),
    way: Way<'_>,
) -> Result<Route> {
    let mut travel = Travel {
        directory,
        is_ipv4: destination.is_ipv4(),
        route: Route::default(),
    };
    match way {
        Way::Direct => travel.between(from, to, source, destination, None)?,
        Way::AtOnce(original) => travel.between(from, to, source, destination, Some(original))?,
        Way::Through { node, arrives_for } => {
            travel.through(node, (from, to), (source, destination), arrives_for)?;
        }
    }
    Ok(travel.route)
}

impl Travel<'_> {
    /// From one party to the other, with its destination translated on the first node.
    fn between(
        &mut self,
        from: &Party<'_>,
        to: &Party<'_>,
        source: IpAddr,
        destination: IpAddr,
        translated: Option<Translated>,
    ) -> Result<()> {
        match (from.node(), to.node()) {
            (None, None) => {}
            (Some(start), Some(end)) if start == end => {
                self.hop(start, gate(from), gate(to));
            }
            (start, end) => {
                let is_tunnelled = start
                    .zip(end)
                    .is_some_and(|(start, end)| self.is_tunnelled(start, end, destination));
                if let Some(start) = start {
                    let out = self.interface(start, from, source, is_tunnelled)?;
                    self.hop(start, gate(from), out);
                }
                if let Some(end) = end {
                    let into = self.interface(end, to, destination, is_tunnelled)?;
                    self.hop(end, into, gate(to));
                }
            }
        }
        if let Some(first) = self.route.hops.first_mut().filter(|_| translated.is_some()) {
            first.arrives_for = translated;
            first.translates = true;
        }
        Ok(())
    }

    /// Through a port of a node, which knows what is behind it.
    fn through(
        &mut self,
        node: &Host,
        (from, to): (&Party<'_>, &Party<'_>),
        (source, destination): (IpAddr, IpAddr),
        arrives_for: Translated,
    ) -> Result<()> {
        let entry = arrives_for.address;
        let into = match from.node() {
            Some(start) if start == node.name => gate(from),
            start => {
                if let Some(start) = start {
                    let out = self.interface(start, from, source, false)?;
                    self.hop(start, gate(from), out);
                    if let Some(hop) = self.route.hops.last_mut() {
                        hop.arrives_for = Some(arrives_for);
                    }
                }
                self.uplink(node, entry, false)
            }
        };
        let end = to.node();
        let is_here = end == Some(&*node.name);
        let is_tunnelled = end.is_some_and(|end| self.is_tunnelled(&node.name, end, destination));
        let out = if is_here {
            gate(to)
        } else {
            self.uplink(node, entry, is_tunnelled)
        };
        self.hop(&node.name, into, out);
        if let Some(hop) = self.route.hops.last_mut() {
            hop.arrives_for = Some(arrives_for);
            hop.translates = true;
        }
        if let Some(end) = end.filter(|_| !is_here) {
            let into = self.interface(end, to, destination, is_tunnelled)?;
            self.hop(end, into, gate(to));
            let own = node.interface(Some(entry)).ok().flatten();
            if let Some(hop) = self.route.hops.last_mut() {
                hop.source = Some(End {
                    address: entry,
                    endpoint: own.map(|own| EndpointKey::Host(own.key.clone())),
                });
            }
        }
        Ok(())
    }

    fn hop(&mut self, node: &str, from: Gate, to: Gate) {
        let host = self.directory.hosts.get(node);
        let any = host.and_then(|host| host.endpoints.iter().find(|own| own.is_all_interfaces));
        self.route.hops.push(Hop {
            node: node.to_owned(),
            from,
            to,
            all_interfaces: any.map(|any| EndpointKey::Host(any.key.clone())),
            source: None,
            arrives_for: None,
            translates: false,
        });
    }

    /// The interface by which packets of a party leave its node or come to it.
    fn interface(
        &mut self,
        node: &str,
        party: &Party<'_>,
        address: IpAddr,
        is_tunnelled: bool,
    ) -> Result<Gate> {
        match party.who {
            Who::HostInterface(_, own) => Ok(Gate::Interface(own_key(own))),
            Who::Host(host) if !is_tunnelled => {
                let own = host.interface(Some(address))?;
                Ok(Gate::Interface(own.and_then(own_key)))
            }
            _ => match self.directory.hosts.get(node) {
                Some(host) => {
                    let mut addresses = host.addresses.iter();
                    let main = addresses.find(|own| own.is_ipv4() == self.is_ipv4);
                    Ok(self.uplink(host, main.copied().unwrap_or(address), is_tunnelled))
                }
                None => Ok(Gate::Interface(None)),
            },
        }
    }

    /// The interface of a node with other machines. Packets in tunnels come by the tunnel's own.
    fn uplink(&mut self, host: &Host, address: IpAddr, is_tunnelled: bool) -> Gate {
        if is_tunnelled {
            return Gate::Interface(None);
        }
        if let Ok(own) = host.interface(Some(address)) {
            return Gate::Interface(own.and_then(own_key));
        }
        self.route.remarks.push(format!(
            "node {} has {} host endpoints, and which of them forwarded packets meet is not known: none was asked",
            host.name,
            host.endpoints.len()
        ));
        Gate::Interface(None)
    }

    /// Whether packets from one node to an address on another go in a tunnel.
    fn is_tunnelled(&self, start: &str, end: &str, destination: IpAddr) -> bool {
        let pools = self.directory.pools.iter();
        let mut pools = pools.filter(|(net, _)| net.contains(&destination));
        let Some((_, pool)) = pools.next() else {
            return false;
        };
        let is_used = |mode: EncapMode| match mode {
            EncapMode::Never => false,
            EncapMode::Always => true,
            EncapMode::CrossSubnet => !self.share_a_subnet(start, end),
        };
        is_used(pool.ipip) || is_used(pool.vxlan)
    }

    fn share_a_subnet(&self, start: &str, end: &str) -> bool {
        let hosts = &self.directory.hosts;
        let (Some(start), Some(end)) = (hosts.get(start), hosts.get(end)) else {
            return false;
        };
        let mut subnets = start.subnets.iter();
        subnets.any(|subnet| end.addresses.iter().any(|address| subnet.contains(address)))
    }
}

fn gate(party: &Party<'_>) -> Gate {
    match party.who {
        Who::Workload(workload) => Gate::Workload(EndpointKey::Workload(workload.key.clone())),
        Who::Host(_) | Who::HostInterface(..) | Who::Outside => Gate::Host,
    }
}

fn own_key(own: &HostInterface) -> Option<EndpointKey> {
    (!own.is_all_interfaces).then(|| EndpointKey::Host(own.key.clone()))
}
