//! The datastore that is meant, once everything that says so has been looked at.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{DEFAULT_FILE, Datastore, DatastoreType, Settings, Source};
use tortie_store::kubernetes::KubernetesConfig;
use tortie_store::{Error, Result};

/// The datastore that is meant, with nothing left to be found out: who has this reaches the same one, whatever its own
/// options, variables and folder are. In writing, secrets are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its kind.
    pub datastore: DatastoreType,
    /// The file of the embedded datastore.
    pub data_file: PathBuf,
    /// The configuration file, which may have secrets.
    pub config: PathBuf,
    /// How others are reached.
    pub settings: Settings,
    /// What names of pod interfaces start with, where that is not the usual.
    pub interface_prefix: Option<String>,
}

impl Target {
    /// What it takes to open it.
    pub fn datastore(&self) -> Result<Datastore> {
        Ok(match self.datastore {
            DatastoreType::Embedded => Datastore::Embedded(self.data_file.clone()),
            DatastoreType::Etcdv3 => Datastore::Etcd(self.settings.etcd()?),
            DatastoreType::Kubernetes => Datastore::Kubernetes(self.kubernetes()?),
        })
    }

    /// The cluster that is meant, whether or not it is the datastore.
    pub fn kubernetes(&self) -> Result<KubernetesConfig> {
        let config = self.settings.kubernetes()?;
        Ok(KubernetesConfig {
            veth_prefix: self.interface_prefix.clone().unwrap_or(config.veth_prefix),
            ..config
        })
    }

    /// The same for another process, at another time: no path depends on the present folder, and no cluster on what
    /// will be the current context of a kubeconfig.
    pub fn pinned(mut self) -> Result<Self> {
        let absolute = |path: &Path| {
            let made = std::path::absolute(path);
            made.map_err(|error| Error::other(format!("the path `{}`", path.display()), error))
        };
        self.data_file = absolute(&self.data_file)?;
        self.config = absolute(&self.config)?;
        self.settings.make_paths_absolute()?;
        if self.datastore == DatastoreType::Kubernetes
            && self.settings.k8s_current_context.is_empty()
        {
            let current = self.kubernetes()?.current_context()?;
            self.settings.k8s_current_context = current.unwrap_or_default();
        }
        Ok(self)
    }

    /// With the secrets that were left out, from where secrets are given.
    pub fn with_secrets(mut self, environment: Source<'_>) -> Result<Self> {
        let file = if self.config.exists() {
            &self.config
        } else {
            Path::new(DEFAULT_FILE)
        };
        let found = Settings::load(file, environment)?;
        self.settings.fill_secrets(&found);
        Ok(self)
    }
}
