//! Which datastore to use, and how to reach it: the same for every program, whatever it is told by.
//!
//! The same settings can come from options, from calicoctl's configuration file, from the configuration of a CNI network
//! and from the environment, where each variable may also carry the prefix `CALICO_`, which wins. Earlier ones of these win.
//! All variables that name a datastore are read here.

mod felix;
mod settings;
mod target;

pub use felix::felix_variable;
pub use settings::{DEFAULT_FILE, Settings};
pub use target::Target;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tortie_error::Causes;

use crate::client::Client;
use tortie_store::embedded::DEFAULT_QUOTA;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::shared::{self, Served, Shared};
use tortie_store::{Error, Result, Store};
use tortie_variables as variables;

/// Where root's embedded datastore is.
pub const ROOTS_FOLDER: &str = "/var/lib/tortie";

/// The file of the embedded datastore in its folder.
pub const DATA_FILE: &str = "tortie.redb";

/// The variable that names the folder of the embedded datastore.
pub const DATA_FOLDER_VARIABLE: &str = variables::TORTIE_DATA_DIR;

/// The variable that names the file of the embedded datastore.
pub const DATA_FILE_VARIABLE: &str = variables::TORTIE_DATA_FILE;

/// What `tortie up` makes beside its store, after that.
const WITNESSES: [&str; 2] = ["ca.key", "token"];

/// Where a variable's value comes from; tests give their own.
pub type Source<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// The kinds of datastore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DatastoreType {
    /// A file on this machine; nothing else is needed.
    Embedded,
    /// etcd, with Calico's keys.
    Etcdv3,
    /// Kubernetes, with Calico's custom resources.
    Kubernetes,
}

/// A datastore, with all that it takes to reach it.
#[derive(Debug, Clone)]
pub enum Datastore {
    /// In a file.
    Embedded(PathBuf),
    Etcd(EtcdConfig),
    /// In a cluster.
    Kubernetes(KubernetesConfig),
}

/// An open datastore.
pub struct Connection {
    /// The datastore.
    pub client: Client,
    /// The cluster, where that is the datastore: for objects that are not resources.
    pub cluster: Option<kube::Client>,
    /// What kind of datastore it is.
    pub backend: Backend,
    /// The file of the embedded datastore, if this process is the one that has it open.
    pub own_file: Option<PathBuf>,
}

/// The kinds of open datastore, with what only they can do.
#[derive(Debug, Clone)]
pub enum Backend {
    /// A file on this machine.
    Embedded,
    Etcd(EtcdStore),
    /// Custom resources of a cluster.
    Kubernetes(KubernetesStore),
}

// === impl DatastoreType ===

impl DatastoreType {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Etcdv3 => "etcdv3",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl fmt::Display for DatastoreType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DatastoreType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "embedded" => Ok(Self::Embedded),
            "etcdv3" | "etcd" => Ok(Self::Etcdv3),
            "kubernetes" | "k8s" | "kdd" => Ok(Self::Kubernetes),
            _ => Err(Error::message(format!(
                "datastore type `{text}` is not known; use embedded, etcdv3 or kubernetes"
            ))),
        }
    }
}

// === impl Datastore ===

impl Datastore {
    /// Opens it, and finds out whether it answers. An embedded one is reached through the process that has it open, if
    /// there is one, and those that have it for a moment are waited for.
    pub async fn open(&self) -> Result<Connection> {
        let (mut cluster, mut own_file) = (None, None);
        let (store, backend): (Arc<dyn Store>, Backend) = match self {
            Self::Embedded(file) => {
                let opened = embedded(file, DEFAULT_QUOTA).await?;
                own_file = matches!(opened, Shared::Own(_)).then(|| file.clone());
                (opened.into_store(), Backend::Embedded)
            }
            Self::Etcd(config) => {
                let store = EtcdStore::connect(config).await?;
                (Arc::new(store.clone()), Backend::Etcd(store))
            }
            Self::Kubernetes(config) => {
                let store = KubernetesStore::connect(config).await?;
                cluster = Some(store.client().clone());
                (Arc::new(store.clone()), Backend::Kubernetes(store))
            }
        };
        Ok(Connection {
            client: Client::new(store),
            cluster,
            backend,
            own_file,
        })
    }

    /// What tells it from others on this machine, without secrets.
    pub fn place(&self) -> String {
        match self {
            Self::Embedded(file) => file.display().to_string(),
            Self::Etcd(config) => config.endpoints.join(","),
            Self::Kubernetes(config) => format!("{config:?}"),
        }
    }
}

// === impl Connection ===

impl Connection {
    /// Serves other processes, which this one keeps from the file. Where that cannot be done it is said, and they wait.
    pub fn serve_others(&self) -> Option<Served> {
        let file = self.own_file.as_deref()?;
        let served = shared::serve(Arc::clone(self.client.store()), file);
        served
            .inspect_err(|error| {
                tracing::warn!(
                    error = %Causes(error),
                    "No other command reaches the datastore while this process runs"
                );
            })
            .ok()
    }
}

// === impl Backend ===

impl Backend {
    /// The kind alone.
    pub fn datastore_type(&self) -> DatastoreType {
        match self {
            Self::Embedded => DatastoreType::Embedded,
            Self::Etcd(_) => DatastoreType::Etcdv3,
            Self::Kubernetes(_) => DatastoreType::Kubernetes,
        }
    }
}

/// The variables of this process.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Opens the embedded datastore with a quota of bytes. A file is not made anew where something tells that there was one.
pub async fn embedded(file: &Path, quota: u64) -> Result<Shared> {
    check_not_lost(file)?;
    Shared::open(file, quota, shared::PATIENCE).await
}

fn check_not_lost(file: &Path) -> Result<()> {
    let size = std::fs::metadata(file).map(|metadata| metadata.len());
    let what = match size {
        Ok(0) => "empty",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "not there",
        Ok(_) | Err(_) => return Ok(()),
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    let Some(witness) = WITNESSES.iter().find(|name| folder.join(name).exists()) else {
        return Ok(());
    };
    let (file, folder) = (file.display(), folder.display());
    Err(Error::message(format!(
        "the store {file} is {what}, though `{witness}` beside it tells that there was one: restore a backup with \
         `tortie datastore restore`, or begin anew, with new certificates, after `mv {folder} {folder}.old`"
    )))
}

/// The file of the embedded datastore that the variables mean.
pub fn data_file(environment: Source<'_>) -> PathBuf {
    let given = |name| set(environment, name).map(PathBuf::from);
    given(DATA_FILE_VARIABLE).unwrap_or_else(|| {
        let folder = given(DATA_FOLDER_VARIABLE);
        folder
            .unwrap_or_else(|| usual_folder(environment))
            .join(DATA_FILE)
    })
}

/// Where everything of the embedded datastore is unless told otherwise: the system's folder for root, the user's own for
/// everybody else.
pub fn usual_folder(environment: Source<'_>) -> PathBuf {
    // `sudo` may leave the variables of whoever calls it.
    let is_root = rustix::process::geteuid().is_root();
    let home = set(environment, variables::HOME).filter(|_| !is_root);
    match (set(environment, variables::XDG_DATA_HOME), home) {
        (Some(data), _) => Path::new(&data).join("tortie"),
        (None, Some(home)) => Path::new(&home).join(".local/share/tortie"),
        (None, None) => ROOTS_FOLDER.into(),
    }
}

/// What names of the interfaces of pods start with, where the variables say so.
pub fn interface_prefix(environment: Source<'_>) -> Option<String> {
    let prefixes = set(environment, variables::FELIX_INTERFACEPREFIX)?;
    let first = prefixes.split(',').next().map(str::trim);
    first.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A variable that is set to something.
fn set(environment: Source<'_>, name: &str) -> Option<String> {
    environment(name).filter(|value| !value.is_empty())
}
