//! `tortie pod`: pods for a `tortie up`, made of network namespaces.
//!
//! ```text
//! pod run ──┬─▶ a Pod in the API of `up`
//!           ├─▶ a process in a network namespace of its own: it holds the pod, and answers on its ports
//!           ├─▶ the CNI plugin, as a container runtime calls it: address, interface, endpoint
//!           └─▶ a record in the data folder, by which other commands find the process
//! ```
//!
//! # Invariants
//! - A command runs in the network, and among the users, of the `up` that it is about, whether that is the machine's or not.
//! - What is left of pods whose process has ended is removed by the next `up`.

mod attempt;
mod connect;
mod destination;
mod holder;
mod list;
mod object;
mod record;
mod site;

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{self, ExitCode};

use anyhow::{Context as _, Result, anyhow};
use tortie_kernel::namespace;

use crate::args::{Global, Pod, PodCommand, PodExec, PodName};
use crate::config::data_folder;
use record::Record;

pub(super) use record::Record as PodRecord;
pub(super) use site::{NETWORK_FILE, Site};

/// The namespace of pods that are named without one.
const DEFAULT_NAMESPACE: &str = "default";

pub(super) async fn run(pod: Pod, global: &Global) -> Result<ExitCode> {
    let folder = data_folder(global);
    match pod.command {
        PodCommand::Serve(args) => holder::serve(args).await,
        PodCommand::Exec(args) => exec(&args, &folder),
        PodCommand::Run(args) => Site::connect(folder, global).await?.run(&args).await,
        PodCommand::Connect(args) => {
            let site = Site::connect(folder, global).await?;
            connect::run(&args, &site).await
        }
        PodCommand::Delete(args) => {
            let site = Site::connect(folder, global).await?;
            let mut out = anstream::stdout();
            for pod in &args.pods {
                let record = find(pod, args.namespace.as_deref(), site.folder())?;
                site.delete(&record).await?;
                writeln!(out, "Deleted pod {record}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        PodCommand::List => list::run(&Site::connect(folder, global).await?).await,
    }
}

/// Becomes another program, in a pod's network.
fn exec(args: &PodExec, folder: &Path) -> Result<ExitCode> {
    let record = find(&args.pod, args.namespace.as_deref(), folder)?;
    let network = open_network(&record)?;
    let (program, arguments) = args.command.split_first().context("there is no program")?;
    let error = namespace::run_in(network.as_fd(), || {
        process::Command::new(program).args(arguments).exec()
    });
    let error = error.with_context(|| format!("the network of pod {record} cannot be entered"))?;
    Err(anyhow!(error)).with_context(|| format!("`{}` cannot be run", program.display()))
}

/// The pod of this name that was made here.
fn find(pod: &PodName, namespace: Option<&str>, folder: &Path) -> Result<Record> {
    let namespace = pod.namespace.as_deref().or(namespace);
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let record = Record::find(folder, namespace, &pod.name)?;
    record.with_context(|| {
        format!(
            "there is no pod {namespace}/{} of `tortie pod run`; `tortie pod list` shows those that there are",
            pod.name
        )
    })
}

/// A file of a pod's network namespace.
fn open_network(record: &Record) -> Result<File> {
    let file = record.live_network().with_context(|| {
        format!(
            "the process of pod {record} has ended: `tortie pod delete {record}`, and run it anew"
        )
    })?;
    File::open(&file).with_context(|| format!("the network of pod {record} cannot be opened"))
}
