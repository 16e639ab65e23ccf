//! What people mean by FROM and TO.

use std::net::IpAddr;

use anyhow::{Result, anyhow, bail};
use tortie_api::net::parse_ip;
use tortie_api::scalar::Protocol;
use tortie_engine::input::EndpointPort;
use tortie_engine::verdict::{End, EndpointKey};

use crate::directory::{Directory, Host, HostInterface, Owner, Workload};
use crate::spelling::{all_of, any_of, did_you_mean, nearest};

/// What hosts start with.
const HOST: &str = "host/";

/// One side of a connection, as it was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Party<'d> {
    pub(crate) who: Who<'d>,
    /// The address, where that was asked for.
    address: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Who<'d> {
    /// A workload with a network of its own.
    Workload(&'d Workload),
    /// A node.
    Host(&'d Host),
    /// A certain host endpoint of a node.
    HostInterface(&'d Host, &'d HostInterface),
    /// Nobody that is known.
    Outside,
}

// === impl Directory ===

impl Directory {
    /// Finds who was asked for; the error suggests what is near.
    pub fn find(&self, asked: &str) -> Result<Party<'_>> {
        if let Some(address) = parse_ip(asked) {
            let who = self.at(address)?;
            return Ok(Party {
                who,
                address: Some(address),
            });
        }
        let who = match asked.strip_prefix(HOST) {
            Some(name) => self.host(asked, name)?,
            None => self.pod(asked)?,
        };
        Ok(Party { who, address: None })
    }

    fn at(&self, address: IpAddr) -> Result<Who<'_>> {
        match self.owners(address) {
            [] => Ok(Who::Outside),
            [Owner::Workload(place)] => Ok(Who::Workload(&self.workloads[*place])),
            [Owner::Host(name)] => Ok(Who::Host(&self.hosts[name])),
            several => {
                let name = |owner: &Owner| match owner {
                    Owner::Workload(place) => self.workloads[*place].key.workload.clone(),
                    Owner::Host(name) => format!("{HOST}{name}"),
                };
                let names: Vec<String> = several.iter().map(name).collect();
                bail!(
                    "`{address}` is ambiguous: {} have this address",
                    all_of(&names)
                )
            }
        }
    }

    fn pod(&self, asked: &str) -> Result<Who<'_>> {
        if let Some(node) = self.host_pods.get(asked) {
            return Ok(Who::Host(&self.hosts[node]));
        }
        let parts: Vec<&str> = asked.split('/').collect();
        let (workload, interface) = match parts[..] {
            [_, _] => (asked.to_owned(), None),
            // How other endpoints than pods are shown.
            [orchestrator, namespace, workload, endpoint] => (
                format!("{namespace}/{workload}"),
                Some((orchestrator, endpoint)),
            ),
            _ => return Err(self.not_a_party(asked)),
        };
        let places = self.by_name.get(&workload).map_or(&[][..], Vec::as_slice);
        let all = places.iter().map(|place| &self.workloads[*place]);
        let all: Vec<&Workload> = all
            .filter(|Workload { key, .. }| {
                interface.is_none_or(|wanted| wanted == (&*key.orchestrator, &*key.endpoint))
            })
            .collect();
        let running: Vec<&Workload> = all
            .iter()
            .filter(|workload| !workload.addresses.is_empty())
            .copied()
            .collect();
        match running[..] {
            [workload] => Ok(Who::Workload(workload)),
            [] if all.is_empty() => {
                let (namespace, pod) = workload.split_once('/').unwrap_or(("", &workload));
                Err(self.no_pod(namespace, pod))
            }
            [] => bail!("pod `{asked}` has no address: it is finished, or not running yet"),
            _ => {
                let addresses = running.iter().flat_map(|workload| &workload.addresses);
                let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
                bail!(
                    "`{asked}` is ambiguous: it has {} interfaces; ask for {}",
                    running.len(),
                    any_of(&addresses)
                )
            }
        }
    }

    fn host(&self, asked: &str, name: &str) -> Result<Who<'_>> {
        let node = self.hosts.get(name);
        let interface = self.host_endpoints.get(name).and_then(|node| {
            let host = self.hosts.get(node)?;
            let mut endpoints = host.endpoints.iter();
            Some((host, endpoints.find(|held| held.key.name == name)?))
        });
        match (node, interface) {
            (Some(node), Some((host, _))) if node.name != host.name => bail!(
                "`{asked}` is ambiguous: it is a node, and a host endpoint of node `{}`; ask for an address",
                host.name
            ),
            (_, Some((host, interface))) => Ok(Who::HostInterface(host, interface)),
            (Some(node), None) => Ok(Who::Host(node)),
            // There may be a namespace `host`.
            (None, None) if self.by_name.contains_key(asked) => self.pod(asked),
            (None, None) => Err(self.no_host(name)),
        }
    }
}

// === impl Party ===

impl Party<'_> {
    /// Its address of an IP version.
    pub(crate) fn address(&self, is_ipv4: bool) -> Option<IpAddr> {
        let of_version = |address: &&IpAddr| address.is_ipv4() == is_ipv4;
        if let Some(address) = &self.address {
            return Some(address).filter(of_version).copied();
        }
        match self.who {
            Who::Workload(workload) => workload.addresses.iter().find(of_version).copied(),
            Who::Host(host) => host.addresses.iter().find(of_version).copied(),
            Who::HostInterface(host, interface) => {
                let own = interface.expected.iter();
                own.chain(&host.addresses).find(of_version).copied()
            }
            Who::Outside => None,
        }
    }

    /// The end of a connection that it is with one of its addresses.
    pub(crate) fn end(&self, address: IpAddr) -> Result<End> {
        let endpoint = self.endpoint(Some(address))?;
        Ok(End { address, endpoint })
    }

    /// Its endpoint, if policy can apply to it.
    pub fn endpoint(&self, address: Option<IpAddr>) -> Result<Option<EndpointKey>> {
        let host_key = |interface: &HostInterface| EndpointKey::Host(interface.key.clone());
        match self.who {
            Who::Workload(workload) => Ok(Some(EndpointKey::Workload(workload.key.clone()))),
            Who::Host(host) => host
                .interface(address.or(self.address))
                .map(|found| found.map(host_key)),
            Who::HostInterface(_, interface) => Ok(Some(host_key(interface))),
            Who::Outside => Ok(None),
        }
    }
}

impl<'d> Party<'d> {
    /// The number and protocol of a port with a name, as the endpoint calls it.
    pub(crate) fn named_port(
        &self,
        asked: &str,
        name: &str,
        protocol: Option<&Protocol>,
    ) -> Result<(Protocol, u16)> {
        let ports: &[EndpointPort] = match self.who {
            Who::Workload(workload) => &workload.ports,
            Who::HostInterface(_, interface) => &interface.ports,
            Who::Host(_) | Who::Outside => &[],
        };
        let is_meant = |port: &&EndpointPort| {
            port.name == name
                && protocol.is_none_or(|wanted| wanted.number() == port.protocol.number())
        };
        let found: Vec<&EndpointPort> = ports.iter().filter(is_meant).collect();
        match found[..] {
            [port] => Ok((port.protocol.clone(), port.port)),
            [] => {
                let names = ports.iter().map(|port| &*port.name);
                let near = nearest(name, names.clone());
                let has = match names.collect::<Vec<_>>().join(", ") {
                    all if all.is_empty() => "none with a name".to_owned(),
                    all => all,
                };
                bail!(
                    "`{asked}` has no port named `{name}`: it has {has}{}",
                    did_you_mean(&near)
                )
            }
            _ => bail!("`{asked}` has several ports named `{name}`; say which protocol is meant"),
        }
    }

    /// What it is called in answers.
    pub(crate) fn name(&self) -> Option<String> {
        match self.who {
            Who::Workload(workload) => {
                Some(EndpointKey::Workload(workload.key.clone()).to_string())
            }
            Who::Host(host) | Who::HostInterface(host, _) => Some(format!("{HOST}{}", host.name)),
            Who::Outside => None,
        }
    }

    /// The node that it is, or is on.
    pub(crate) fn node(&self) -> Option<&'d str> {
        match self.who {
            Who::Workload(workload) => Some(&workload.key.node),
            Who::Host(host) | Who::HostInterface(host, _) => Some(&host.name),
            Who::Outside => None,
        }
    }
}

// === impl Host ===

impl Host {
    /// The host endpoint that packets to and from an address pass.
    pub(crate) fn interface(&self, address: Option<IpAddr>) -> Result<Option<&HostInterface>> {
        let endpoints = &self.endpoints;
        let expected = endpoints
            .iter()
            .find(|held| address.is_some_and(|address| held.expected.contains(&address)));
        let found = expected.or_else(|| endpoints.iter().find(|held| held.is_all_interfaces));
        match (found, &endpoints[..]) {
            (Some(found), _) => Ok(Some(found)),
            (None, []) => Ok(None),
            (None, [only]) => Ok(Some(only)),
            (None, several) => {
                let names = several
                    .iter()
                    .map(|held| format!("{HOST}{}", held.key.name));
                let names: Vec<String> = names.collect();
                Err(anyhow!(
                    "node `{}` is ambiguous: it has {} host endpoints; ask for {}",
                    self.name,
                    several.len(),
                    any_of(&names)
                ))
            }
        }
    }
}
