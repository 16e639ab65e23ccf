//! What a cluster is, as far as an installation has to know.

use std::fmt;

use ipnet::IpNet;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, Error, ResourceExt as _, Result};

use crate::values::ApiGroup;

/// What nodes are found by, in every installation of ours.
pub(crate) const NODE: &str = "tortie-node";

/// DaemonSets that are networks of other makers.
const OTHERS: [&str; 10] = [
    "antrea-agent",
    "aws-node",
    "calico-node",
    "canal",
    "cilium",
    "kindnet",
    "kube-flannel",
    "kube-flannel-ds",
    "kube-router",
    "weave-net",
];

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Such as `v1.20.2`.
    pub version: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// The networks that kubeadm was told to use for pods.
    pub pod_networks: Vec<IpNet>,
    /// What kube-proxy works with, if it is there and says so.
    pub kube_proxy: Option<String>,
    /// The group of Calico's custom resources, if these are defined.
    pub api_group: Option<ApiGroup>,
    /// A network of somebody else.
    pub other_network: Option<Place>,
    /// Ours.
    pub installed: Option<Place>,
}

/// A DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub namespace: String,
    pub name: String,
    /// Of its first container.
    pub image: String,
}

impl Cluster {
    /// Asks the cluster. What may not be read counts as absent, but for nodes and DaemonSets, without which nothing is known.
    pub async fn examine(client: &Client) -> Result<Self> {
        let version = client.apiserver_version().await?.git_version;
        let nodes: Api<Node> = Api::all(client.clone());
        let nodes = nodes
            .list_metadata(&ListParams::default())
            .await?
            .items
            .len();
        let sets: Api<DaemonSet> = Api::all(client.clone());
        let sets = sets.list(&ListParams::default()).await?.items;
        let find = |is_it: &dyn Fn(&str) -> bool| {
            let found = sets.iter().find(|set| is_it(&set.name_any()));
            found.map(Place::of)
        };
        Ok(Self {
            version,
            nodes,
            pod_networks: pod_networks(client).await,
            kube_proxy: kube_proxy(client).await,
            api_group: api_group(client).await?,
            other_network: find(&|name| OTHERS.contains(&name)),
            installed: find(&|name| name == NODE),
        })
    }
}

impl Place {
    fn of(set: &DaemonSet) -> Self {
        let pod = set
            .spec
            .as_ref()
            .and_then(|spec| spec.template.spec.as_ref());
        let image = pod.and_then(|pod| pod.containers.first()?.image.clone());
        Self {
            namespace: set.namespace().unwrap_or_default(),
            name: set.name_any(),
            image: image.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DaemonSet({}/{})", self.namespace, self.name)
    }
}

/// The networks that kubeadm was told to use for pods; none if it is not there or may not be asked.
pub async fn pod_networks(client: &Client) -> Vec<IpNet> {
    let text = of_kube_system(client, "kubeadm-config", "ClusterConfiguration").await;
    let settings = tortie_api::yaml::parse_one(&text).unwrap_or_default();
    let subnets = settings["networking"]["podSubnet"].as_str().unwrap_or("");
    let networks = subnets.split(',').map(str::trim);
    networks
        .filter_map(|network| network.parse().ok())
        .collect()
}

async fn kube_proxy(client: &Client) -> Option<String> {
    let text = of_kube_system(client, "kube-proxy", "config.conf").await;
    let settings = tortie_api::yaml::parse_one(&text).ok()?;
    let mode = settings.get("mode")?.as_str()?;
    // It says nothing where it takes what it usually takes.
    Some(if mode.is_empty() { "iptables" } else { mode }.to_owned())
}

/// What a ConfigMap of the system has under a key; nothing if it cannot be read.
async fn of_kube_system(client: &Client, name: &str, key: &str) -> String {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let map = maps.get_opt(name).await.ok().flatten();
    let data = map.and_then(|map| map.data).unwrap_or_default();
    data.get(key).cloned().unwrap_or_default()
}

/// The newer group wins, as it does where both are served.
async fn api_group(client: &Client) -> Result<Option<ApiGroup>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for group in [ApiGroup::V3, ApiGroup::V1] {
        let name = format!("ippools.{}", group.definitions().name());
        match definitions.get_opt(&name).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(Some(group)),
            Err(Error::Api(status)) if status.code == 403 => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
