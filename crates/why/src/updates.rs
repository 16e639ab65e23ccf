//! What files or a datastore tell a node's engine.

use anyhow::Result;
use futures::future::join_all;
use tortie_client::connect::Connection;
use tortie_engine::Update;
use tortie_store::Query;

use crate::world::Builder;
use crate::{Files, Tell, load};

/// The objects of files, with what plain manifests leave out.
pub fn of_files(files: &Files<'_>, tell: Tell<'_>) -> Result<Vec<Update>> {
    let mut builder = Builder::empty(Vec::new());
    builder.built_ins();
    files.read(&mut builder, tell)?;
    Ok(builder.into_listener())
}

/// What a datastore tells an agent, with an API server that knows of services where the datastore does not.
pub async fn of_datastore(
    connection: &Connection,
    server: Option<&kube::Client>,
    tell: Tell<'_>,
) -> Result<Vec<Update>> {
    let mut builder = Builder::empty(Vec::new());
    let kinds = tortie_agent::inputs::Config::for_agent(None).kinds;
    let queries: Vec<Query> = kinds.into_iter().map(Query::all).collect();
    // As stored, which is what an agent sees.
    let store = connection.client.store();
    let lists = join_all(queries.iter().map(|query| store.list(query))).await;
    load::take_lists(lists, &mut builder, tell)?;
    if let Some(cluster) = connection.cluster.as_ref().or(server) {
        load::services(cluster, &mut builder, tell).await?;
    }
    Ok(builder.into_listener())
}
