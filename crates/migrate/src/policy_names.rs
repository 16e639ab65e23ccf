//! Gives policies of the default tier their own names, where an older version stored them with `default.` before them.
//!
//! Agents of older versions do not find them under the new names, so this waits until none is left.

mod custom_resources;

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use tokio::time::sleep;
use tortie_api::crd::Group;
use tortie_client::connect::Backend;
use tortie_error::Causes;
use tortie_operator::{BoxError, own_namespace};

/// The `DaemonSet` of the agents.
const AGENTS: &str = "calico-node";

/// Where the agents are if this process does not know where itself is.
const USUAL_NAMESPACE: &str = "calico-system";

const POLL: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_mins(5);

/// Renames, now and then, until it is dropped.
pub async fn run(cluster: kube::Client, backend: Backend, may_wait: bool) -> Result<(), BoxError> {
    if may_wait {
        wait_for_agents(&cluster).await;
    }
    loop {
        let moved = match &backend {
            Backend::Etcd(etcd) => match etcd.migrate_policy_names().await {
                Ok(moved) => Ok(moved.iter().map(ToString::to_string).collect()),
                Err(error) => Err(BoxError::from(error)),
            },
            Backend::Kubernetes(store) if store.group() == Group::V1 => {
                custom_resources::migrate(&cluster).await
            }
            // Never had other names.
            Backend::Kubernetes(_) | Backend::Embedded => return Ok(()),
        };
        match moved {
            Ok(moved) => {
                let moved: Vec<String> = moved;
                for policy in moved {
                    tracing::info!(policy, "Migrated policy datastore name");
                }
            }
            Err(error) => {
                tracing::error!(error = %Causes(&*error), "Failed to migrate policy, will retry");
            }
        }
        sleep(PERIOD).await;
    }
}

/// The namespace that the agents are in: that of this process.
pub fn namespace_of_agents() -> String {
    own_namespace().unwrap_or_else(|| USUAL_NAMESPACE.to_owned())
}

async fn wait_for_agents(cluster: &kube::Client) {
    let namespace = namespace_of_agents();
    let api: Api<DaemonSet> = Api::namespaced(cluster.clone(), &namespace);
    loop {
        match api.get(AGENTS).await {
            Err(error) => {
                tracing::debug!(error = %Causes(&error), "Error getting calico-node DaemonSet");
            }
            Ok(agents) => match pending(&agents) {
                None => break,
                Some(reason) => tracing::info!(reason, "Waiting for calico-node pods"),
            },
        }
        sleep(POLL).await;
    }
    tracing::info!("All calico-node pods are up-to-date");
}

/// What is still to come until all agents are of the newest version.
fn pending(agents: &DaemonSet) -> Option<&'static str> {
    let status = agents.status.clone().unwrap_or_default();
    let desired = status.desired_number_scheduled;
    let reasons = [
        (
            status.observed_generation != agents.metadata.generation,
            "calico-node DaemonSet to be observed",
        ),
        (
            status.current_number_scheduled != desired,
            "all calico-node pods to be scheduled",
        ),
        (
            status.updated_number_scheduled.unwrap_or_default() != desired,
            "all calico-node pods to be updated",
        ),
        (
            status.number_unavailable.unwrap_or_default() > 0,
            "all calico-node pods to be available",
        ),
        (
            status.number_misscheduled > 0,
            "all calico-node pods to be correctly scheduled",
        ),
    ];
    let found = reasons.into_iter().find(|(is_so, _)| *is_so);
    found.map(|(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: &serde_json::Value, expected: Option<&str>) {
        let agents = json!({"metadata": {"generation": 2}, "status": status});
        let agents: DaemonSet = serde_json::from_value(agents).unwrap();
        assert_eq!(pending(&agents), expected);
    }

    #[test]
    fn agents_are_ready_when_all_are_of_the_newest_version() {
        let with = |changes: serde_json::Value| {
            let mut status = json!({
                "observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "updatedNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 3,
            });
            for (name, value) in changes.as_object().unwrap() {
                status[name] = value.clone();
            }
            status
        };
        check(&with(json!({})), None);
        check(
            &with(json!({"observedGeneration": 1})),
            Some("calico-node DaemonSet to be observed"),
        );
        check(
            &with(json!({"currentNumberScheduled": 2})),
            Some("all calico-node pods to be scheduled"),
        );
        check(
            &with(json!({"updatedNumberScheduled": 2})),
            Some("all calico-node pods to be updated"),
        );
        check(
            &with(json!({"numberUnavailable": 1})),
            Some("all calico-node pods to be available"),
        );
        check(
            &with(json!({"numberMisscheduled": 1})),
            Some("all calico-node pods to be correctly scheduled"),
        );
    }
}
