//! What Calico's datastore is told before any node is moved: the pool, the tunnel's numbers, the blocks and the tunnel end of
//! each node.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::felix_configuration::FelixConfigurationSpec;
use tortie_api::ip_pool::{IpipMode, VxlanMode};
use tortie_api::node::NodeBgpSpec;
use tortie_api::{FelixConfiguration, IpPool, Node, Resource};
use tortie_client::Client;
use tortie_ipam::{AssignIp, Ipam, Owner, attribute};
use tortie_store::{Error as StoreError, Key, Kind, Precondition};

use super::migration::Error;
use super::settings::{Settings, Subnet};
use super::vtep::Vtep;

const FELIX: &str = "default";

/// Calico's datastore.
#[derive(Clone)]
pub(super) struct Addresses {
    client: Client,
    ipam: Arc<Ipam>,
}

impl Addresses {
    pub(super) fn new(client: Client) -> Self {
        let ipam = Arc::new(Ipam::new(Arc::clone(client.store())));
        Self { client, ipam }
    }

    /// Keeps agents from making tunnels, or lets pools decide about that.
    pub(super) async fn set_vxlan(&self, is_enabled: Option<bool>) -> Result<(), Error> {
        self.change_felix(|spec| spec.vxlan_enabled = is_enabled)
            .await
    }

    /// Makes the pools of all pods, and gives Calico's tunnel the numbers of flannel's.
    pub(super) async fn prepare(&self, settings: &Settings, subnet: &Subnet) -> Result<(), Error> {
        let size = settings.subnet_length.max(settings.block_size);
        self.ensure_pool(subnet.network, size, subnet, settings)
            .await?;
        if let Some(network) = subnet.network_v6 {
            let size = settings.subnet_length_v6.max(settings.block_size_v6);
            self.ensure_pool(network, size, subnet, settings).await?;
        }
        let (vni, port, mtu) = (settings.vni, settings.port, subnet.mtu);
        self.change_felix(|spec| {
            spec.vxlan_vni = Some(vni);
            spec.vxlan_port = Some(port);
            spec.vxlan_mtu = Some(mtu);
        })
        .await
    }

    async fn ensure_pool(
        &self,
        network: IpNet,
        block_size: u8,
        subnet: &Subnet,
        settings: &Settings,
    ) -> Result<(), Error> {
        let version = if network.addr().is_ipv4() { 4 } else { 6 };
        let name = format!("default-ipv{version}-ippool");
        let wanted = pool(&name, network, block_size, subnet.masquerades);
        let key = Key::global(Kind::IpPool, &name);
        let found = match self.client.get(&key).await {
            Ok(Resource::IpPool(found)) => Some(*found),
            Ok(_) | Err(StoreError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        match found {
            // Canal makes one without VXLAN, which nobody has addresses from.
            Some(found)
                if settings.is_canal() && found.spec.vxlan_mode != Some(VxlanMode::Always) =>
            {
                self.client.delete(&key, &Precondition::default()).await?;
            }
            Some(found) => return check_pool(&found, &wanted),
            None => {}
        }
        self.client.create(wanted.into()).await?;
        tracing::info!(pool = name, %network, block_size, "Made the pool");
        Ok(())
    }

    async fn change_felix(
        &self,
        change: impl Fn(&mut FelixConfigurationSpec),
    ) -> Result<(), Error> {
        let new = FelixConfiguration::new("", FELIX, FelixConfigurationSpec::default());
        let written = self
            .client
            .modify_or_create(new, |felix: &mut FelixConfiguration| {
                change(&mut felix.spec);
                Ok::<_, Error>(())
            });
        written.await.map(drop)
    }

    /// Gives a node the blocks of its pods, and its end of the tunnel.
    pub(super) async fn take_over(&self, node: &str, vtep: &Vtep) -> Result<(), Error> {
        let owner = Owner::host(node);
        let claimed = self
            .ipam
            .claim_affinity(vtep.network.into(), &owner)
            .await?;
        tracing::info!(
            node,
            blocks = claimed.claimed.len(),
            "Blocks claimed for the node"
        );
        self.assign_tunnel(node, vtep).await?;
        let key = Key::global(Kind::Node, node);
        let written = self.client.modify(&key, |node: &mut Node| {
            node.spec.ipv4_vxlan_tunnel_addr = vtep.address.to_string();
            vtep.mac.clone_into(&mut node.spec.vxlan_tunnel_mac_addr);
            let bgp = node.spec.bgp.get_or_insert_with(NodeBgpSpec::default);
            bgp.ipv4_address = IpNet::from(vtep.public).to_string();
            Ok::<_, Error>(())
        });
        written.await.map(drop)
    }

    async fn assign_tunnel(&self, node: &str, vtep: &Vtep) -> Result<(), Error> {
        let address = IpAddr::from(vtep.address);
        let facts = [
            (attribute::NODE, node),
            (attribute::TYPE, attribute::VXLAN_TUNNEL),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = AssignIp {
            handle: Some(format!("vxlan-tunnel-addr-{node}")),
            attributes: facts.clone().into(),
            ..AssignIp::on(node, address)
        };
        match self.ipam.assign_ip(&request).await {
            Ok(()) => Ok(()),
            // By the process before this one; or by somebody else, which cannot be put right here.
            Err(tortie_ipam::Error::AlreadyAssigned(_)) => {
                let holder = self.ipam.assignment(address).await?;
                let is_ours = facts
                    .iter()
                    .all(|(name, value)| holder.attributes.get(name) == Some(value));
                if is_ours {
                    Ok(())
                } else {
                    Err(Error::Occupied(address))
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn pool(name: &str, network: IpNet, block_size: u8, masquerades: bool) -> IpPool {
    let mut pool = IpPool::default();
    name.clone_into(&mut pool.metadata.name);
    pool.spec.cidr = network.to_string();
    pool.spec.block_size = block_size.into();
    pool.spec.nat_outgoing = masquerades;
    pool.spec.ipip_mode = Some(IpipMode::Never);
    pool.spec.vxlan_mode = Some(VxlanMode::Always);
    pool
}

/// A pool that is there must be just like the one that would be made.
fn check_pool(found: &IpPool, wanted: &IpPool) -> Result<(), Error> {
    let shape = |pool: &IpPool| {
        let spec = &pool.spec;
        (
            spec.cidr.clone(),
            spec.block_size,
            spec.nat_outgoing,
            spec.vxlan_mode,
        )
    };
    if shape(found) == shape(wanted) {
        return Ok(());
    }
    let text = |pool: &IpPool| {
        let (cidr, size, nat, vxlan) = shape(pool);
        format!("cidr {cidr}, blockSize {size}, natOutgoing {nat}, vxlanMode {vxlan:?}")
    };
    Err(Error::OtherPool {
        pool: found.metadata.name.clone(),
        found: text(found),
        wanted: text(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_there_must_fit() {
        let network = "10.244.0.0/16".parse().unwrap();
        let wanted = pool("default-ipv4-ippool", network, 26, true);
        assert!(check_pool(&wanted, &wanted).is_ok());
        let mut other = wanted.clone();
        other.spec.nat_outgoing = false;
        let message = check_pool(&other, &wanted).unwrap_err().to_string();
        assert!(message.contains("natOutgoing false"), "{message}");
    }
}
