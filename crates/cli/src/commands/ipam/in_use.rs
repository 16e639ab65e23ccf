//! Who lives in the cluster, as the datastore and Kubernetes say.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use tortie_api::net::{Cidr, parse_cidr_or_ip};
use tortie_api::{Kind, Node, Resource, WorkloadEndpoint};
use tortie_controllers::list_machines;
use tortie_ipam::report::{InUse, Workload};
use tortie_store::Query;

use super::Addresses;

impl Addresses {
    /// Who lives in the cluster.
    pub(super) async fn in_use(&self) -> Result<InUse> {
        let (workloads, nodes) = (Query::all(Kind::WorkloadEndpoint), Query::all(Kind::Node));
        let (workloads, nodes, services, machines) = futures::try_join!(
            async { Ok(self.client.list(&workloads).await?) },
            async { Ok(self.client.list(&nodes).await?) },
            self.services(),
            async { Ok(self.machines().await) },
        )?;
        if let Some(invalid) = workloads.invalid.iter().chain(&nodes.invalid).next() {
            // Whoever cannot be read may use any address.
            anyhow::bail!(
                "{} cannot be read, so that it is not known which addresses it uses: {}",
                invalid.key,
                invalid.reason
            );
        }
        let workloads = workloads.items.iter().filter_map(|item| match item {
            Resource::WorkloadEndpoint(endpoint) => Some(workload(endpoint)),
            _ => None,
        });
        let nodes = nodes.items.iter().filter_map(|item| match item {
            Resource::Node(node) => Some((node.metadata.name.clone(), addresses_of(node))),
            _ => None,
        });
        Ok(InUse {
            workloads: Some(workloads.collect()),
            nodes: Some(nodes.collect::<BTreeMap<_, _>>()),
            services,
            machines,
        })
    }

    /// The virtual machines; none if nobody can be asked.
    async fn machines(&self) -> Option<BTreeSet<(String, String)>> {
        list_machines(self.cluster.as_ref()?).await
    }

    /// The addresses of load balancers; none if nobody can be asked.
    async fn services(&self) -> Result<Option<BTreeSet<IpAddr>>> {
        let Some(cluster) = &self.cluster else {
            return Ok(None);
        };
        let services: Api<Service> = Api::all(cluster.clone());
        let list = services
            .list(&ListParams::default())
            .await
            .context("services of the cluster")?;
        let ingresses = list.items.into_iter().filter_map(|service| {
            let status = service.status?.load_balancer?;
            status.ingress
        });
        let addresses = ingresses
            .flatten()
            .filter_map(|ingress| ingress.ip?.parse().ok());
        Ok(Some(addresses.collect()))
    }
}

fn workload(endpoint: &WorkloadEndpoint) -> Workload {
    let spec = &endpoint.spec;
    let names = [&spec.pod, &spec.workload, &spec.container_id];
    let name = names.into_iter().find(|name| !name.is_empty());
    Workload {
        namespace: endpoint.metadata.namespace.clone(),
        name: name.unwrap_or(&endpoint.metadata.name).clone(),
        node: spec.node.clone(),
        addresses: spec
            .ip_networks
            .iter()
            .filter_map(|net| address(net))
            .collect(),
    }
}

/// The addresses that a node has from pools: those of its tunnel devices.
fn addresses_of(node: &Node) -> BTreeSet<IpAddr> {
    let spec = &node.spec;
    let ipip = spec.bgp.iter().map(|bgp| &bgp.ipv4_ipip_tunnel_addr);
    let wireguard = spec.wireguard.iter().flat_map(|wireguard| {
        [
            &wireguard.interface_ipv4_address,
            &wireguard.interface_ipv6_address,
        ]
    });
    let vxlan = [&spec.ipv4_vxlan_tunnel_addr, &spec.ipv6_vxlan_tunnel_addr];
    let texts = vxlan.into_iter().chain(ipip).chain(wireguard);
    texts.filter_map(|text| address(text)).collect()
}

fn address(text: &str) -> Option<IpAddr> {
    parse_cidr_or_ip(text).map(Cidr::ip)
}
