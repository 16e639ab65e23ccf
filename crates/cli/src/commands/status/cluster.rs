//! What the datastore says of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use futures::future::join_all;
use serde::Serialize;
use tortie_agent::Problem;
use tortie_api::asks_for_bgp::asks_for_bgp;
use tortie_api::calico_node_status::BgpDaemonState;
use tortie_api::{CalicoNodeStatus, ClusterInformation, Kind, Resource};
use tortie_client::Client;
use tortie_client::connect::Target;
use tortie_convert::{Converted, Converter};
use tortie_engine::Update;
use tortie_ipam::{Ipam, PoolUtilization};
use tortie_store::{Error, List, Query};

use super::problem;
use crate::commands::report;
use crate::config::open_target;

/// Kinds of which nothing is said but how full pools are.
const IPAM_KINDS: [Kind; 3] = [Kind::BlockAffinity, Kind::IpamBlock, Kind::IpamHandle];

/// What the datastore says of the cluster.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cluster {
    /// Its identity.
    pub(super) guid: String,
    /// The version that last initialised the datastore.
    pub(super) version: String,
    /// Whether agents may act on what the datastore says.
    pub(super) ready: bool,
    pub(super) nodes: Vec<String>,
    /// How many objects there are of each kind.
    pub(super) objects: BTreeMap<&'static str, usize>,
    /// How full the pools are.
    pub(super) pools: Vec<Pool>,
    /// An object that asks for BGP, if there is one.
    #[serde(skip)]
    pub(super) asking: Option<String>,
    #[serde(skip)]
    problems: Vec<Problem>,
    #[serde(skip)]
    parameters: Vec<Update>,
}

/// How full a pool is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) cidr: String,
    pub(super) in_use: u128,
    pub(super) capacity: u128,
    #[serde(skip)]
    available: u128,
}

/// Reads the datastore; what of it cannot be read is a problem of the cluster.
pub(super) async fn read(target: &Target) -> Result<Cluster> {
    let client = open_target(target).await?.client;
    let kinds = Kind::ALL.iter().filter(|kind| !IPAM_KINDS.contains(kind));
    let queries: Vec<Query> = kinds.copied().map(Query::all).collect();
    let lists = join_all(queries.iter().map(|query| client.list(query))).await;
    let mut cluster = Cluster {
        ready: true,
        ..Cluster::default()
    };
    let mut converter = Converter::new();
    for (query, list) in queries.iter().zip(lists) {
        match list {
            Ok(list) => cluster.take(query.kind, &list, &mut converter),
            // If it answers nobody, that is all there is to say.
            Err(error) if error.is_retryable() => return Err(error.into()),
            Err(Error::Unsupported { .. }) => {}
            Err(error) => {
                let reason = report::causes(&error.into());
                cluster.add_problem(query.kind.plural(), "", &reason);
            }
        }
    }
    cluster.take_pools(&client).await;
    Ok(cluster)
}

impl Cluster {
    /// What is wrong.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.problems.iter().cloned()
    }

    /// What it says about the parameters of agents.
    pub(super) fn parameters(&self) -> &[Update] {
        &self.parameters
    }

    pub(super) fn count(&self, kind: Kind) -> usize {
        self.objects.get(kind.as_str()).copied().unwrap_or_default()
    }

    fn add_problem(&mut self, what: &str, name: &str, reason: &str) {
        self.problems.push(problem(what, name, reason));
    }

    fn take(&mut self, kind: Kind, list: &List, converter: &mut Converter) {
        for invalid in &list.invalid {
            let reason = format!("cannot be read: {}", invalid.reason);
            self.add_problem(&invalid.key.to_string(), "", &reason);
        }
        if !list.items.is_empty() {
            self.objects.insert(kind.as_str(), list.items.len());
        }
        for resource in &list.items {
            let Converted {
                updates, problems, ..
            } = converter.set(resource);
            for found in problems {
                let reason = format!("is not used, or not as a whole: {}", found.problem);
                self.add_problem(&found.object, "", &reason);
            }
            if asks_for_bgp(resource) {
                self.asking.get_or_insert_with(|| resource.id());
            }
            match resource {
                Resource::ClusterInformation(information) => self.take_information(information),
                Resource::Node(node) => self.nodes.push(node.metadata.name.clone()),
                Resource::CalicoNodeStatus(status) => self.take_daemons(status),
                Resource::FelixConfiguration(_) => self.parameters.extend(updates),
                _ => {}
            }
        }
    }

    fn take_information(&mut self, information: &ClusterInformation) {
        let spec = &information.spec;
        self.guid.clone_from(&spec.cluster_guid);
        self.version.clone_from(&spec.calico_version);
        if spec.datastore_ready == Some(false) {
            self.ready = false;
            let reason = "datastoreReady is false: agents and controllers change nothing until `tortie datastore \
                          migrate unlock`";
            self.add_problem("ClusterInformation(default)", "", reason);
        }
    }

    fn take_daemons(&mut self, status: &CalicoNodeStatus) {
        let agent = &status.status.agent;
        for (family, daemon) in [("IPv4", &agent.bird_v4), ("IPv6", &agent.bird_v6)] {
            if daemon.state == Some(BgpDaemonState::NotReady) {
                let reason = format!(
                    "the BGP daemon of node {} for {family} is not ready",
                    status.spec.node
                );
                self.add_problem(&Resource::from(status.clone()).id(), "", &reason);
            }
        }
    }

    async fn take_pools(&mut self, client: &Client) {
        match Ipam::new(Arc::clone(client.store())).utilization(&[]).await {
            Ok(pools) => self.pools = pools.into_iter().filter_map(pool).collect(),
            Err(error) => {
                let reason = report::causes(&error.into());
                self.add_problem("addresses", "", &reason);
            }
        }
        let full = self.pools.iter().filter(|pool| pool.available == 0);
        let full: Vec<String> = full.map(|pool| format!("IPPool({})", pool.name)).collect();
        for pool in full {
            self.add_problem(&pool, "", "all of its addresses are in use or reserved");
        }
    }
}

fn pool(usage: PoolUtilization) -> Option<Pool> {
    (usage.name != PoolUtilization::ORPHANED).then(|| Pool {
        name: usage.name,
        cidr: usage.net.to_string(),
        in_use: usage.in_use,
        capacity: usage.capacity,
        available: usage.available,
    })
}
