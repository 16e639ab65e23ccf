//! Where the world comes from, as the command line says it: files, or a datastore.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use tortie_agent::RecordingFile;
use tortie_client::Client;
use tortie_client::connect::{Backend, Connection};
use tortie_engine::Update;
use tortie_why::{Answers, Files, Remark, World, updates};

use crate::args::{Global, Why};
use crate::commands::report::problem_lines;
use crate::commands::up::{API_SOCKET, client_through};
use crate::config;

/// Makes a world of what the command line says.
pub(super) async fn world(
    args: &Why,
    global: &Global,
    recording: Option<RecordingFile>,
) -> Result<(World, usize)> {
    if args.filename.is_empty() {
        let connection = config::open(global).await?;
        let server = local_server(global, &connection);
        tortie_why::from_datastore(&connection, server.as_ref(), recording, &mut tell).await
    } else {
        let files = Files {
            paths: &args.filename,
            recursive: args.recursive,
            is_verbose: args.verbose,
            ignores_invalid: args.ignore_invalid,
        };
        tortie_why::from_files(&files, recording, &mut tell)
    }
}

/// What can be asked about the resources of a datastore that is open already.
pub(in crate::commands) async fn answers(client: &Client) -> Result<Answers> {
    Answers::from(client, &mut tell).await
}

/// What files tell a node's engine. Objects with problems are left out.
pub(in crate::commands) fn updates_of_files(
    paths: &[PathBuf],
    recursive: bool,
) -> Result<Vec<Update>> {
    let files = Files {
        paths,
        recursive,
        is_verbose: false,
        ignores_invalid: true,
    };
    updates::of_files(&files, &mut tell)
}

/// What a datastore tells a node's engine.
pub(in crate::commands) async fn updates_of_datastore(global: &Global) -> Result<Vec<Update>> {
    let connection = config::open(global).await?;
    let server = local_server(global, &connection);
    updates::of_datastore(&connection, server.as_ref(), &mut tell).await
}

/// The same of a datastore that is open already.
pub(in crate::commands) async fn updates_of_connection(
    connection: &Connection,
) -> Result<Vec<Update>> {
    updates::of_datastore(connection, None, &mut tell).await
}

/// The API server of this machine's `tortie up`, where services are that the embedded datastore keeps as they are.
fn local_server(global: &Global, connection: &Connection) -> Option<kube::Client> {
    let is_embedded = matches!(connection.backend, Backend::Embedded);
    let socket = config::data_folder(global).join(API_SOCKET);
    (is_embedded && socket.exists()).then(|| client_through(&socket))
}

fn tell(remark: Remark<'_>) {
    let word = |is_error| if is_error { "error" } else { "warning" };
    let line = match remark {
        Remark::Invalid {
            is_error,
            place,
            problems,
        } => problem_lines(&format!("{}: {place}", word(is_error)), problems),
        Remark::Unusable { is_error, text } => format!("{}: {text}", word(is_error)),
        Remark::Warning(text) => format!("warning: {text}"),
        Remark::Note(text) => format!("note: {text}"),
    };
    // Nothing is left to do if stderr does not take it.
    let _ = writeln!(anstream::stderr(), "{line}");
}
