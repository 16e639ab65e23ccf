//! `tortie agent`: enforces on this machine what the datastore says.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::AbortHandle;
use tortie_agent::startup::Registration;
use tortie_agent::{Agent, Options, Recording};
use tortie_client::Client;
use tortie_client::connect::{self, Connection, felix_variable};
use tortie_config::{self as parameters, Sources, explain, resolve, without_effect};
use tortie_error::Causes;
use tortie_variables as variables;

use super::node::{condition, enforced, startup};
use super::until_signal;
use crate::args;
use crate::args::DEFAULT_RECORDING;
use crate::args::Global;
use crate::config::await_with;

/// Where the agent looks for parameters.
pub(crate) const PARAMETER_FILE: &str = "/etc/calico/felix.cfg";

/// Runs until a signal ends it.
pub(crate) async fn run(args: &args::Agent, global: &Global) -> Result<ExitCode> {
    let environment = parameters::from_environment(std::env::vars_os());
    let file = parameter_file(&args.parameter_file)?;
    let node = node_name(args.node.as_deref(), &environment)?;
    if args.explain_config {
        return explain_config(&node, environment, file, global).await;
    }
    let variable = |name: &str| felix_variable(&connect::environment, name);
    let connection = await_with(global, &variable).await?;
    let served = connection.serve_others();
    let Connection {
        client,
        cluster,
        backend,
        ..
    } = connection;
    let place = keep_place(&client, &node, cluster.is_some());
    let told = cluster.clone().map(|cluster| (cluster, node.clone()));
    let mut agent = Agent::new(Options {
        node,
        environment,
        file,
        store: Arc::clone(client.store()),
        cluster,
        about: format!("tortie agent, datastore {}", backend.datastore_type()),
        take_over: args.take_over,
        runtime: tokio::runtime::Handle::current(),
        status_folder: args.status_folder.clone(),
        mtu_file: Some(args.mtu_file.clone()),
        ready_file: Some(args.ready_file.clone()),
        allow_cleartext: args.allow_cleartext,
    })?;
    let runtime = tokio::runtime::Handle::current();
    agent.on_ready(move || {
        if let Some((cluster, node)) = told.clone() {
            runtime.spawn(condition::say_up(cluster, node));
        }
    });
    let stop = agent.stop();
    let recording = agent.recording();
    if let Some(file) = &args.record {
        recording.start(file.clone());
    }
    let file = args.record.clone();
    let file = file.unwrap_or_else(|| DEFAULT_RECORDING.into());
    let asked = tokio::spawn(toggle_on_signal(recording, file)?);
    let mut thread = tokio::task::spawn_blocking(move || agent.run());
    let outcome = tokio::select! {
        outcome = &mut thread => outcome,
        () = until_signal()? => { stop.stop(); thread.await }
    };
    asked.abort();
    place.abort();
    if let Some(served) = served {
        served.end().await;
    }
    outcome.context("the agent ended unexpectedly")??;
    Ok(ExitCode::SUCCESS)
}

/// Starts or ends a recording at each SIGUSR1.
fn toggle_on_signal(recording: Recording, file: PathBuf) -> Result<impl Future<Output = ()>> {
    let mut asked = signal(SignalKind::user_defined1())?;
    Ok(async move {
        while asked.recv().await.is_some() {
            recording.toggle(file.clone());
        }
    })
}

/// Keeps the place of this machine in the cluster while the agent runs.
fn keep_place(client: &Client, node: &str, is_kubernetes: bool) -> AbortHandle {
    let (client, node) = (client.clone(), node.to_owned());
    let task = tokio::spawn(async move {
        match startup::settings(Some(&node)) {
            Ok(settings) => {
                let registration = Registration {
                    client: client.clone(),
                    settings,
                    is_kubernetes,
                };
                startup::keep(client, node, registration).await;
            }
            Err(error) => {
                tracing::warn!(node, error = %Causes(&*error), "If the node loses its address, it is not given back");
            }
        }
    });
    task.abort_handle()
}

/// The name of the node: given, of the environment, or the machine's.
pub(crate) fn node_name(
    given: Option<&str>,
    environment: &BTreeMap<String, String>,
) -> Result<String> {
    if let Some(name) = given {
        return Ok(name.to_owned());
    }
    let felix = environment.get("felixhostname").cloned();
    let name = felix.or_else(|| std::env::var(variables::NODENAME).ok());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    machine_name()
}

/// The name of this machine.
pub(crate) fn machine_name() -> Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .context("the name of this machine could not be read; give --node")?;
    match name.trim() {
        "" | "(none)" => bail!("this machine has no name; give --node"),
        name => Ok(name.to_lowercase()),
    }
}

/// Parameters of a file; none if there is none in the usual place.
pub(crate) fn parameter_file(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                && path == Path::new(PARAMETER_FILE) =>
        {
            return Ok(BTreeMap::new());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("{} could not be read", path.display()));
        }
    };
    parameters::from_file(&text).with_context(|| format!("{} is not right", path.display()))
}

async fn explain_config(
    node: &str,
    environment: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    global: &Global,
) -> Result<ExitCode> {
    let mut sources = Sources {
        environment,
        file,
        ..Sources::default()
    };
    let updates = enforced::load(&[], false, global).await?;
    enforced::add_parameters(&updates, node, &mut sources);
    let resolved = resolve(&sources);
    let mut out = std::io::stdout().lock();
    let rows = explain(&resolved);
    let width = |text: fn(&parameters::Explained) -> usize| rows.iter().map(text).max();
    let names = width(|row| row.name.len()).unwrap_or_default();
    let values = width(|row| row.value.len().min(40)).unwrap_or_default();
    writeln!(
        out,
        "{:names$}  {:values$}  {:28}  MEANING",
        "PARAMETER", "VALUE", "FROM"
    )?;
    for row in &rows {
        let origin = row.origin.to_string();
        let remark = if row.acted_on { "" } else { " (not acted on)" };
        writeln!(
            out,
            "{:names$}  {:values$}  {origin:28}  {}{remark}",
            row.name, row.value, row.meaning
        )?;
    }
    for problem in &resolved.problems {
        writeln!(anstream::stderr(), "{problem}")?;
    }
    for parameter in without_effect(&resolved) {
        writeln!(anstream::stderr(), "warning: {parameter}")?;
    }
    Ok(if resolved.is_fatal() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
