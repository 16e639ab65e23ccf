//! Installs the plugins on a node: the binaries, the network's configuration, and how to reach Kubernetes.
//!
//! Everything is first planned ([`plan`]) and then done ([`Plan::carry_out`]), so that it can also only be shown.
//!
//! # Invariants
//! - A file is replaced as a whole or not at all: a runtime never sees half of one.
//! - The configuration comes last: a runtime that sees it finds everything that it names.

mod files;
mod kubeconfig;
mod template;

use std::fmt;
use std::path::{Path, PathBuf};

use tortie_files::SECRET;

use crate::error::{Code, Error, Result};

pub use kubeconfig::ServiceAccount;
pub use template::Values;

/// The names that the plugins have.
const PLUGINS: [&str; 2] = ["calico", "calico-ipam"];

/// Among the other plugins, those that are not copied.
const NOT_COPIED: [&str; 3] = ["install", "calico", "calico-ipam"];

/// The files by which etcd is reached.
const TLS_FILES: [&str; 3] = ["etcd-ca", "etcd-cert", "etcd-key"];
const TLS_FOLDER: &str = "calico-tls";

const KUBECONFIG: &str = "calico-kubeconfig";

/// What is to be installed, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary that answers to the names of the plugins.
    pub binary: PathBuf,
    /// Where binaries go: to each of these that can be written to.
    pub binary_folders: Vec<PathBuf>,
    /// A folder with other plugins to copy; none if it is not there.
    pub other_plugins: Option<PathBuf>,
    /// Names of other plugins that are not copied.
    pub skipped: Vec<String>,
    /// Whether binaries that are there already are replaced.
    pub replace_binaries: bool,
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

/// What will be done, in order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
}

#[derive(Clone)]
pub enum Step {
    /// Copies a file with its permissions.
    Copy {
        /// Which.
        from: PathBuf,
        /// Where to.
        to: PathBuf,
    },
    /// Writes a file for the owner alone.
    Write {
        /// Where to.
        to: PathBuf,
        /// What.
        content: String,
    },
    /// Removes a file, or a folder with all in it.
    Remove {
        /// Which.
        path: PathBuf,
    },
}

/// Leaves out contents: there are secrets among them.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { from, to } => write!(f, "copy {} to {}", from.display(), to.display()),
            Self::Write { to, content } => {
                let length = content.len();
                write!(f, "write {} ({length} bytes, mode 0600)", to.display())
            }
            Self::Remove { path } => write!(f, "remove {}", path.display()),
        }
    }
}

impl Plan {
    /// Does all steps.
    pub fn carry_out(&self) -> Result<()> {
        for step in &self.steps {
            tracing::info!(%step, "Installing");
            let done = match step {
                Step::Copy { from, to } => files::copy(from, to),
                Step::Write { to, content } => tortie_files::replace(to, content, SECRET),
                Step::Remove { path } => files::remove(path),
            };
            done.map_err(Error::of(Code::Other, format!("cannot {step}")))?;
        }
        Ok(())
    }
}

/// Plans what is to be done. Fails where it could not be done, before anything is.
pub async fn plan(options: &Options) -> Result<Plan> {
    let mut steps = Vec::new();
    let tls = plan_tls(options, &mut steps);
    plan_binaries(options, &mut steps)?;
    let kubeconfig = match (&options.service_account, &options.kubeconfig) {
        (Some(account), _) => Some(account.kubeconfig().await?),
        (None, Some(file)) => {
            let failed = format!("{} cannot be read", file.display());
            let read = std::fs::read_to_string(file);
            Some(read.map_err(Error::of(Code::Io, failed))?)
        }
        (None, None) => None,
    };
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
    let content = template::render(options.template.as_deref(), &options.values, &places)?;
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

fn plan_binaries(options: &Options, steps: &mut Vec<Step>) -> Result<()> {
    let mut sources: Vec<(PathBuf, String)> = PLUGINS
        .into_iter()
        .map(|name| (options.binary.clone(), name.to_owned()))
        .collect();
    sources.extend(other_plugins(options)?);
    let is_complete = |folder: &PathBuf| PLUGINS.iter().all(|name| folder.join(name).is_file());
    let mut is_placed = false;
    for folder in &options.binary_folders {
        if !files::is_writable(folder) {
            continue;
        }
        is_placed = true;
        for (from, name) in &sources {
            let to = folder.join(name);
            if options.replace_binaries || !to.exists() {
                let from = from.clone();
                steps.push(Step::Copy { from, to });
            }
        }
    }
    let may_be_there = !options.replace_binaries;
    if is_placed || (may_be_there && options.binary_folders.iter().any(is_complete)) {
        return Ok(());
    }
    let folders: Vec<String> = options
        .binary_folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let message = format!(
        "no folder for binaries can be written to: {}",
        folders.join(", ")
    );
    Err(Error::new(Code::Other, message))
}

fn other_plugins(options: &Options) -> Result<Vec<(PathBuf, String)>> {
    let Some(folder) = options.other_plugins.as_deref().filter(|f| f.is_dir()) else {
        return Ok(Vec::new());
    };
    let failed = || Error::of(Code::Io, format!("{} cannot be read", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_wanted = !NOT_COPIED.contains(&name.as_str()) && !options.skipped.contains(&name);
        if is_wanted && entry.path().is_file() {
            found.push((entry.path(), name));
        }
    }
    found.sort();
    Ok(found)
}

/// Copies certificates for etcd again wherever they have changed.
pub fn refresh_tls(options: &Options) -> Result<()> {
    let mut steps = Vec::new();
    if !plan_tls(options, &mut steps).is_empty() {
        Plan { steps }.carry_out()?;
    }
    Ok(())
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
