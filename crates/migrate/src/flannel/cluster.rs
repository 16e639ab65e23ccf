//! What is done in Kubernetes: labels, drains, commands on nodes, `DaemonSets`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Node, Pod};
use kube::api::{
    DeleteParams, EvictParams, ListParams, LogParams, Patch, PatchParams, PostParams,
    PropagationPolicy,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tortie_error::Causes;
use tortie_variables as variables;

use super::command::Command;
use super::migration::Error;
use super::settings::Settings;

/// How often is looked while something is awaited.
const LOOK: Duration = Duration::from_secs(1);

/// How long a pod may take to run or to end, and a `DaemonSet` to go.
const PATIENCE: Duration = Duration::from_mins(5);

/// How long a node's pods may take to go: budgets for disruptions may hold them back.
const DRAIN_PATIENCE: Duration = Duration::from_mins(30);

/// The label of Calico's agents.
const AGENTS: &str = "k8s-app=calico-node";

/// A cluster.
pub(super) struct Kubernetes {
    client: Client,
}

/// What is needed of Calico's `DaemonSet`.
pub(super) struct Calico {
    pub(super) image: String,
    pub(super) cni_file: String,
}

/// A change of a node's labels.
pub(super) struct NodeLabels {
    name: &'static str,
    value: Option<&'static str>,
}

impl NodeLabels {
    pub(super) fn set(name: &'static str, value: &'static str) -> Self {
        let value = Some(value);
        Self { name, value }
    }

    pub(super) fn unset(name: &'static str) -> Self {
        Self { name, value: None }
    }
}

impl Kubernetes {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    fn all_nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn pods_in(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn daemonsets(&self, namespace: &str) -> Api<DaemonSet> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) async fn nodes(&self) -> Result<Vec<Node>, Error> {
        Ok(self.all_nodes().list(&ListParams::default()).await?.items)
    }

    pub(super) async fn has_node(&self, name: &str) -> Result<bool, Error> {
        Ok(self.all_nodes().get_opt(name).await?.is_some())
    }

    /// Changes a label of a node; one that is so already is left alone by the API server.
    pub(super) async fn label(&self, node: &str, labels: &NodeLabels) -> Result<(), Error> {
        let NodeLabels { name, value } = labels;
        let mut change = serde_json::Map::new();
        change.insert((*name).to_owned(), json!(value));
        self.patch_node(node, json!({"metadata": {"labels": change}}))
            .await
    }

    pub(super) async fn set_schedulable(
        &self,
        node: &str,
        is_schedulable: bool,
    ) -> Result<(), Error> {
        let value = if is_schedulable {
            Value::Null
        } else {
            json!(true)
        };
        self.patch_node(node, json!({"spec": {"unschedulable": value}}))
            .await
    }

    async fn patch_node(&self, node: &str, change: Value) -> Result<(), Error> {
        let patch = Patch::Merge(change);
        self.all_nodes()
            .patch(node, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub(super) async fn daemonset(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DaemonSet>, Error> {
        Ok(self.daemonsets(namespace).get_opt(name).await?)
    }

    /// Adds a label to those that a `DaemonSet`'s nodes must have, or takes it away.
    pub(super) async fn select_nodes(
        &self,
        namespace: &str,
        name: &str,
        (label, value): (&str, &str),
        is_wanted: bool,
    ) -> Result<(), Error> {
        let value = if is_wanted { json!(value) } else { Value::Null };
        let selector = BTreeMap::from([(label, value)]);
        let change = json!({"spec": {"template": {"spec": {"nodeSelector": selector}}}});
        let daemonsets = self.daemonsets(namespace);
        daemonsets
            .patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await?;
        Ok(())
    }

    /// Deletes a `DaemonSet` with its pods, and waits until it is gone.
    pub(super) async fn delete_daemonset(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let api = self.daemonsets(namespace);
        let options = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        match api.delete(name, &options).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let what = format!("the deletion of DaemonSet {namespace}/{name}");
        until(&what, PATIENCE, async || {
            Ok(api.get_opt(name).await?.is_none())
        })
        .await
    }

    /// What Calico's `DaemonSet` says of itself.
    pub(super) async fn calico(&self, settings: &Settings) -> Result<Calico, Error> {
        let name = &settings.calico_daemonset;
        let lacks = |reason: &str| Error::DaemonSet {
            daemonset: format!("{}/{name}", settings.calico_namespace),
            reason: reason.to_owned(),
        };
        let found = self.daemonset(&settings.calico_namespace, name).await?;
        let found = found.ok_or_else(|| lacks("it is not there; install Calico first"))?;
        let spec = found
            .spec
            .and_then(|spec| spec.template.spec)
            .unwrap_or_default();
        let containers: Vec<&Container> = spec
            .init_containers
            .iter()
            .flatten()
            .chain(&spec.containers)
            .collect();
        let container = |name: &str| containers.iter().find(|container| container.name == name);
        let image = container("calico-node").and_then(|container| container.image.clone());
        let environment = container("install-cni").and_then(|container| container.env.as_ref());
        let variable =
            environment.and_then(|all| all.iter().find(|one| one.name == variables::CNI_CONF_NAME));
        Ok(Calico {
            image: image.ok_or_else(|| lacks("it has no container calico-node with an image"))?,
            cni_file: variable
                .and_then(|variable| variable.value.clone())
                .ok_or_else(|| lacks("its container install-cni has no variable CNI_CONF_NAME"))?,
        })
    }

    /// Writes a value of a `ConfigMap`, which must be there.
    pub(super) async fn set_config(
        &self,
        namespace: &str,
        map: &str,
        key: &str,
        value: &str,
    ) -> Result<(), Error> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let change = json!({"data": BTreeMap::from([(key, value)])});
        api.patch(map, &PatchParams::default(), &Patch::Merge(change))
            .await?;
        Ok(())
    }

    /// Takes a node out of service: as `kubectl drain --ignore-daemonsets --delete-emptydir-data --force`.
    pub(super) async fn drain(&self, node: &str) -> Result<(), Error> {
        self.set_schedulable(node, false).await?;
        let what = format!("draining node {node}");
        until(&what, DRAIN_PATIENCE, async || {
            let pods = self.pods_on(node).await?;
            let pods: Vec<Pod> = pods.into_iter().filter(is_drained).collect();
            for pod in &pods {
                self.evict(pod).await?;
            }
            Ok(pods.is_empty())
        })
        .await
    }

    /// Asks for a pod to go. A budget for disruptions may say no for now.
    async fn evict(&self, pod: &Pod) -> Result<(), Error> {
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let api = self.pods_in(&pod.namespace().unwrap_or_default());
        match api.evict(&pod.name_any(), &EvictParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 429 || status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes all pods of a node that are in its pods' network: they were connected by what is gone.
    pub(super) async fn delete_networked_pods(&self, node: &str) -> Result<(), Error> {
        for pod in self.pods_on(node).await? {
            if is_on_host_network(&pod) {
                continue;
            }
            let api = self.pods_in(&pod.namespace().unwrap_or_default());
            match api.delete(&pod.name_any(), &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<Pod>, Error> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        Ok(api.list(&here).await?.items)
    }

    /// Waits until Calico's agent on a node is ready.
    pub(super) async fn await_agent(&self, node: &str, namespace: &str) -> Result<(), Error> {
        let api = self.pods_in(namespace);
        let agents = ListParams::default()
            .labels(AGENTS)
            .fields(&format!("spec.nodeName={node}"));
        let what = format!("the start of Calico on node {node}");
        until(&what, PATIENCE, async || {
            let pods = api.list(&agents).await?.items;
            Ok(!pods.is_empty() && pods.iter().all(is_ready))
        })
        .await
    }

    /// Runs a command on a node and gives what it printed.
    pub(super) async fn run_on(
        &self,
        node: &str,
        namespace: &str,
        image: &str,
        command: &Command,
    ) -> Result<String, Error> {
        let api = self.pods_in(namespace);
        let pod: Pod =
            serde_json::from_value(command.pod(node, image)).map_err(kube::Error::SerdeError)?;
        let pod = api.create(&PostParams::default(), &pod).await?.name_any();
        let mut has_failed = false;
        let ended = until(command.what, PATIENCE, async || {
            let found = api.get(&pod).await?;
            let phase = found
                .status
                .and_then(|status| status.phase)
                .unwrap_or_default();
            has_failed = phase == "Failed";
            Ok(has_failed || phase == "Succeeded")
        })
        .await;
        let log = api.logs(&pod, &LogParams::default()).await;
        if ended.is_err() || has_failed {
            // The pod stays, for people who look.
            ended?;
            return Err(Error::Command {
                node: node.to_owned(),
                what: command.what,
                log: log.unwrap_or_default(),
            });
        }
        let log = log.unwrap_or_else(|error| {
            tracing::warn!(pod, error = %Causes(&error), "What the command printed cannot be read");
            String::new()
        });
        api.delete(&pod, &DeleteParams::default()).await?;
        Ok(log)
    }
}

/// Whether a drain asks for a pod to go: not those that a `DaemonSet` would put back, nor those of the node itself, nor those
/// that have ended.
fn is_drained(pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    let is_of_daemonset =
        { owners }.any(|owner| owner.kind == "DaemonSet" && owner.controller == Some(true));
    let annotations = pod.metadata.annotations.as_ref();
    let is_static = annotations.is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"));
    !is_of_daemonset && !is_static
}

fn is_on_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
}

fn is_ready(pod: &Pod) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let mut conditions = status.conditions.iter().flatten();
    status.phase.as_deref() == Some("Running")
        && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Looks again and again until something is so.
async fn until(
    what: &str,
    patience: Duration,
    mut is_so: impl AsyncFnMut() -> Result<bool, Error>,
) -> Result<(), Error> {
    let end = Instant::now() + patience;
    while !is_so().await? {
        if Instant::now() >= end {
            return Err(Error::Timeout(what.to_owned()));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(json: Value) -> Pod {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn daemonsets_and_static_pods_are_not_drained() {
        let owner = |kind: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u", "controller": true});
        for (metadata, expected) in [
            (json!({}), true),
            (json!({"ownerReferences": [owner("ReplicaSet")]}), true),
            (json!({"ownerReferences": [owner("DaemonSet")]}), false),
            (
                json!({"annotations": {"kubernetes.io/config.mirror": "x"}}),
                false,
            ),
        ] {
            assert_eq!(
                is_drained(&pod(json!({"metadata": metadata}))),
                expected,
                "{metadata}"
            );
        }
    }
}
