//! Networks that several nodes are in.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::process::Command;

use ipnet::IpNet;
use tortie_kernel::route::{self, Socket};
use tortie_kernel::sysctl::Sysctl;

use super::error::{Result, cannot};
use super::namespace::Namespace;
use super::topology::Node;
use crate::command::{Output, run};

/// The last part of the router's addresses.
const ROUTER: u8 = 254;

/// Two or more networks with a router between them. Nodes of one network reach each other directly.
#[derive(Debug)]
pub struct Fabric {
    router: Namespace,
    nodes: u8,
}

impl Fabric {
    /// So many networks, each with IPv4 and IPv6.
    pub fn new(networks: u8) -> Result<Self> {
        let router = Namespace::new()?;
        router
            .run(|| {
                Sysctl::new("net/ipv4/ip_forward").write("1")?;
                Sysctl::new("net/ipv6/conf/all/forwarding").write("1")?;
                Sysctl::new("net/ipv6/conf/default/accept_dad").write("0")
            })?
            .map_err(cannot("let the router forward"))?;
        let fabric = Self { router, nodes: 0 };
        ip(&fabric.router, "link set lo up")?;
        for network in 0..networks {
            ip(
                &fabric.router,
                &format!("link add lan{network} type bridge"),
            )?;
            ip(&fabric.router, &format!("link set lan{network} up"))?;
            for address in addresses(network, ROUTER) {
                let command = format!("addr add {address} dev lan{network}");
                ip(&fabric.router, &command)?;
            }
        }
        Ok(fabric)
    }

    /// The namespace of the router, which is in all networks.
    pub fn router(&self) -> &Namespace {
        &self.router
    }

    /// Connects a node to a network, through its interface `eth0`. Gives its addresses there.
    pub fn join(&mut self, node: &mut Node, network: u8) -> Result<[IpNet; 2]> {
        self.nodes += 1;
        let port = format!("node{}", self.nodes);
        let namespace = node.namespace().clone();
        let create = || -> route::Result<()> {
            let mut socket = Socket::open()?;
            socket.execute(|batch| batch.create_veth(&port, "eth0", namespace.as_fd()))
        };
        self.router
            .run(create)?
            .map_err(cannot("connect a node to its network"))?;
        ip(
            &self.router,
            &format!("link set {port} master lan{network} up"),
        )?;
        let own = addresses(network, self.nodes);
        ip(&namespace, "link set eth0 up")?;
        for (address, gateway) in own.iter().zip(addresses(network, ROUTER)) {
            ip(&namespace, &format!("addr add {address} dev eth0"))?;
            let gateway = gateway.addr();
            ip(
                &namespace,
                &format!("route add default via {gateway} dev eth0"),
            )?;
        }
        Ok(own)
    }
}

/// Runs the program `ip` in a namespace.
fn ip(namespace: &Namespace, arguments: &str) -> Result<()> {
    let mut command = Command::new("ip");
    // Where an address does not tell the family, IPv4 would be meant.
    if arguments.contains(':') {
        command.arg("-6");
    }
    command.args(arguments.split(' '));
    let output = namespace.run(|| run(command, b""))?;
    let done = output.and_then(Output::into_stdout).map(drop);
    done.map_err(cannot(format!("change the network with ip {arguments}")))
}

fn addresses(network: u8, host: u8) -> [IpNet; 2] {
    let v4 = Ipv4Addr::new(172, 20, network, host);
    let v6 = Ipv6Addr::new(0xfd20, 0, 0, u16::from(network), 0, 0, 0, u16::from(host));
    [
        IpNet::new_assert(v4.into(), 24),
        IpNet::new_assert(v6.into(), 64),
    ]
}
