//! Opens the datastore that the settings mean.

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tortie_api::crd::Group;
use tortie_operator::Backoff;
use tortie_store::embedded::DEFAULT_QUOTA;
use tortie_store::etcd::{EtcdConfig, EtcdStore, Pem};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::shared::{self, Served, Shared};
use tortie_store::{Client, Store};

use super::waiting::waiting;
use super::{Settings, Source, Target};
use crate::args::{DatastoreType, Global};
use crate::commands::report;

/// Where root's embedded datastore is.
pub(crate) const ROOTS_FOLDER: &str = "/var/lib/tortie";

/// The file in such a folder.
pub(super) const DATA_FILE: &str = "tortie.redb";

/// The pauses of those who wait for a datastore.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(500),
    most: Duration::from_secs(4),
    jitter: 0.2,
};

/// What `tortie up` makes beside its store, after that.
const WITNESSES: [&str; 2] = ["ca.key", "token"];

/// An open datastore.
pub(crate) struct Connection {
    /// The datastore.
    pub(crate) client: Client,
    /// The cluster, where that is the datastore: for objects that are not resources.
    pub(crate) cluster: Option<kube::Client>,
    /// What kind of datastore it is.
    pub(crate) backend: Backend,
    /// The file of the embedded datastore, if this process is the one that has it open.
    pub(crate) own_file: Option<PathBuf>,
}

impl Connection {
    /// Serves other processes, which this one keeps from the file. Where that cannot be done it is said, and they wait.
    pub(crate) fn serve_others(&self) -> Option<Served> {
        let file = self.own_file.as_deref()?;
        match shared::serve(Arc::clone(self.client.store()), file) {
            Ok(served) => Some(served),
            Err(error) => {
                tracing::warn!(
                    "no other command reaches the datastore while this process runs: {:#}",
                    anyhow::Error::from(error)
                );
                None
            }
        }
    }
}

/// The kinds of datastore, with what only they can do.
pub(crate) enum Backend {
    Embedded,
    Etcd(EtcdStore),
    Kubernetes(KubernetesStore),
}

impl Backend {
    /// What people call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Etcd(_) => "etcdv3",
            Self::Kubernetes(_) => "kubernetes",
        }
    }
}

impl From<Backend> for tortie_controllers::Backend {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Etcd(etcd) => Self::Etcd(etcd),
            Backend::Kubernetes(store) => Self::Kubernetes(store),
            Backend::Embedded => Self::Other,
        }
    }
}

/// Opens the datastore; the error says which one was meant and why it cannot be used.
pub(crate) async fn connect(global: &Global) -> Result<Client> {
    Ok(open(global).await?.client)
}

/// The same for who is going to write. Where that is the embedded datastore it is said, since many people have several.
pub(crate) async fn connect_to_write(global: &Global) -> Result<Client> {
    Ok(open_to_write(global).await?.client)
}

/// The same, with the cluster.
pub(crate) async fn open_to_write(global: &Global) -> Result<Connection> {
    let environment = |name: &str| std::env::var(name).ok();
    let target = Target::find(global, &environment)?;
    if target.datastore == DatastoreType::Embedded {
        let file = target.data_file.display();
        writeln!(
            anstream::stderr(),
            "Writing to the embedded datastore {file}"
        )?;
    }
    open_target(&target).await
}

/// The same, with the cluster.
pub(crate) async fn open(global: &Global) -> Result<Connection> {
    let environment = |name: &str| std::env::var(name).ok();
    open_target(&Target::find(global, &environment)?).await
}

/// The same for a process that stays, where the variables are these: it waits for a datastore elsewhere that does not answer
/// yet.
pub(crate) async fn await_with(global: &Global, environment: Source<'_>) -> Result<Connection> {
    let target = Target::find(global, environment)?;
    let mut failures = 0;
    loop {
        match open_target(&target).await {
            Err(error) if target.datastore != DatastoreType::Embedded && is_unavailable(&error) => {
                let pause = RETRY.after(failures);
                failures += 1;
                tracing::warn!(
                    "{}; what is enforced stays as it is; trying again in {pause:.1?}",
                    report::error(&error)
                );
                tokio::time::sleep(pause).await;
            }
            opened => return opened,
        }
    }
}

fn is_unavailable(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<tortie_store::Error>();
    error.is_some_and(tortie_store::Error::is_retryable)
}

/// Opens the datastore that was found before.
pub(crate) async fn open_target(target: &Target) -> Result<Connection> {
    tracing::debug!(?target.datastore, "Opening the datastore");
    let (mut cluster, mut is_own_file) = (None, false);
    let (store, backend): (Arc<dyn Store>, Backend) = match target.datastore {
        DatastoreType::Embedded => {
            let opened = embedded(&target.data_file, DEFAULT_QUOTA).await?;
            is_own_file = matches!(opened, Shared::Own(_));
            (opened.into_store(), Backend::Embedded)
        }
        DatastoreType::Etcdv3 => {
            let config = etcd(&target.settings)?;
            let store = waiting("etcd", EtcdStore::connect(&config)).await?;
            (Arc::new(store.clone()), Backend::Etcd(store))
        }
        DatastoreType::Kubernetes => {
            let config = target.kubernetes();
            let store = waiting("Kubernetes", KubernetesStore::connect(&config)).await?;
            cluster = Some(store.client().clone());
            (Arc::new(store.clone()), Backend::Kubernetes(store))
        }
    };
    Ok(Connection {
        client: Client::new(store),
        cluster,
        backend,
        own_file: is_own_file.then(|| target.data_file.clone()),
    })
}

/// The cluster: that of the datastore, or else the one that the settings mean.
pub(crate) async fn cluster(
    of_datastore: Option<kube::Client>,
    global: &Global,
) -> Result<kube::Client> {
    if let Some(cluster) = of_datastore {
        return Ok(cluster);
    }
    let target = Target::find(global, &|name| std::env::var(name).ok())?;
    // With a group given, nothing is asked of the API server.
    let config = KubernetesConfig {
        api_group: Some(Group::V3),
        ..target.kubernetes()
    };
    Ok(KubernetesStore::connect(&config).await?.client().clone())
}

/// The embedded datastore: through the process that has it open, if there is one. Others that end soon are waited for.
pub(crate) async fn embedded(file: &Path, quota: u64) -> Result<Shared> {
    tell_of_roots(file)?;
    check_not_lost(file)?;
    Ok(Shared::open(file, quota, shared::PATIENCE).await?)
}

/// Refuses to make a file anew where something tells that there was one.
fn check_not_lost(file: &Path) -> Result<()> {
    let size = std::fs::metadata(file).map(|metadata| metadata.len());
    let what = match size {
        Ok(0) => "empty",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "not there",
        Ok(_) | Err(_) => return Ok(()),
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    if let Some(witness) = WITNESSES.iter().find(|name| folder.join(name).exists()) {
        let (file, folder) = (file.display(), folder.display());
        bail!(
            "the store {file} is {what}, though `{witness}` beside it tells that there was one: restore a backup with \
             `tortie datastore restore`, or begin anew, with new certificates, after `mv {folder} {folder}.old`"
        );
    }
    Ok(())
}

/// The file of the embedded datastore.
pub(crate) fn data_file(global: &Global) -> PathBuf {
    let file = global.data_file.clone();
    file.unwrap_or_else(|| data_folder(global).join(DATA_FILE))
}

/// Where everything of the embedded datastore is: the system's folder for root, the user's own for everybody else.
pub(crate) fn data_folder(global: &Global) -> PathBuf {
    if let Some(folder) = &global.data_dir {
        return folder.clone();
    }
    if let Some(folder) = global.data_file.as_deref().and_then(Path::parent) {
        return folder.to_owned();
    }
    let folder = match (std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME")) {
        (Some(data), _) if !data.is_empty() => PathBuf::from(data),
        (_, Some(home)) if !is_root() && !home.is_empty() => {
            PathBuf::from(home).join(".local/share")
        }
        _ => PathBuf::from("/var/lib"),
    };
    folder.join("tortie")
}

/// Makes such a folder, for its owner alone.
pub(crate) fn make_data_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("the data folder {} cannot be made", folder.display()))
}

/// `sudo` may leave the variables of whoever calls it.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Tells users who are about to begin with a datastore of their own that root has one.
fn tell_of_roots(file: &Path) -> Result<()> {
    if is_root() || file.exists() || !Path::new(ROOTS_FOLDER).exists() {
        return Ok(());
    }
    writeln!(
        anstream::stderr(),
        "note: root has a datastore on this machine, in {ROOTS_FOLDER}, which is for root alone (`sudo tortie …`); this is \
         one of your own"
    )?;
    Ok(())
}

fn etcd(settings: &Settings) -> Result<EtcdConfig> {
    if !settings.etcd_discovery_srv.is_empty() {
        bail!(
            "etcd discovery through DNS (ETCD_DISCOVERY_SRV) is not there; list the members in ETCD_ENDPOINTS"
        );
    }
    let pem = |inline: &str, file: &str| match (inline, file) {
        ("", "") => None,
        ("", file) => Some(Pem::File(file.into())),
        (text, _) => Some(Pem::Inline(text.to_owned())),
    };
    Ok(EtcdConfig {
        endpoints: settings
            .etcd_endpoints
            .split(',')
            .map(|endpoint| endpoint.trim().to_owned())
            .collect(),
        username: settings.etcd_username.clone(),
        password: settings.etcd_password.clone(),
        ca: pem(&settings.etcd_ca_cert, &settings.etcd_ca_cert_file),
        cert: pem(&settings.etcd_cert, &settings.etcd_cert_file),
        key: pem(&settings.etcd_key, &settings.etcd_key_file),
    })
}

pub(super) fn kubernetes(settings: &Settings) -> KubernetesConfig {
    let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    KubernetesConfig {
        kubeconfig: std::env::split_paths(&settings.kubeconfig)
            .filter(|path| !path.as_os_str().is_empty())
            .collect(),
        kubeconfig_inline: set(&settings.kubeconfig_inline),
        context: set(&settings.k8s_current_context),
        api_endpoint: set(&settings.k8s_api_endpoint),
        token: set(&settings.k8s_api_token),
        ca_file: set(&settings.k8s_ca_file).map(PathBuf::from),
        cert_file: set(&settings.k8s_cert_file).map(PathBuf::from),
        key_file: set(&settings.k8s_key_file).map(PathBuf::from),
        insecure_skip_tls_verify: Settings::is_on(&settings.k8s_insecure_skip_tls_verify),
        api_group: KubernetesConfig::parse_api_group(&settings.calico_api_group),
        use_pod_cidr: Settings::is_on(&settings.use_pod_cidr),
        ..KubernetesConfig::default()
    }
}
