//! What the cluster says: from caches where that will do, and from the API server itself before anything is released.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use tortie_error::Causes;
use tortie_operator::{Cache, ObjectKey};

use super::allocation::{Place, Tenant};
use super::cached_node::CachedNode;
use super::scan::View;
use crate::machines::list_machines;

/// How many requests for single pods are on their way at once.
const CONCURRENT: usize = 16;

/// From so many pods of a namespace on, all are listed instead.
const LIST_FROM: usize = 50;

/// How many pods are listed at a time.
const PAGE: u32 = 500;

/// A pod's name, and the places that it could use.
type Wanted = (Box<str>, Vec<Place>);

#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) pods: Cache<crate::pod::Pod>,
    pub(super) nodes: Cache<CachedNode>,
}

/// The caches, and the virtual machines as they were listed last.
pub(super) struct Caches<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) machines: Option<HashSet<Tenant>>,
}

impl View for Caches<'_> {
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<crate::pod::Pod>> {
        self.cluster.pods.get(&ObjectKey::new(namespace, name))
    }

    fn node(&self, name: &str) -> Option<Arc<CachedNode>> {
        self.cluster.nodes.get(&ObjectKey::cluster(name))
    }

    fn has_machine(&self, machine: &Tenant) -> Option<bool> {
        let machines = self.machines.as_ref()?;
        Some(machines.contains(machine))
    }
}

impl Cluster {
    /// Asks for pods: each with the places that it could use, and the pod, if there is one. Those that could not be asked
    /// for are missing from the answer.
    pub(super) async fn pods(
        &self,
        wanted: BTreeMap<Tenant, Vec<Place>>,
    ) -> Vec<(Vec<Place>, Option<Pod>)> {
        let mut by_namespace: BTreeMap<Box<str>, Vec<Wanted>> = BTreeMap::new();
        for (pod, places) in wanted {
            let pods = by_namespace.entry(pod.namespace).or_default();
            pods.push((pod.name, places));
        }
        let mut answers = Vec::new();
        for (namespace, pods) in by_namespace {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
            let result = if pods.len() < LIST_FROM {
                get_each(&api, pods, &mut answers).await;
                Ok(())
            } else {
                list_all(&api, pods, &mut answers).await
            };
            if let Err(error) = result {
                tracing::warn!(%namespace, error = %Causes(&error), "Pods cannot be listed; their addresses stay");
            }
        }
        answers
    }

    /// The virtual machines, and instances that belong to none; nothing if that cannot be told.
    pub(super) async fn machines(&self) -> Option<HashSet<Tenant>> {
        let machines = list_machines(&self.client).await?;
        let tenants = machines.iter();
        Some(
            tenants
                .map(|(namespace, name)| Tenant::new(namespace, name))
                .collect(),
        )
    }
}

async fn get_each(api: &Api<Pod>, pods: Vec<Wanted>, answers: &mut Vec<(Vec<Place>, Option<Pod>)>) {
    let requests = pods.into_iter().map(async |(name, places)| {
        let pod = api.get_opt(&name).await;
        (name, places, pod)
    });
    let mut requests = stream::iter(requests).buffer_unordered(CONCURRENT);
    while let Some((pod, places, answer)) = requests.next().await {
        match answer {
            Ok(answer) => answers.push((places, answer)),
            Err(error) => {
                tracing::warn!(%pod, error = %Causes(&error), "A pod cannot be looked up; its addresses stay");
            }
        }
    }
}

async fn list_all(
    api: &Api<Pod>,
    pods: Vec<Wanted>,
    answers: &mut Vec<(Vec<Place>, Option<Pod>)>,
) -> kube::Result<()> {
    let mut pods: BTreeMap<Box<str>, Vec<Place>> = pods.into_iter().collect();
    let mut found = Vec::new();
    // Without a revision, the API server asks its datastore and not its memory.
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&parameters).await?;
        for pod in page.items {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            if let Some(places) = pods.remove(name) {
                found.push((places, Some(pod)));
            }
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => parameters.continue_token = Some(next),
            None => break,
        }
    }
    answers.append(&mut found);
    answers.extend(pods.into_values().map(|places| (places, None)));
    Ok(())
}
