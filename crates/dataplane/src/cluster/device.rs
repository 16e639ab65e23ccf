//! Tunnel devices, made and kept as they should be.

use ipnet::IpNet;
use tortie_kernel::link::{Link, Mac, Vxlan};
use tortie_kernel::route::{self, Socket};

/// A VXLAN device as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VxlanDevice {
    pub(super) name: &'static str,
    pub(super) mac: Mac,
    pub(super) mtu: u32,
    pub(super) address: IpNet,
    pub(super) vxlan: Vxlan,
}

impl VxlanDevice {
    /// Makes the device so. Gives its number.
    pub(super) fn ensure(&self, socket: &mut Socket) -> route::Result<u32> {
        let present = socket.vxlan(self.name)?;
        let link = match present {
            Some((link, vxlan)) if vxlan == self.vxlan && link.mac == Some(self.mac) => link,
            _ => self.create(socket)?,
        };
        settle(socket, &link, self.mtu, Some(self.address))?;
        Ok(link.index)
    }

    fn create(&self, socket: &mut Socket) -> route::Result<Link> {
        remove(socket, self.name)?;
        tracing::info!(device = self.name, "Making the tunnel device");
        socket.execute(|batch| {
            batch.create_vxlan(self.name, self.mac, self.mtu, &self.vxlan);
        })?;
        socket.link(self.name)?.ok_or(route::Error::AnswersLost)
    }
}

/// Makes the IPIP device, which exists once in each network namespace. Gives its number.
pub(super) fn ensure_ipip(
    socket: &mut Socket,
    name: &str,
    mtu: u32,
    address: Option<IpNet>,
) -> route::Result<u32> {
    let mut link = socket.link(name)?;
    if link.is_none() {
        socket.execute(|batch| batch.create_ipip(name, mtu))?;
        link = socket.link(name)?;
    }
    let link = link.ok_or(route::Error::AnswersLost)?;
    settle(socket, &link, mtu, address)?;
    Ok(link.index)
}

/// Removes a device if it is there.
pub(super) fn remove(socket: &mut Socket, name: &str) -> route::Result<()> {
    let Some(link) = socket.link(name)? else {
        return Ok(());
    };
    tracing::info!(device = name, "Removing the tunnel device");
    socket.execute(|batch| batch.delete_link(link.index))
}

/// Takes a device's addresses away.
pub(super) fn remove_addresses(socket: &mut Socket, name: &str) -> route::Result<()> {
    let Some(link) = socket.link(name)? else {
        return Ok(());
    };
    socket.execute(|batch| {
        for address in &link.addresses {
            batch.delete_address(link.index, *address);
        }
    })
}

/// Gives a device its size of packets and its one address, and takes it up.
fn settle(socket: &mut Socket, link: &Link, mtu: u32, address: Option<IpNet>) -> route::Result<()> {
    socket.execute(|batch| {
        if link.mtu != mtu {
            batch.set_link_mtu(link.index, mtu);
        }
        let (kept, others): (Vec<&IpNet>, Vec<&IpNet>) = link
            .addresses
            .iter()
            .filter(|net| !is_link_local(net))
            .partition(|net| Some(**net) == address);
        for other in others {
            batch.delete_address(link.index, *other);
        }
        if let Some(address) = address.filter(|_| kept.is_empty()) {
            batch.add_address(link.index, address);
        }
        if !link.is_up {
            batch.set_link_up(link.index, true);
        }
    })
}

fn is_link_local(net: &IpNet) -> bool {
    matches!(net, IpNet::V6(net) if net.addr().is_unicast_link_local())
}
