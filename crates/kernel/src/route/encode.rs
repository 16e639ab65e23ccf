//! Routes as messages, and what a message asks for in words.

use std::net::IpAddr;

use ipnet::IpNet;

use super::batch::Batch;
use super::entry::{Kind, Protocol, Route, Scope};
use super::error::Result;
use super::forwarding;
use super::neighbour;
use super::number::{family, flag, header, route_flag};
use super::socket::Socket;
use crate::netlink::{Attribute, Message, Writer, attributes, messages};
use crate::{conntrack, link, qdisc};

/// Where a message has room for eight bits of a table's number only, this says that an attribute has all of it.
const TABLE_IN_ATTRIBUTE: u8 = libc::RT_TABLE_UNSPEC;

/// Among the numbers of a route that say how to use it: the largest packet.
const MTU: u16 = 2;

impl Batch {
    /// Adds a route. It is refused if there is one with the same key.
    pub fn add_route(&mut self, route: &Route) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWROUTE, flags, |out| write(out, route));
    }

    /// Adds a route, in place of the one with the same key if there is one.
    pub fn replace_route(&mut self, route: &Route) {
        let flags = flag::CREATE | flag::REPLACE;
        self.push(libc::RTM_NEWROUTE, flags, |out| write(out, route));
    }

    pub fn delete_route(&mut self, route: &Route) {
        self.push(libc::RTM_DELROUTE, 0, |out| write(out, route));
    }
}

impl Socket {
    /// The routes of a table, of both families. A table that does not exist has none.
    pub fn routes(&mut self, table: u32) -> Result<Vec<Route>> {
        let mut all = Vec::new();
        for family in [family::IPV4, family::IPV6] {
            let ask = |out: &mut Writer| {
                out.raw(&[family, 0, 0, 0, TABLE_IN_ATTRIBUTE, 0, 0, 0, 0, 0, 0, 0]);
                out.bytes(libc::RTA_TABLE, &table.to_ne_bytes());
            };
            match self.dump(libc::RTM_GETROUTE, ask, read_route) {
                Ok(routes) => all.extend(routes.into_iter().filter(|route| route.table == table)),
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}

impl Socket {
    /// The index of the interface through which packets to an address leave, if there is a way to it.
    pub fn device_towards(&mut self, address: IpAddr) -> Result<Option<u32>> {
        let ask = |out: &mut Writer| {
            let host = IpNet::from(address);
            let family = if host.addr().is_ipv4() {
                family::IPV4
            } else {
                family::IPV6
            };
            out.raw(&[family, host.prefix_len(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            write_address(out, libc::RTA_DST, address);
        };
        let read = |message: &Message<'_>| {
            let rest = message.payload.get(header::ROUTE..)?;
            let device = attributes(rest).find(|attribute| attribute.kind == libc::RTA_OIF)?;
            read_number(device)
        };
        match self.get(libc::RTM_GETROUTE, ask, read) {
            Err(error)
                if [libc::ENETUNREACH, libc::EHOSTUNREACH]
                    .map(Some)
                    .contains(&error.errno()) =>
            {
                Ok(None)
            }
            found => found,
        }
    }
}

fn write(out: &mut Writer, route: &Route) {
    let (family, scope) = match route.destination {
        IpNet::V4(_) => (family::IPV4, route.scope),
        IpNet::V6(_) => (family::IPV6, Scope::UNIVERSE),
    };
    out.raw(&[
        family,
        route.destination.prefix_len(),
        0,
        route.service_type,
        TABLE_IN_ATTRIBUTE,
        route.protocol.0,
        scope.0,
        route.kind.number(),
    ]);
    let flags = if route.on_link {
        route_flag::ON_LINK
    } else {
        0
    };
    out.raw(&flags.to_ne_bytes());
    out.bytes(libc::RTA_TABLE, &route.table.to_ne_bytes());
    write_address(out, libc::RTA_DST, route.destination.trunc().addr());
    if let Some(device) = route.device {
        out.bytes(libc::RTA_OIF, &device.to_ne_bytes());
    }
    if let Some(gateway) = route.gateway {
        write_address(out, libc::RTA_GATEWAY, gateway);
    }
    if let Some(source) = route.source {
        write_address(out, libc::RTA_PREFSRC, source);
    }
    if route.metric != 0 {
        out.bytes(libc::RTA_PRIORITY, &route.metric.to_ne_bytes());
    }
    if let Some(mtu) = route.mtu {
        out.nest(libc::RTA_METRICS, |out| {
            out.bytes(MTU, &mtu.to_ne_bytes());
        });
    }
}

/// The route that a message tells of, if it is one.
pub(crate) fn read_route(message: &Message<'_>) -> Option<Route> {
    if ![libc::RTM_NEWROUTE, libc::RTM_DELROUTE].contains(&message.kind) {
        return None;
    }
    let (header, rest) = message.payload.split_first_chunk::<{ header::ROUTE }>()?;
    let [
        family,
        length,
        _,
        service_type,
        table,
        protocol,
        scope,
        kind,
        flags @ ..,
    ] = *header;
    let flags = u32::from_ne_bytes(flags);
    let all_zero = match family {
        family::IPV4 => IpAddr::from([0; 4]),
        family::IPV6 => IpAddr::from([0; 16]),
        _ => return None,
    };
    if flags & route_flag::CLONED != 0 {
        return None;
    }
    let mut destination = all_zero;
    let mut route = Route {
        table: u32::from(table),
        destination: IpNet::new(all_zero, 0).ok()?,
        service_type,
        metric: 0,
        kind: Kind::from_number(kind),
        protocol: Protocol(protocol),
        scope: Scope(scope),
        device: None,
        gateway: None,
        on_link: flags & route_flag::ON_LINK != 0,
        source: None,
        mtu: None,
        is_multipath: false,
    };
    for attribute in attributes(rest) {
        match attribute.kind {
            libc::RTA_DST => destination = read_address(attribute)?,
            libc::RTA_TABLE => route.table = read_number(attribute)?,
            libc::RTA_OIF => route.device = read_number(attribute),
            libc::RTA_GATEWAY => route.gateway = read_address(attribute),
            libc::RTA_PREFSRC => route.source = read_address(attribute),
            libc::RTA_PRIORITY => route.metric = read_number(attribute)?,
            libc::RTA_METRICS => {
                let mtu = attribute.nested().find(|metric| metric.kind == MTU);
                route.mtu = mtu.and_then(read_number);
            }
            libc::RTA_VIA => route.gateway = attribute.value.get(2..).and_then(address),
            libc::RTA_MULTIPATH => route.is_multipath = true,
            _ => {}
        }
    }
    route.destination = IpNet::new(destination, length).ok()?;
    Some(route)
}

pub(crate) fn write_address(out: &mut Writer, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.bytes(kind, &address.octets()),
        IpAddr::V6(address) => out.bytes(kind, &address.octets()),
    }
}

pub(crate) fn read_address(attribute: Attribute<'_>) -> Option<IpAddr> {
    address(attribute.value)
}

pub(crate) fn read_number(attribute: Attribute<'_>) -> Option<u32> {
    attribute.value.try_into().ok().map(u32::from_ne_bytes)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(bytes.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// What a request asks for, for error messages.
pub(super) fn describe(request: &[u8]) -> String {
    let Some(message) = messages(request).next() else {
        return "do an unknown operation".to_owned();
    };
    let unknown = || format!("do operation {}", message.kind);
    match message.kind {
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
            let verb = match message.kind {
                libc::RTM_DELROUTE => "delete",
                _ if message.flags & flag::REPLACE != 0 => "replace",
                _ => "add",
            };
            read_route(&message).map_or_else(unknown, |route| format!("{verb} the route {route}"))
        }
        libc::RTM_GETROUTE => "list routes".to_owned(),
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => {
            let verb = if message.kind == libc::RTM_DELNEIGH {
                "delete"
            } else {
                "set"
            };
            let neighbour = neighbour::read(&message).map(|entry| format!("neighbour {entry}"));
            let forwarding = || Some(format!("tunnel entry {}", forwarding::read(&message)?));
            let entry = neighbour.or_else(forwarding);
            entry.map_or_else(unknown, |entry| format!("{verb} the {entry}"))
        }
        libc::RTM_GETNEIGH => "list neighbours".to_owned(),
        _ => link::describe(&message)
            .or_else(|| qdisc::describe(&message))
            .or_else(|| conntrack::describe(&message))
            .unwrap_or_else(unknown),
    }
}
