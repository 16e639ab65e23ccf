//! GC: gives back what belongs to containers that are gone.

use std::collections::BTreeSet;

use tortie_store::{Error as StoreError, Key, Kind, Precondition, Query, Resource, Revision};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ipam;
use crate::request::Command;

/// Gives back addresses of this network on this node whose container is not among the valid ones, and removes the
/// endpoints of such containers. What somebody else keeps account of is left to them.
pub async fn gc(context: &Context<'_>) -> Result<()> {
    let Some(valid) = &context.config.valid_attachments else {
        return Err(Error::config(
            "network configuration: `cni.dev/valid-attachments` is missing",
        ));
    };
    let valid: BTreeSet<&str> = valid.iter().map(|a| a.container_id.as_str()).collect();
    context.datastore.check_ready().await?;
    if !context.config.is_calico_ipam() {
        return ipam::ask_delegate(context, Command::Gc).await;
    }
    let gone = ipam::collect_garbage(context, &valid).await?;
    // Those of pods go with their pods.
    if gone.is_empty() || context.datastore.cluster.is_some() {
        return Ok(());
    }
    let client = &context.datastore.client;
    for resource in client
        .list(&Query::all(Kind::WorkloadEndpoint))
        .await?
        .items
    {
        let Resource::WorkloadEndpoint(endpoint) = &resource else {
            continue;
        };
        let spec = &endpoint.spec;
        if spec.node != context.identity.node || !gone.contains(&spec.container_id) {
            continue;
        }
        let precondition = Precondition {
            revision: Some(Revision(endpoint.metadata.resource_version.clone())),
            uid: None,
        };
        match client.delete(&Key::of(&resource), &precondition).await {
            // Somebody else deals with it.
            Ok(_) | Err(StoreError::NotFound(_) | StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
