//! What is done for one object: a network policy in each namespace that it selects, and in no other.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::Patch;
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;
use tortie_operator::{
    Action, Cache, Client, Failure, Manager, Object as _, ObjectKey, Reconciler,
};

use crate::resource::{NamespaceBaseline, NamespaceBaselineSpec, NamespaceBaselineStatus};

/// Keeps an object until its policies are gone.
const FINALIZER: &str = "example.tortie.dev/policies";

/// Reads from caches, writes to the API server.
pub struct Reconcile {
    client: Client,
    objects: Cache<NamespaceBaseline>,
    namespaces: Cache<Namespace>,
    policies: Cache<NetworkPolicy>,
}

impl Reconcile {
    /// With the caches of a manager.
    pub fn new(manager: &Manager) -> Self {
        Self {
            client: manager.client(),
            objects: manager.cache(),
            namespaces: manager.cache(),
            policies: manager.cache(),
        }
    }
}

impl Reconciler for Reconcile {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let Some(object) = self.objects.get(key) else {
            return Ok(Action::Done);
        };
        if object.is_deleting() {
            self.remove_policies(&object, &BTreeSet::new()).await?;
            self.set_finalizer(&object, false).await?;
            return Ok(Action::Done);
        }
        self.set_finalizer(&object, true).await?;
        let selected = self.selected(&object.spec);
        for namespace in &selected {
            let wanted = policy(&object, namespace)?;
            match self.policies.get(&ObjectKey::of(&wanted)) {
                None => drop(self.client.create(&wanted).await?),
                Some(there) if there.spec != wanted.spec || !is_owned(&there, &object) => {
                    // Replaced as a whole, so that what others added is removed.
                    let mut repaired = there.as_ref().clone();
                    repaired.spec = wanted.spec;
                    repaired.metadata.owner_references = wanted.metadata.owner_references;
                    self.client.update(&repaired).await?;
                }
                Some(_) => {}
            }
        }
        self.remove_policies(&object, &selected).await?;
        self.report(&object, selected).await?;
        Ok(Action::Done)
    }
}

impl Reconcile {
    /// The namespaces that have the labels and are not about to go.
    fn selected(&self, spec: &NamespaceBaselineSpec) -> BTreeSet<String> {
        let has_all = |labels: &BTreeMap<String, String>| {
            spec.namespace_labels
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value))
        };
        let namespaces = self.namespaces.list();
        let chosen = namespaces
            .iter()
            .filter(|namespace| !namespace.is_deleting() && has_all(namespace.labels()));
        chosen.map(|namespace| namespace.name_any()).collect()
    }

    /// Deletes this object's policies, but for those in some namespaces.
    async fn remove_policies(
        &self,
        object: &NamespaceBaseline,
        but_in: &BTreeSet<String>,
    ) -> Result<(), Failure> {
        for policy in self.policies.list() {
            let key = ObjectKey::of(policy.as_ref());
            let is_kept = key
                .namespace
                .as_deref()
                .is_some_and(|namespace| but_in.contains(namespace));
            if is_owned(&policy, object) && !is_kept {
                self.client.delete::<NetworkPolicy>(&key).await?;
            }
        }
        Ok(())
    }

    async fn set_finalizer(&self, object: &NamespaceBaseline, wanted: bool) -> Result<(), Failure> {
        let mut finalizers = object.finalizers().to_vec();
        if finalizers.iter().any(|name| name == FINALIZER) == wanted {
            return Ok(());
        }
        finalizers.retain(|name| name != FINALIZER);
        if wanted {
            finalizers.push(FINALIZER.to_owned());
        }
        // The version keeps this from undoing what another wrote to the list meanwhile.
        let patch = json!({"metadata": {
            "finalizers": finalizers,
            "resourceVersion": object.metadata.resource_version,
        }});
        let key = ObjectKey::of(object);
        self.client
            .patch::<NamespaceBaseline, _>(&key, &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn report(
        &self,
        object: &NamespaceBaseline,
        namespaces: BTreeSet<String>,
    ) -> Result<(), Failure> {
        let old = object.status.clone().unwrap_or_default();
        let since = old
            .conditions
            .iter()
            .find(|condition| condition.type_ == "Ready");
        let ready = Condition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "Protected".to_owned(),
            message: format!("{} namespaces are protected", namespaces.len()),
            observed_generation: object.metadata.generation,
            last_transition_time: since.map_or_else(
                || Time(Timestamp::now()),
                |ready| ready.last_transition_time.clone(),
            ),
        };
        let status = NamespaceBaselineStatus {
            observed_generation: object.metadata.generation,
            namespaces: namespaces.into_iter().collect(),
            conditions: vec![ready],
        };
        // Writing what is there already would only wake everyone who watches.
        if status != old {
            let patch = Patch::Merge(json!({"status": status}));
            let key = ObjectKey::of(object);
            self.client
                .patch_status::<NamespaceBaseline, _>(&key, &patch)
                .await?;
        }
        Ok(())
    }
}

fn is_owned(policy: &NetworkPolicy, object: &NamespaceBaseline) -> bool {
    policy
        .controller()
        .is_some_and(|owner| Some(owner.uid) == object.metadata.uid.as_deref())
}

fn policy(object: &NamespaceBaseline, namespace: &str) -> Result<NetworkPolicy, Failure> {
    let spec = &object.spec;
    let directions = match spec.directions.as_slice() {
        [] => vec!["Ingress".to_owned(), "Egress".to_owned()],
        given => given.to_vec(),
    };
    let mut policy = json!({
        "metadata": {
            "name": format!("namespacebaseline-{}", object.name_any()),
            "namespace": namespace,
            "ownerReferences": [object.controller_owner_ref(&())],
        },
        "spec": {"podSelector": {}, "policyTypes": directions},
    });
    if directions.iter().any(|direction| direction == "Egress") && spec.allow_dns.unwrap_or(true) {
        let port = |protocol: &str| json!({"protocol": protocol, "port": 53});
        policy["spec"]["egress"] = json!([{"ports": [port("UDP"), port("TCP")]}]);
    }
    serde_json::from_value(policy).map_err(Failure::never)
}
