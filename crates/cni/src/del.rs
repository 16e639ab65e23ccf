//! DEL: disconnects a container.
//!
//! The addresses are given back last: until the interface is gone, nobody else may have them.
//!
//! # Invariants
//! - What is gone already is no error: DEL may come twice, or for a container that was never connected.
//! - An endpoint that by now is that of another container of the same pod stays.

use crate::context::Context;
use crate::error::Result;
use crate::ipam;
use crate::network::{self, Removal};

/// Disconnects the container.
pub async fn del(context: &Context<'_>) -> Result<()> {
    let (request, identity) = (context.request, &context.identity);
    let endpoints = context.endpoints();
    let ((), found) = tokio::try_join!(context.datastore.check_ready(), endpoints.look(identity))?;
    let interface = Removal::start(&request.namespace, &request.interface, context.waiting);
    let is_removed = endpoints.remove(identity, found).await?;
    interface.gone().await?;
    if is_removed {
        // Where the container's namespace is not known any more, this end is still there.
        network::tear_down_host(&context.host_interface())?;
    }
    ipam::release(context).await
}
