//! The commands, one file each, and what they have in common: errors, exit codes and the connection.

mod agent;
mod apiserver;
mod bgp;
pub(crate) mod cni;
mod completion;
mod confirm;
mod controllers;
mod convert;
mod crds;
mod datastore;
mod demo;
mod describe;
mod diags;
mod diff;
mod down;
mod edit;
mod get;
mod install;
mod ipam;
mod isolation;
mod kinds;
mod kubeconfig;
mod kubernetes;
mod label;
mod logging;
mod man;
mod node;
mod operator;
mod patch;
mod pod;
mod render;
mod replay;
pub(crate) mod report;
mod root;
mod selector;
mod status;
mod up;
mod validate;
mod version;
mod why;
mod write;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Cli, ClusterCommand, CniCommand, Command};
use crate::config::{connect_to_write, open, open_to_write};

/// Runs a command to its exit code: 0 done, 1 failed; `selector`, `why`, `bgp why`, `diff` and `node` also 2.
pub(crate) fn run(mut cli: Cli) -> ExitCode {
    if let Some(code) = cni::by_command(&cli) {
        return code;
    }
    logging::start(&cli.global);
    let outcome = up::enter_network(&mut cli).and_then(|()| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.enable_all().build()?.block_on(dispatch(cli))
    });
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if stderr does not take the message.
            let _ = writeln!(anstream::stderr(), "{}", report::error(&error));
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(cli: Cli) -> Result<ExitCode> {
    let Cli { command, global } = cli;
    root::check(&command)?;
    if let Some(caller) = caller(&command) {
        confirm::resume(caller).await;
    }
    match command {
        Command::Get(args) => {
            let connection = open(&global).await?;
            let _served = args.watch.then(|| connection.serve_others());
            get::run(args, &connection.client).await
        }
        Command::Describe(args) => describe::run(&args, &global).await,
        Command::Create(args) => {
            let mode = write::Mode::Create {
                skip_exists: args.skip_exists,
            };
            write::run(&args.files, mode, args.dry_run, &global).await
        }
        Command::Apply(args) => match args.confirm {
            Some(seconds) => confirm::apply(&args.files, seconds, &global).await,
            None => write::run(&args.files, write::Mode::Apply, args.dry_run, &global).await,
        },
        Command::Diff(args) => diff::run(&args, &global).await,
        Command::Edit(args) => {
            let connection = open_to_write(&global).await?;
            let _served = connection.serve_others();
            edit::run(&args, &connection.client).await
        }
        Command::Confirm(args) => confirm::run(args).await,
        Command::Replace(args) => {
            write::run(&args.files, write::Mode::Replace, args.dry_run, &global).await
        }
        Command::Delete(args) => write::delete(args, &global).await,
        Command::Patch(args) => patch::run(args, &connect_to_write(&global).await?).await,
        Command::Label(args) => label::run(args, &connect_to_write(&global).await?).await,
        Command::Validate(args) => validate::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Selector(args) => selector::run(&args),
        Command::Status(args) => status::run(&args, &global).await,
        Command::Why(args) => why::run(&args, &global).await,
        Command::Up(args) => up::run(&args, &global).await,
        Command::Down(_) => down::run(&global).await,
        Command::Pod(args) => pod::run(args, &global).await,
        Command::Kubeconfig(args) => kubeconfig::run(args, &global),
        Command::Agent(args) => agent::run(&args, &global).await,
        Command::Controllers(args) => Box::pin(controllers::run(args, &global)).await,
        Command::ApiServer(args) => apiserver::run(args, &global).await,
        Command::Webhooks(args) => apiserver::run_webhooks(args, &global).await,
        Command::Cni(args) => match args.command {
            CniCommand::Install(args) => cni::install(&args).await,
            CniCommand::Uninstall(args) => cni::uninstall(&args),
            // The plugins have run already.
            _ => Ok(ExitCode::SUCCESS),
        },
        Command::Render(args) => render::run(&args, &global).await,
        Command::Ipam(args) => ipam::run(args, &global).await,
        Command::Datastore(args) => datastore::run(args, &global).await,
        Command::Bgp(args) => bgp::run(&args, &global).await,
        Command::Install(args) => install::run(&args, &global).await,
        Command::Node(args) => node::run(args, &global).await,
        Command::Cluster(args) => match args.command {
            ClusterCommand::Diags(args) => diags::cluster::run(&args, &global).await,
        },
        Command::Operator(args) => operator::run(args),
        Command::Demo(args) => demo::run(&args, &global).await,
        Command::Replay(args) => replay::run(&args),
        Command::Version(args) => version::run(&args, &global).await,
        Command::Man(args) => man::run(&args),
        Command::Completion(args) => completion::run(&args),
    }
}

/// As whom a command takes up what waits for confirmation; nothing where it does not use a datastore.
fn caller(command: &Command) -> Option<confirm::Caller> {
    match command {
        Command::Up(args) if args.print_systemd => None,
        Command::Up(_) | Command::Agent(_) | Command::Bgp(_) | Command::Controllers(_) => {
            Some(confirm::Caller::Service)
        }
        Command::Get(_)
        | Command::Describe(_)
        | Command::Create(_)
        | Command::Apply(_)
        | Command::Diff(_)
        | Command::Edit(_)
        | Command::Replace(_)
        | Command::Delete(_)
        | Command::Patch(_)
        | Command::Label(_)
        | Command::Status(_)
        | Command::Why(_)
        | Command::Ipam(_)
        | Command::Datastore(_)
        | Command::Cluster(_)
        | Command::Node(_) => Some(confirm::Caller::Command),
        _ => None,
    }
}

/// Becomes ready when a signal asks the process to end.
fn until_signal() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The variables of the process that can be read.
fn variables() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Whether the reader of our output went away, as `head` does; that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
