//! What a resource selects, and what refers to it.

use std::sync::Arc;

use anyhow::Result;
use tortie_api::{IpPool, Kind, Resource};
use tortie_client::Client;
use tortie_client::connect::Connection;
use tortie_convert::policy_id;
use tortie_engine::verdict::{AppliedPolicy, EndpointKey};
use tortie_ipam::Ipam;
use tortie_store::Query;

use super::Section;
use super::world::{World, policy_name};

/// All that is to be said beside the resource itself. The world is made for the first that needs it.
pub(super) async fn of(
    resource: &Resource,
    connection: &Connection,
    world: &mut Option<World>,
) -> Result<Vec<Section>> {
    let client = &connection.client;
    let metadata = resource.metadata();
    let name = &metadata.name;
    if let Some(id) = policy_id(resource.kind(), &metadata.namespace, name) {
        let endpoints = load(world, connection).await?.endpoints_of(&id);
        return Ok(vec![endpoints_section("Applies to", &endpoints)]);
    }
    Ok(match resource {
        Resource::WorkloadEndpoint(_) | Resource::HostEndpoint(_) => {
            let policies = load(world, connection).await?.policies_of(resource);
            let lines = policies.iter().map(policy_line).collect();
            vec![section("Policies in order", lines)]
        }
        Resource::NetworkSet(_) | Resource::GlobalNetworkSet(_) => {
            let rules = load(world, connection).await?.rules_selecting(resource);
            vec![section("Selected by", rules)]
        }
        Resource::Profile(_) => {
            let endpoints = load(world, connection).await?.endpoints_with(name);
            vec![endpoints_section("Endpoints", &endpoints)]
        }
        Resource::Tier(_) => vec![section(
            "Policies in order",
            policies_of_tier(name, client).await?,
        )],
        Resource::IpPool(pool) => of_pool(pool, client).await?,
        Resource::Node(_) => of_node(name, client).await?,
        Resource::BgpFilter(_) => vec![section("Used by", peers_with(name, client).await?)],
        _ => Vec::new(),
    })
}

async fn load<'a>(world: &'a mut Option<World>, connection: &Connection) -> Result<&'a World> {
    Ok(match world {
        Some(world) => world,
        None => world.insert(World::load(connection).await?),
    })
}

fn section(title: &'static str, lines: Vec<String>) -> Section {
    Section { title, lines }
}

fn endpoints_section(title: &'static str, endpoints: &[EndpointKey]) -> Section {
    let line = |endpoint: &EndpointKey| match endpoint {
        EndpointKey::Workload(key) => {
            format!("{} ({} on node {})", key.workload, key.endpoint, key.node)
        }
        EndpointKey::Host(key) => format!("host endpoint {} (on node {})", key.name, key.node),
    };
    section(title, endpoints.iter().map(line).collect())
}

fn policy_line(policy: &AppliedPolicy) -> String {
    let directions = match (policy.ingress, policy.egress) {
        (true, true) => "ingress and egress",
        (true, false) => "ingress",
        (false, true) => "egress",
        (false, false) => "no direction",
    };
    let staged = if policy.staged { ", staged" } else { "" };
    format!(
        "{} in tier {} ({directions}{staged})",
        policy_name(&policy.id),
        policy.tier
    )
}

/// The policies of a tier, in the order in which they are asked.
async fn policies_of_tier(tier: &str, client: &Client) -> Result<Vec<String>> {
    let kinds = Kind::ALL.iter().filter(|kind| kind.is_tiered_policy());
    let mut found = Vec::new();
    for kind in kinds {
        for policy in client.list(&Query::all(*kind)).await?.items {
            let own = policy.tier().unwrap_or_default();
            let own = if own.is_empty() { "default" } else { own };
            if own == tier {
                let order = policy.to_value()["spec"]["order"].as_f64();
                found.push((order.unwrap_or(f64::INFINITY), policy.id()));
            }
        }
    }
    found.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
    let line = |(order, id): (f64, String)| {
        if order.is_finite() {
            format!("{id} (order {order})")
        } else {
            id
        }
    };
    Ok(found.into_iter().map(line).collect())
}

async fn of_pool(pool: &IpPool, client: &Client) -> Result<Vec<Section>> {
    let ipam = Ipam::new(Arc::clone(client.store()));
    let name = pool.metadata.name.clone();
    let usage = ipam.utilization(&[name]).await?;
    let Some(usage) = usage.first() else {
        return Ok(Vec::new());
    };
    let affinities = client.list(&Query::all(Kind::BlockAffinity)).await?.items;
    let holder = |cidr: &str| {
        let holder = affinities.iter().find_map(|one| match one {
            Resource::BlockAffinity(one) if one.spec.cidr == cidr => Some(&one.spec.node),
            _ => None,
        });
        holder.map_or("nobody's".to_owned(), |node| format!("of {node}"))
    };
    let blocks = usage.blocks.iter().map(|block| {
        let cidr = block.net.to_string();
        let (used, all) = (block.in_use, block.capacity);
        format!("{cidr}: {used} of {all} in use, {}", holder(&cidr))
    });
    let summary = format!(
        "{} of {} addresses in use, {} reserved, {} free",
        usage.in_use, usage.capacity, usage.reserved, usage.available
    );
    Ok(vec![
        section("Usage", vec![summary]),
        section("Blocks", blocks.collect()),
    ])
}

async fn of_node(node: &str, client: &Client) -> Result<Vec<Section>> {
    let affinities = client.store().list_affinities(node).await?.items;
    let blocks = affinities.iter().filter_map(|one| match one {
        Resource::BlockAffinity(one) => Some(one.spec.cidr.clone()),
        _ => None,
    });
    let mut endpoints = Vec::new();
    for kind in [Kind::WorkloadEndpoint, Kind::HostEndpoint] {
        for endpoint in client.list(&Query::all(kind)).await?.items {
            let (on, addresses) = match &endpoint {
                Resource::WorkloadEndpoint(one) => (&one.spec.node, &one.spec.ip_networks),
                Resource::HostEndpoint(one) => (&one.spec.node, &one.spec.expected_ips),
                _ => continue,
            };
            if on == node {
                endpoints.push(format!("{} {}", endpoint.id(), addresses.join(", ")));
            }
        }
    }
    Ok(vec![
        section("Blocks", blocks.collect()),
        section("Endpoints", endpoints),
    ])
}

async fn peers_with(filter: &str, client: &Client) -> Result<Vec<String>> {
    let peers = client.list(&Query::all(Kind::BgpPeer)).await?.items;
    let uses = |peer: &&Resource| match peer {
        Resource::BgpPeer(peer) => peer.spec.filters.iter().any(|one| one == filter),
        _ => false,
    };
    Ok(peers.iter().filter(uses).map(Resource::id).collect())
}
