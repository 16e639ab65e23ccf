//! Which connections a question means: one, or one to each pod behind a service.

use std::net::IpAddr;

use anyhow::{Result, anyhow, bail};
use tortie_api::names::IpVersion;
use tortie_api::net::parse_ip;
use tortie_api::scalar::Protocol;
use tortie_engine::verdict::{Flow, Translated};

use crate::connection::{Behind, Connection};
use crate::directory::{Directory, Host};
use crate::flow::{Port, Question};
use crate::party::{Party, Who};
use crate::route::{self, Way};
use crate::services::{Service, ServiceEndpoint, ServicePort};
use crate::spelling::{did_you_mean, nearest};

/// What services start with.
const SERVICE: &str = "svc/";

/// What a question means.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// One connection, or all that there can be between two ends.
    One(Box<Connection>),
    /// A connection with one of those that are behind a service.
    Service(Behind),
}

/// A service, and how it is reached.
struct Reached<'d> {
    service: &'d Service,
    ports: Vec<ServicePort>,
    /// The address that is connected to.
    address: Option<IpAddr>,
    /// The node, where one of its ports leads to the service.
    node: Option<&'d Host>,
}

impl Question {
    /// What it means.
    pub(crate) fn meaning(&self, directory: &Directory) -> Result<Meaning> {
        let from = directory.find_source(&self.from)?;
        if let Some(reached) = self.reached(directory)? {
            return self
                .behind(directory, &from, &reached)
                .map(Meaning::Service);
        }
        let to = directory.find(&self.to)?;
        let connection = self.one(directory, &from, &to)?;
        Ok(Meaning::One(Box::new(connection)))
    }

    fn one(&self, directory: &Directory, from: &Party<'_>, to: &Party<'_>) -> Result<Connection> {
        let (mut protocol, port) = match &self.port {
            Some(Port::Name(name)) => {
                let (protocol, port) = to.named_port(&self.to, name, self.protocol.as_ref())?;
                (Some(protocol), Some(port))
            }
            Some(Port::Number(number)) => (None, Some(*number)),
            None => (None, None),
        };
        self.check_ports(protocol.as_ref().or(self.protocol.as_ref()))?;
        let (source, destination) = self.addresses(from, to)?;
        let (asked, icmp) = self.icmp(source.is_ipv4())?;
        protocol = protocol.or(asked);
        let flow = Flow {
            source: from.end(source)?,
            destination: to.end(destination)?,
            protocol,
            source_port: self.source_port,
            destination_port: port,
            icmp,
        };
        let found = route::find(directory, (from, to), (source, destination), Way::Direct)?;
        Ok(Connection {
            to: self.to.clone(),
            flow,
            hops: found.hops,
            remarks: found.remarks,
        })
    }

    /// The service that the destination is, if it is one.
    fn reached<'d>(&self, directory: &'d Directory) -> Result<Option<Reached<'d>>> {
        let (service, address) = if let Some(address) = parse_ip(&self.to) {
            let is_known = !directory.owners(address).is_empty();
            let service = directory.service_at(address).filter(|_| !is_known);
            (service, service.map(|_| address))
        } else {
            (directory.named_service(&self.to)?, None)
        };
        if let Some(service) = service {
            return Ok(Some(Reached {
                service,
                ports: self.ports_of(service)?,
                address,
                node: None,
            }));
        }
        self.reached_by_node(directory)
    }

    /// The service that a port of a node leads to.
    fn reached_by_node<'d>(&self, directory: &'d Directory) -> Result<Option<Reached<'d>>> {
        let Some(Port::Number(number)) = self.port else {
            return Ok(None);
        };
        let protocol = self.protocol.as_ref().and_then(Protocol::number);
        let leads = |port: &&ServicePort| {
            port.node_port == Some(number)
                && protocol.is_none_or(|wanted| port.protocol.number() == Some(wanted))
        };
        let mut services = directory.services.iter();
        let found = services.find_map(|service| Some((service, service.ports.iter().find(leads)?)));
        let Some((service, port)) = found else {
            return Ok(None);
        };
        let party = directory.find(&self.to)?;
        let (Who::Host(node) | Who::HostInterface(node, _)) = party.who else {
            return Ok(None);
        };
        Ok(Some(Reached {
            service,
            ports: vec![port.clone()],
            address: parse_ip(&self.to),
            node: Some(node),
        }))
    }

    /// The ports of a service that are asked about; all if none is named.
    fn ports_of(&self, service: &Service) -> Result<Vec<ServicePort>> {
        let protocol = self.protocol.as_ref().and_then(Protocol::number);
        let mut ports = service.ports.clone();
        ports.retain(|port| {
            let is_protocol = protocol.is_none_or(|wanted| port.protocol.number() == Some(wanted));
            is_protocol
                && match &self.port {
                    None => true,
                    Some(Port::Number(number)) => port.number == *number,
                    Some(Port::Name(name)) => port.name == *name,
                }
        });
        if ports.is_empty() || self.icmp_type.is_some() {
            let wanted = match (&self.protocol, &self.port) {
                (Some(protocol), Some(port)) => format!("{protocol} port {port}"),
                (None, Some(port)) => format!("port {port}"),
                (Some(protocol), None) => format!("port of {protocol}"),
                (None, None) => "port to ask about".to_owned(),
            };
            bail!(
                "service `{}` has no {wanted}: it has {}",
                service.name,
                service.ports_text()
            );
        }
        Ok(ports)
    }

    fn behind(
        &self,
        directory: &Directory,
        from: &Party<'_>,
        reached: &Reached<'_>,
    ) -> Result<Behind> {
        let version = self.version_of(from, reached)?;
        let mut backends = Vec::new();
        let local = reached.node.filter(|_| reached.service.is_local);
        for port in &reached.ports {
            for endpoint in &reached.service.endpoints {
                let is_version = endpoint.address.is_ipv4() == (version == Some(IpVersion::V4));
                let target = endpoint.target(port).filter(|_| is_version);
                let Some(target) = target else { continue };
                let to = directory.find(&endpoint.address.to_string())?;
                if local.is_some_and(|node| to.node() != Some(&*node.name)) {
                    continue;
                }
                let backend = Backend {
                    endpoint,
                    to: &to,
                    port,
                    target,
                };
                backends.push(self.backend(directory, from, reached, &backend)?);
            }
        }
        let name = &reached.service.name;
        let nobody = match local {
            Some(node) => format!(
                "nothing behind service {name} is ready on node {}, and externalTrafficPolicy is Local",
                node.name
            ),
            None => format!("nothing behind service {name} is ready"),
        };
        let address = reached.node.map(|_| self.to.clone());
        let of_service = || {
            let mut addresses = reached.service.addresses.iter();
            let same = addresses.find(|own| own.is_ipv4() == (version == Some(IpVersion::V4)));
            reached.address.or(same.copied()).map(|own| own.to_string())
        };
        Ok(Behind {
            service: name.clone(),
            address: address.or_else(of_service),
            ports: reached.ports_text(),
            nobody: backends.is_empty().then_some(nobody),
            backends,
        })
    }

    fn backend(
        &self,
        directory: &Directory,
        from: &Party<'_>,
        reached: &Reached<'_>,
        backend: &Backend<'_>,
    ) -> Result<Connection> {
        let destination = backend.endpoint.address;
        let Some(source) = from.address(destination.is_ipv4()) else {
            bail!(
                "`{}` has no address of the version of {destination}",
                self.from
            );
        };
        let flow = Flow {
            source: from.end(source)?,
            destination: backend.to.end(destination)?,
            protocol: Some(backend.port.protocol.clone()),
            source_port: self.source_port,
            destination_port: Some(backend.target),
            icmp: None,
        };
        let service = reached.service;
        let way = match reached.node {
            Some(node) => {
                let own = |address: &&IpAddr| address.is_ipv4() == destination.is_ipv4();
                let asked = reached.address.or(node.addresses.iter().find(own).copied());
                let address = asked.ok_or_else(|| anyhow!("`{}` has no address", self.to))?;
                Way::Through {
                    node,
                    arrives_for: Translated {
                        address,
                        port: backend.port.node_port,
                    },
                }
            }
            None if service.is_headless => Way::Direct,
            None => {
                let mut own = service.addresses.iter();
                let own = own.find(|own| own.is_ipv4() == destination.is_ipv4());
                match reached.address.or(own.copied()) {
                    Some(address) => Way::AtOnce(Translated {
                        address,
                        port: Some(backend.port.number),
                    }),
                    None => Way::Direct,
                }
            }
        };
        let found = route::find(directory, (from, backend.to), (source, destination), way)?;
        let to = backend.to.name();
        Ok(Connection {
            to: to.unwrap_or_else(|| destination.to_string()),
            flow,
            hops: found.hops,
            remarks: found.remarks,
        })
    }

    /// The version of IP that both the client and what is behind a service have.
    fn version_of(&self, from: &Party<'_>, reached: &Reached<'_>) -> Result<Option<IpVersion>> {
        let is_usable = |version: &&IpVersion| {
            let is_ipv4 = **version == IpVersion::V4;
            let endpoints = &reached.service.endpoints;
            from.address(is_ipv4).is_some()
                && reached.address.is_none_or(|own| own.is_ipv4() == is_ipv4)
                && endpoints.iter().any(|one| one.address.is_ipv4() == is_ipv4)
        };
        Ok(self.versions()?.iter().find(is_usable).copied())
    }

    /// The addresses of the packet: IPv4 if both sides have it, unless the question says otherwise.
    fn addresses(&self, from: &Party<'_>, to: &Party<'_>) -> Result<(IpAddr, IpAddr)> {
        let versions = self.versions()?;
        let of = |party: &Party<'_>, version: &IpVersion| party.address(*version == IpVersion::V4);
        let both = |version: &IpVersion| of(from, version).zip(of(to, version));
        if let Some(found) = versions.iter().find_map(both) {
            return Ok(found);
        }
        for (asked, party) in [(&self.from, from), (&self.to, to)] {
            if versions.iter().all(|version| of(party, version).is_none()) {
                let version = match versions {
                    [IpVersion::V4] => "IPv4 address",
                    [IpVersion::V6] => "IPv6 address",
                    _ => "address",
                };
                bail!("`{asked}` has no {version}");
            }
        }
        let only = |party: &Party<'_>| match party.address(true) {
            Some(_) => "IPv4",
            None => "IPv6",
        };
        bail!(
            "`{}` has only {} and `{}` only {}, so no packet can go from one to the other",
            self.from,
            only(from),
            self.to,
            only(to)
        )
    }
}

impl Reached<'_> {
    /// The ports that clients connect to.
    fn ports_text(&self) -> String {
        let text = |port: &ServicePort| {
            let number = if self.node.is_some() {
                port.node_port.unwrap_or(port.number)
            } else {
                port.number
            };
            format!("{} port {number}", port.protocol)
        };
        let texts: Vec<String> = self.ports.iter().map(text).collect();
        texts.join(", ")
    }
}

/// One of those behind a service.
struct Backend<'a> {
    endpoint: &'a ServiceEndpoint,
    to: &'a Party<'a>,
    port: &'a ServicePort,
    target: u16,
}

impl Directory {
    /// Where a connection comes from, which no service can be.
    fn find_source(&self, asked: &str) -> Result<Party<'_>> {
        if asked.starts_with(SERVICE) {
            bail!("`{asked}` is a service, which connections go to; ask for one of its pods");
        }
        self.find(asked)
    }

    /// The service of a name, `svc/NAMESPACE/NAME` or `NAME.NAMESPACE`; none if it is not the name of one.
    fn named_service(&self, asked: &str) -> Result<Option<&Service>> {
        if let Some(name) = asked.strip_prefix(SERVICE) {
            // There may be a namespace `svc`.
            if name.split('/').count() != 2 && self.by_name.contains_key(asked) {
                return Ok(None);
            }
            return self
                .service(name)
                .map(Some)
                .ok_or_else(|| self.no_service(name));
        }
        if asked.contains('/') {
            return Ok(None);
        }
        let mut parts = asked.split('.');
        let (Some(name), Some(namespace), rest) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(None);
        };
        let name = format!("{namespace}/{name}");
        match (self.service(&name), rest) {
            (Some(service), None | Some("svc")) => Ok(Some(service)),
            (None, Some("svc")) => Err(self.no_service(&name)),
            _ => Ok(None),
        }
    }

    fn no_service(&self, name: &str) -> anyhow::Error {
        let known = self.services.iter().map(|service| &*service.name);
        let near = nearest(name, known);
        let near: Vec<String> = near.iter().map(|name| format!("{SERVICE}{name}")).collect();
        anyhow!("there is no service `{name}`{}", did_you_mean(&near))
    }
}
