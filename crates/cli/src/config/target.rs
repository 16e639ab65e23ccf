//! The datastore that is meant, once everything that says so has been looked at.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tortie_store::kubernetes::KubernetesConfig;
use tortie_store::socket;

use super::connect::{DATA_FILE, data_file, data_folder, kubernetes};
use super::{Settings, Source};
use crate::args::{DatastoreType, Global};

/// The datastore that is meant, with nothing left to be found out: who has this reaches the same one, whatever its own
/// options, variables and folder are. In writing, secrets are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    pub(crate) datastore: DatastoreType,
    /// The file of the embedded datastore.
    pub(crate) data_file: PathBuf,
    /// The configuration file, which may have secrets.
    pub(crate) config: PathBuf,
    pub(crate) settings: Settings,
    /// What names of pod interfaces start with, where that is not the usual.
    pub(crate) interface_prefix: Option<String>,
}

impl Target {
    /// Looks at options, configuration file and variables. Where none of them says which datastore is meant, it is the
    /// embedded one of a process that runs here, else the cluster of the user's kubeconfig, as for calicoctl, else the
    /// embedded one.
    ///
    /// The administrator's kubeconfig of a `tortie up` that runs here means what its socket does.
    pub(crate) fn find(global: &Global, environment: Source<'_>) -> Result<Self> {
        let mut found = Self::find_by_settings(global, environment)?;
        if found.datastore == DatastoreType::Kubernetes
            && global.datastore.is_none()
            && let Some(file) = found.file_of_up(&data_folder(global))
        {
            found.datastore = DatastoreType::Embedded;
            found.data_file = file;
        }
        Ok(found)
    }

    fn find_by_settings(global: &Global, environment: Source<'_>) -> Result<Self> {
        Self::find_or(global, environment, |settings| {
            if global.data_dir.is_some() || global.data_file.is_some() {
                return DatastoreType::Embedded;
            }
            let own = kubeconfig_of_user(environment);
            let has_kubeconfig = own.is_some();
            settings.kubeconfig = own.unwrap_or_default();
            if is_called_calicoctl() {
                return DatastoreType::Kubernetes;
            }
            if has_kubeconfig && !socket::path_beside(&data_file(global)).exists() {
                return DatastoreType::Kubernetes;
            }
            DatastoreType::Embedded
        })
    }

    /// The same for `up`, which is on its own unless something says otherwise.
    pub(crate) fn of_up(global: &Global, environment: Source<'_>) -> Result<Self> {
        Self::find_or(global, environment, |_| DatastoreType::Embedded)
    }

    fn find_or(
        global: &Global,
        environment: Source<'_>,
        unsaid: impl FnOnce(&mut Settings) -> DatastoreType,
    ) -> Result<Self> {
        let mut settings = Settings::load(&global.config, environment)?;
        if let Some(context) = &global.context {
            settings.k8s_current_context.clone_from(context);
        }
        let datastore = match global.datastore {
            Some(datastore) => datastore,
            None => settings
                .datastore()?
                .unwrap_or_else(|| unsaid(&mut settings)),
        };
        let prefixes = environment("FELIX_INTERFACEPREFIX").unwrap_or_default();
        let prefix = prefixes.split(',').next().filter(|text| !text.is_empty());
        Ok(Self {
            datastore,
            data_file: data_file(global),
            config: global.config.clone(),
            settings,
            interface_prefix: prefix.map(str::to_owned),
        })
    }

    /// The same for another process, at another time: no path depends on the present folder, and no cluster on what
    /// will be the current context of a kubeconfig.
    pub(crate) fn pinned(mut self) -> Result<Self> {
        self.data_file = std::path::absolute(&self.data_file)?;
        self.config = std::path::absolute(&self.config)?;
        self.settings.make_paths_absolute()?;
        let context = &mut self.settings.k8s_current_context;
        if self.datastore == DatastoreType::Kubernetes && context.is_empty() {
            let current = self.kubernetes().current_context()?;
            self.settings.k8s_current_context = current.unwrap_or_default();
        }
        Ok(self)
    }

    /// The file of the `up` that the kubeconfig leads to as its administrator, if it runs on this machine: in the folder
    /// of the kubeconfig, or in the usual one.
    fn file_of_up(&self, usual: &Path) -> Option<PathBuf> {
        let config = self.kubernetes();
        let beside = config.kubeconfig.iter().filter_map(|file| file.parent());
        let mut folders = beside.chain([usual]);
        folders.find_map(|folder| {
            let file = folder.join(DATA_FILE);
            UnixStream::connect(socket::path_beside(&file)).ok()?;
            let own = KubernetesConfig {
                kubeconfig: vec![folder.join("kubeconfig")],
                ..KubernetesConfig::default()
            };
            // What is wrong with the kubeconfig is said by whoever uses it.
            let is_same = config.is_same_access_as(&own).unwrap_or(false);
            is_same.then_some(file)
        })
    }

    /// With the secrets that were left out, from where secrets are given.
    pub(crate) fn with_secrets(mut self, environment: Source<'_>) -> Result<Self> {
        let found = if self.config.exists() {
            Settings::load(&self.config, environment)?
        } else {
            Settings::load(Path::new(super::DEFAULT_FILE), environment)?
        };
        self.settings.fill_secrets(&found);
        Ok(self)
    }

    pub(super) fn kubernetes(&self) -> KubernetesConfig {
        let config = kubernetes(&self.settings);
        KubernetesConfig {
            veth_prefix: self.interface_prefix.clone().unwrap_or(config.veth_prefix),
            ..config
        }
    }
}

/// The kubeconfig of a user who has named none.
fn kubeconfig_of_user(environment: Source<'_>) -> Option<String> {
    let home = environment("HOME").filter(|home| !home.is_empty())?;
    let file = Path::new(&home).join(".kube/config");
    file.exists().then(|| file.display().to_string())
}

/// Whether the program answers to the name of Calico's own.
fn is_called_calicoctl() -> bool {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    name == "calicoctl" || name == "kubectl-calico"
}
