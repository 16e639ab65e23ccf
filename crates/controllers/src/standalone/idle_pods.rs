//! Tells people who wait for a pod why nothing runs it.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tortie_operator::{Action, Cache, Controller, Failure, Manager, ObjectKey, Reconciler};

const CONTROLLER: &str = "IdlePods";

/// Who tells.
const COMPONENT: &str = "tortie";

/// Events are forgotten after an hour; what still is so is told again before that.
const AGAIN: Duration = Duration::from_mins(30);

const CONFLICT: u16 = 409;

pub(super) fn add(manager: &Manager, cluster: &kube::Client) {
    let idle = IdlePods {
        pods: manager.cache(),
        cluster: cluster.clone(),
    };
    let controller = Controller::builder(CONTROLLER, manager)
        .for_::<Pod>()
        .resync(AGAIN)
        .reconciler(idle);
    manager.add(controller);
}

struct IdlePods {
    pods: Cache<Pod>,
    cluster: kube::Client,
}

impl Reconciler for IdlePods {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let Some(pod) = self.pods.get(key).filter(|pod| is_idle(pod)) else {
            return Ok(Action::Done);
        };
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(self.cluster.clone(), namespace);
        let event = event(&pod, namespace, &key.name);
        let name = event.metadata.name.clone().unwrap_or_default();
        let Some(told) = events.get_opt(&name).await? else {
            return match events.create(&PostParams::default(), &event).await {
                Ok(_) => Ok(Action::Done),
                Err(kube::Error::Api(status)) if status.code == CONFLICT => Ok(Action::Done),
                Err(error) => Err(error.into()),
            };
        };
        let last = told.last_timestamp.map(|time| time.0.as_second());
        let now = Timestamp::now().as_second();
        let pause = i64::try_from(AGAIN.as_secs()).unwrap_or(i64::MAX);
        // A pod that only changed is no news.
        if last.is_some_and(|last| now - last >= pause) {
            let again = json!({
                "lastTimestamp": event.last_timestamp,
                "count": told.count.unwrap_or(1).saturating_add(1),
            });
            let params = PatchParams::default();
            events.patch(&name, &params, &Patch::Merge(again)).await?;
        }
        Ok(Action::Done)
    }
}

/// Whether a pod waits for a node, which nobody will give it: who connects pods names their node.
fn is_idle(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let is_ending = pod.metadata.deletion_timestamp.is_some();
    node.unwrap_or_default().is_empty() && super::addresses(pod).is_empty() && !is_ending
}

fn event(pod: &Pod, namespace: &str, name: &str) -> Event {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
    let message = format!(
        "tortie up has no kubelet, so nothing starts the containers of this pod; `tortie pod run {name} -n {namespace}` \
         makes a pod with a network that policies apply to, once this one is deleted"
    );
    Event {
        metadata: ObjectMeta {
            // One for each pod, however often it is looked at.
            name: Some(format!("{name}.{uid}")),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid: Some(uid),
            resource_version: pod.metadata.resource_version.clone(),
            field_path: None,
        },
        reason: Some("NoKubelet".to_owned()),
        message: Some(message),
        type_: Some("Warning".to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            host: None,
        }),
        reporting_component: Some(COMPONENT.to_owned()),
        ..Event::default()
    }
}
