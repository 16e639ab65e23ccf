//! What files or a datastore tell a node's engine, for other commands.

use std::path::PathBuf;

use anyhow::Result;
use futures::future::join_all;
use tortie_client::connect::Connection;
use tortie_engine::Update;
use tortie_store::Query;

use super::load;
use super::world::Builder;
use crate::args::Global;

/// The objects of files, with what plain manifests leave out. Those with problems are named on stderr and left out.
pub(in crate::commands) fn of_files(paths: &[PathBuf], recursive: bool) -> Result<Vec<Update>> {
    let mut builder = Builder::empty(Vec::new());
    builder.built_ins();
    let files = load::Files {
        paths,
        recursive,
        is_verbose: false,
        ignores_invalid: true,
    };
    files.read(&mut builder)?;
    Ok(builder.into_listener())
}

/// What a datastore tells an agent.
pub(in crate::commands) async fn of_datastore(global: &Global) -> Result<Vec<Update>> {
    let connection = crate::config::open(global).await?;
    let server = load::local_server(global, &connection);
    of(&connection, server.as_ref()).await
}

/// The same of a datastore that is open already.
pub(in crate::commands) async fn of_connection(connection: &Connection) -> Result<Vec<Update>> {
    of(connection, None).await
}

/// The same, with an API server that knows of services where the datastore does not.
async fn of(connection: &Connection, server: Option<&kube::Client>) -> Result<Vec<Update>> {
    let mut builder = Builder::empty(Vec::new());
    let kinds = tortie_agent::inputs::Config::for_agent(None).kinds;
    let queries: Vec<Query> = kinds.into_iter().map(Query::all).collect();
    // As stored, which is what an agent sees.
    let store = connection.client.store();
    let lists = join_all(queries.iter().map(|query| store.list(query))).await;
    load::take_lists(lists, &mut builder)?;
    if let Some(cluster) = connection.cluster.as_ref().or(server) {
        load::services(cluster, &mut builder).await?;
    }
    Ok(builder.into_listener())
}
