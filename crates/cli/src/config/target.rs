//! Finds out which datastore is meant, from all that may say so.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tortie_client::connect::{
    DATA_FILE, DatastoreType, Settings, Source, Target, interface_prefix,
};
use tortie_store::kubernetes::KubernetesConfig;
use tortie_store::socket;
use tortie_variables as variables;

use super::connect::{data_file, data_folder};
use crate::args::Global;

/// Looks at options, configuration file and variables. Where none of them says which datastore is meant, it is the
/// embedded one of a process that runs here, else the cluster of the user's kubeconfig, as for calicoctl, else the
/// embedded one.
///
/// The administrator's kubeconfig of a `tortie up` that runs here means what its socket does.
pub(crate) fn find_target(global: &Global, environment: Source<'_>) -> Result<Target> {
    let mut found = find_or(global, environment, |settings| {
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
    })?;
    if found.datastore == DatastoreType::Kubernetes
        && global.datastore.is_none()
        && let Some(file) = file_of_up(&found, &data_folder(global))
    {
        found.datastore = DatastoreType::Embedded;
        found.data_file = file;
    }
    Ok(found)
}

/// The same for `up`, which is on its own unless something says otherwise.
pub(crate) fn target_of_up(global: &Global, environment: Source<'_>) -> Result<Target> {
    find_or(global, environment, |_| DatastoreType::Embedded)
}

fn find_or(
    global: &Global,
    environment: Source<'_>,
    unsaid: impl FnOnce(&mut Settings) -> DatastoreType,
) -> Result<Target> {
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
    Ok(Target {
        datastore,
        data_file: data_file(global),
        config: global.config.clone(),
        settings,
        interface_prefix: interface_prefix(environment),
    })
}

/// The file of the `up` that the kubeconfig leads to as its administrator, if it runs on this machine: in the folder
/// of the kubeconfig, or in the usual one.
fn file_of_up(target: &Target, usual: &Path) -> Option<PathBuf> {
    // What is wrong with the settings or the kubeconfig is said by whoever uses it.
    let config = target.kubernetes().ok()?;
    let beside = config.kubeconfig.iter().filter_map(|file| file.parent());
    let mut folders = beside.chain([usual]);
    folders.find_map(|folder| {
        let file = folder.join(DATA_FILE);
        UnixStream::connect(socket::path_beside(&file)).ok()?;
        let own = KubernetesConfig {
            kubeconfig: vec![folder.join("kubeconfig")],
            ..KubernetesConfig::default()
        };
        let is_same = config.is_same_access_as(&own).unwrap_or(false);
        is_same.then_some(file)
    })
}

/// The kubeconfig of a user who has named none.
fn kubeconfig_of_user(environment: Source<'_>) -> Option<String> {
    let home = environment(variables::HOME).filter(|home| !home.is_empty())?;
    let file = Path::new(&home).join(".kube/config");
    file.exists().then(|| file.display().to_string())
}

/// Whether the program answers to the name of Calico's own.
fn is_called_calicoctl() -> bool {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    name == "calicoctl" || name == "kubectl-calico"
}
