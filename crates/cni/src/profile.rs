//! The profile of a network, for containers whose policy is not that of Kubernetes.

use tortie_api::Profile;
use tortie_api::profile::ProfileSpec;
use tortie_api::rule::{Action, EntityRule, Rule};
use tortie_client::Client;
use tortie_store::{Error as StoreError, Key, Kind};

use crate::error::{Code, Error, Result};

/// Whether a network has a profile.
pub(crate) async fn is_there(client: &Client, network: &str) -> Result<bool> {
    match client
        .store()
        .get(&Key::global(Kind::Profile, network))
        .await
    {
        Ok(_) => Ok(true),
        Err(StoreError::NotFound(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes the profile of a network: its containers may talk to each other, and pods with everybody. One that somebody
/// else has made meanwhile is not changed.
pub(crate) async fn create(client: &Client, network: &str, is_pod: bool) -> Result<()> {
    tracing::info!(profile = network, "The profile of the network is made");
    match client.create(profile(network, is_pod).into()).await {
        Ok(_) | Err(StoreError::AlreadyExists(_)) => Ok(()),
        Err(StoreError::Unsupported { .. }) => {
            let message = format!(
                "the profile `{network}` cannot be made: where Kubernetes is the datastore, `policy.type` must be `k8s`"
            );
            Err(Error::new(Code::InvalidConfig, message))
        }
        Err(error) => Err(error.into()),
    }
}

fn profile(network: &str, is_pod: bool) -> Profile {
    let allow = |selector: String| Rule {
        action: Action::Allow,
        source: EntityRule {
            selector,
            ..EntityRule::default()
        },
        ..Rule::default()
    };
    let from = if is_pod {
        String::new()
    } else {
        format!("has({network})")
    };
    let spec = ProfileSpec {
        ingress: vec![allow(from)],
        egress: vec![allow(String::new())],
        labels_to_apply: [(network.to_owned(), String::new())].into(),
    };
    Profile::new("", network, spec)
}
