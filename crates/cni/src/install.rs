//! Installs the plugins on a node: the binaries, the network's configuration, and how to reach Kubernetes.
//!
//! Everything is first planned ([`plan`], [`plan_removal`]) and then done ([`Plan::carry_out`]), so that it can also only
//! be shown.
//!
//! # Invariants
//! - A file is replaced as a whole or not at all: a runtime never sees half of one.
//! - The configuration comes last, and goes first: a runtime that sees it finds everything that it names.
//! - A plugin of somebody else is replaced only by order, and never removed.

mod api_group;
mod binaries;
mod files;
mod kubeconfig;
mod own;
mod removal;
mod step;
mod template;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Code, Error, Result};

pub use kubeconfig::ServiceAccount;
pub use removal::{Installed, plan_removal};
pub use step::{Outcome, Plan, Step};
pub use template::Values;

/// The files by which etcd is reached.
const TLS_FILES: [&str; 3] = ["etcd-ca", "etcd-cert", "etcd-key"];
const TLS_FOLDER: &str = "calico-tls";

const KUBECONFIG: &str = "calico-kubeconfig";

/// Which binaries that are there already are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    None,
    /// Those of `calico` and `calico-ipam`, whoever installed them, and older ones of our own.
    Usual,
    /// Also those that somebody else installed.
    All,
}

/// What is to be installed, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary that answers to the names of the plugins.
    pub binary: PathBuf,
    /// Where binaries go: to each of these that can be written to.
    pub binary_folders: Vec<PathBuf>,
    /// Whether the first of these folders is made if it is missing, and the one for the configuration too.
    pub make_folders: bool,
    /// A folder with other plugins to copy; none if it is not there.
    pub other_plugins: Option<PathBuf>,
    /// Names of other plugins that are not copied.
    pub skipped: Vec<String>,
    /// Which binaries that are there already are replaced.
    pub replaced: Replaced,
    /// Where the configuration goes.
    pub config_folder: PathBuf,
    /// The same folder, as the node sees it.
    pub config_folder_on_node: PathBuf,
    /// The name of the configuration's file.
    pub config_name: String,
    /// The name of a configuration that is removed.
    pub old_config_name: String,
    /// A configuration with words in it to be replaced; the usual one if there is none.
    pub template: Option<String>,
    /// What the words are replaced with.
    pub values: Values,
    /// A folder with certificates for etcd.
    pub tls_folder: PathBuf,
    /// How to reach Kubernetes: as this account.
    pub service_account: Option<ServiceAccount>,
    /// How to reach Kubernetes: a file to copy.
    pub kubeconfig: Option<PathBuf>,
}

/// Plans what is to be done. Fails where it could not be done, before anything is.
pub async fn plan(options: &Options) -> Result<Plan> {
    let mut steps = Vec::new();
    if options.make_folders && !options.config_folder.is_dir() {
        let path = options.config_folder.clone();
        steps.push(Step::MakeFolder { path });
    }
    let tls = plan_tls(options, &mut steps);
    binaries::plan(options, &mut steps)?;
    let kubeconfig = match (&options.service_account, &options.kubeconfig) {
        (Some(account), _) => Some(account.kubeconfig().await?),
        (None, Some(file)) => {
            let failed = format!("{} cannot be read", file.display());
            let read = std::fs::read_to_string(file);
            Some(read.map_err(Error::of(Code::Io, failed))?)
        }
        (None, None) => None,
    };
    let mut values = options.values.clone();
    if values.api_group.is_empty() && values.datastore_type == "kubernetes" {
        values.api_group = match &kubeconfig {
            Some(kubeconfig) => api_group::ask(kubeconfig).await,
            None => String::new(),
        };
    }
    if let Some(content) = kubeconfig {
        let to = options.config_folder.join(KUBECONFIG);
        steps.push(Step::Write { to, content });
    }
    let on_node = &options.config_folder_on_node;
    let places = template::Places {
        kubeconfig: on_node.join(KUBECONFIG),
        tls_folder: on_node.join(TLS_FOLDER),
        tls_files: &tls,
    };
    let content = template::render(options.template.as_deref(), &values, &places)?;
    let to = options.config_folder.join(&options.config_name);
    steps.push(Step::Write { to, content });
    let old = options.config_folder.join(&options.old_config_name);
    if options.old_config_name != options.config_name && old.exists() {
        steps.push(Step::Remove { path: old });
    }
    Ok(Plan { steps })
}

/// Certificates for etcd, if there are any. Gives their names.
fn plan_tls(options: &Options, steps: &mut Vec<Step>) -> Vec<&'static str> {
    let to = options.config_folder.join(TLS_FOLDER);
    let found: Vec<&'static str> = TLS_FILES
        .into_iter()
        .filter(|name| options.tls_folder.join(name).is_file())
        .collect();
    if found.is_empty() && to.exists() {
        steps.push(Step::Remove { path: to.clone() });
    }
    for name in &found {
        steps.push(Step::Copy {
            from: options.tls_folder.join(name),
            to: to.join(name),
        });
    }
    found
}

/// Copies certificates for etcd again wherever they have changed.
pub fn refresh_tls(options: &Options) -> Result<()> {
    let mut steps = Vec::new();
    if !plan_tls(options, &mut steps).is_empty() {
        Plan { steps }.carry_out(&mut |_, _| {})?;
    }
    Ok(())
}

/// Whether plugins are to reach Kubernetes by a file that is not there.
pub fn lacks_kubeconfig(options: &Options) -> bool {
    options.service_account.is_some() && !options.config_folder.join(KUBECONFIG).exists()
}

/// Gives plugins a new token, and says how long it is good for; nothing where they have none from here. If that fails, they keep
/// the one that they have.
pub async fn renew_token(options: &Options) -> Result<Option<Duration>> {
    let Some(account) = &options.service_account else {
        return Ok(None);
    };
    let (content, lifetime) = account.renewed().await?;
    let to = options.config_folder.join(KUBECONFIG);
    Step::Write { to, content }.carry_out()?;
    Ok(Some(lifetime))
}

/// The folder that a node's own is seen under, from a container or from the node itself.
pub fn host_root() -> &'static Path {
    let in_container = Path::new("/host");
    if in_container.join("etc/cni/net.d").is_dir() || in_container.join("opt/cni/bin").is_dir() {
        in_container
    } else {
        Path::new("/")
    }
}

#[cfg(test)]
mod tests;
