//! `tortie controllers`: keeps the datastore true to what Kubernetes says.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tortie_client::connect::{Backend, Connection, DatastoreType};
use tortie_controllers::settings::{self, Refused, default_spec, explain, resolve};
use tortie_controllers::{LeaderElection, Options};
use tortie_migrate::flannel;
use tortie_operator::own_namespace;
use tortie_store::{Error, Key, Kind, Resource};
use tortie_variables as variables;

use super::{logging, until_signal, variables};
use crate::args;
use crate::args::Global;
use crate::config::{cluster, open};

/// Where the lease is if this process is in no pod.
const USUAL_NAMESPACE: &str = "kube-system";

/// Runs until a signal ends it.
pub(crate) async fn run(args: args::Controllers, global: &Global) -> Result<ExitCode> {
    let variables = variables();
    if is_flannel_migration(&variables) {
        return migrate_from_flannel(&variables, global).await;
    }
    // Before anything is asked of anybody.
    let check = resolve(&variables, DatastoreType::Etcdv3, &default_spec());
    check.map_err(|refused| anyhow::anyhow!(lines(&refused)))?;
    let connection = open(global).await?;
    let _served = connection.serve_others();
    let Connection {
        client,
        cluster: kubernetes,
        backend,
        ..
    } = connection;
    if args.explain_config {
        return explain_config(&variables, &backend, &client).await;
    }
    let cluster = cluster(kubernetes, global).await?;
    let leader_election = args.leader_elect.then(|| leader_election(&args));
    let options = Options {
        client,
        backend,
        cluster,
        stands_alone: false,
        variables,
        status_file: args.status_file,
        health_port: (args.health_port != 0).then_some(args.health_port),
        leader_election,
        set_log_level: Box::new(|level| logging::change(level.as_filter())),
    };
    tortie_controllers::run(options, until_signal()?).await?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a cluster is to be moved from flannel's network, which is a process of its own.
fn is_flannel_migration(variables: &BTreeMap<String, String>) -> bool {
    let enabled = variables.get(variables::ENABLED_CONTROLLERS);
    enabled.is_some_and(|enabled| enabled.trim() == "flannelmigration")
}

async fn migrate_from_flannel(
    variables: &BTreeMap<String, String>,
    global: &Global,
) -> Result<ExitCode> {
    let settings = flannel::Settings::read(variables);
    let settings = settings.map_err(|refused| anyhow::anyhow!(lines(&refused)))?;
    let Connection {
        client,
        cluster: kubernetes,
        ..
    } = open(global).await?;
    let cluster = cluster(kubernetes, global).await?;
    match flannel::run(client, cluster, settings).await? {
        flannel::Outcome::Done => tracing::info!("All done. Stopping Migration controller"),
        flannel::Outcome::NotNeeded(reason) => {
            tracing::info!(
                reason,
                "No migration needed. Stopping migration controller."
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn leader_election(args: &args::Controllers) -> LeaderElection {
    let given = args.leader_elect_namespace.clone().or_else(own_namespace);
    let namespace = given.unwrap_or_else(|| USUAL_NAMESPACE.to_owned());
    LeaderElection {
        lease: args.leader_elect_lease,
        renew_deadline: args.leader_elect_renew_deadline,
        retry: args.leader_elect_retry,
        ..LeaderElection::new(namespace, &args.leader_elect_name)
    }
}

async fn explain_config(
    variables: &BTreeMap<String, String>,
    backend: &Backend,
    client: &tortie_client::Client,
) -> Result<ExitCode> {
    let key = Key::global(Kind::KubeControllersConfiguration, settings::RESOURCE_NAME);
    let spec = match client.get(&key).await {
        Ok(Resource::KubeControllersConfiguration(resource)) => resource.spec,
        Ok(_) | Err(Error::NotFound(_)) => default_spec(),
        Err(error) => return Err(error).with_context(|| format!("{key} could not be read")),
    };
    let resolved = resolve(variables, backend.datastore_type(), &spec)
        .map_err(|refused| anyhow::anyhow!(lines(&refused)))?;
    let rows = explain(&resolved);
    let fields = rows
        .iter()
        .map(|row| row.field.len())
        .max()
        .unwrap_or_default();
    let values = rows
        .iter()
        .map(|row| row.value.len())
        .max()
        .unwrap_or_default();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:fields$}  {:values$}  FROM", "SETTING", "VALUE")?;
    for row in rows {
        writeln!(
            out,
            "{:fields$}  {:values$}  {}",
            row.field, row.value, row.origin
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(refused: &[Refused]) -> String {
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
