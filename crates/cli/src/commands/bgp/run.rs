//! `tortie bgp`: the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tokio::sync::mpsc;
use tortie_bgp::speaker::{Bird, Farewell, Options, Report, Speaker, Syntax};
use tortie_client::connect::{Connection, environment};
use tortie_serve::Answers;
use tortie_variables as variables;

use super::load;
use crate::args::{BIRD1_FOLDER, BIRD2_FOLDER, BgpRun, BirdSyntax, Global};
use crate::commands::until_signal;
use crate::config::await_with;

/// Where programs for administrators are, which PATH may lack.
const ADMINISTRATION: &str = "/usr/sbin";

/// What is said where BIRD is needed and not there.
pub(in crate::commands) const MISSING_BIRD: &str =
    "there is no program `bird` in PATH nor /usr/sbin: install the package bird2";

/// Runs until a signal ends it.
pub(super) async fn run(args: &BgpRun, global: &Global) -> Result<ExitCode> {
    let options = options(args)?;
    let connection = await_with(global, &environment).await?;
    let served = connection.serve_others();
    let Connection {
        client, cluster, ..
    } = connection;
    let speaker = Speaker::new(options, Arc::clone(client.store()), cluster);
    let metrics = match args.metrics {
        Some(address) => {
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
            Some(tokio::spawn(answers(speaker.report()).serve(listener)))
        }
        None => None,
    };
    let (say, farewell) = mpsc::channel(1);
    let how = if args.withdraw {
        Farewell::Withdraw
    } else {
        Farewell::Stay
    };
    let signal = until_signal()?;
    tokio::spawn(async move {
        signal.await;
        let _ = say.send(how).await;
    });
    let outcome = speaker.run(farewell).await;
    if let Some(metrics) = metrics {
        metrics.abort();
    }
    if let Some(served) = served {
        served.end().await;
    }
    outcome.context("BIRD cannot be kept up to date")?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &BgpRun) -> Result<Options> {
    let (syntax, folder) = match args.syntax {
        BirdSyntax::Bird2 => (Syntax::Bird2, BIRD2_FOLDER),
        BirdSyntax::Bird1 => (Syntax::Bird1, BIRD1_FOLDER),
    };
    let found = args.bird.clone().or_else(find_bird);
    let bird = match (args.no_bird, found) {
        (true, found) => Bird::External(found),
        (false, _) if syntax == Syntax::Bird1 => bail!(
            "BIRD 1.6 is two daemons, which somebody else has to start: give --no-bird, or leave --syntax at bird2"
        ),
        (false, Some(program)) => Bird::Supervised(program),
        (false, None) => bail!(
            "{MISSING_BIRD}, say where it is with --bird, or give --no-bird if somebody else runs it"
        ),
    };
    Ok(Options {
        identity: load::identity(args.node.as_deref())?,
        syntax,
        config_folder: args.config_folder.clone().unwrap_or_else(|| folder.into()),
        run_folder: args.run.folder.clone(),
        bird,
        workloads: args.workloads.clone(),
        secret_namespace: load::secret_namespace(args.secret_namespace.as_deref()),
    })
}

/// The program `bird`, if it is there.
pub(in crate::commands) fn find_bird() -> Option<PathBuf> {
    let path = std::env::var_os(variables::PATH).unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([Path::new(ADMINISTRATION).to_owned()]);
    folders
        .map(|folder| folder.join("bird"))
        .find(|path| path.is_file())
}

/// `/metrics`, `/healthz` and `/status`.
fn answers(report: impl Fn() -> Report + Send + Sync + 'static) -> Answers {
    let report = Arc::new(report);
    let [metrics, health] = [(); 2].map(|()| Arc::clone(&report));
    Answers::new()
        .metrics(move || metrics().metrics())
        .check(&["/healthz"], move || {
            let report = health();
            match report.failure {
                None if report.in_sync => Ok("ok\n".to_owned()),
                None => Err("the datastore is not followed now\n".to_owned()),
                Some(failure) => Err(failure + "\n"),
            }
        })
        .document("/status", "application/json", move || {
            serde_json::to_string_pretty(&report()).unwrap_or_default() + "\n"
        })
}
