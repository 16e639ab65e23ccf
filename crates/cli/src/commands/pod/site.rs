//! The `tortie up` that pods belong to, and the making and deleting of pods there.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tortie_client::Client;
use tortie_cni::{Arguments, Code, Command, Context, Datastore, NetworkConfig, Request};
use tortie_error::Causes;
use tortie_store::Store;
use tortie_store::socket::{self, SocketStore};

use super::DEFAULT_NAMESPACE;
use super::holder::{self, Holder};
use super::object::Objects;
use super::record::Record;
use crate::args::{Global, PodRun};
use crate::commands::up::{API_SOCKET, Process, client_through};
use crate::config::data_file;

/// The configuration with which the CNI plugin connects pods, in the data folder.
pub(in crate::commands) const NETWORK_FILE: &str = "cni.conf";

/// The interface in a pod.
const INTERFACE: &str = "eth0";

/// How long the agent may take until pods can be connected, and how often that is looked at.
const AGENT_PATIENCE: Duration = Duration::from_secs(15);
const AGENT_INTERVAL: Duration = Duration::from_millis(50);

/// A `tortie up`, as those see it that make pods there.
pub(in crate::commands) struct Site {
    folder: PathBuf,
    store: Arc<dyn Store>,
    cluster: kube::Client,
}

impl Site {
    /// One whose store and API are at hand.
    pub(in crate::commands) fn new(
        folder: PathBuf,
        store: Arc<dyn Store>,
        cluster: kube::Client,
    ) -> Self {
        Self {
            folder,
            store,
            cluster,
        }
    }

    /// The one that runs with this data folder.
    pub(in crate::commands) async fn connect(folder: PathBuf, global: &Global) -> Result<Self> {
        if Process::find(&folder)?.is_none() {
            let folder = folder.display();
            bail!(
                "no `tortie up` runs with the data folder {folder}: start one in another terminal, with root or without"
            );
        }
        let socket = socket::path_beside(&data_file(global));
        let store = SocketStore::connect(&socket).await?;
        let cluster = client_through(&folder.join(API_SOCKET));
        Ok(Self::new(folder, Arc::new(store), cluster))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn objects(&self) -> Objects<'_> {
        Objects(&self.cluster)
    }

    pub(super) fn client(&self) -> Client {
        Client::new(Arc::clone(&self.store))
    }

    /// Makes a pod, and tells of it.
    pub(super) async fn run(&self, args: &PodRun) -> Result<ExitCode> {
        let start = Instant::now();
        let namespace = args.name.namespace.as_ref().or(args.namespace.as_ref());
        let namespace = namespace.map_or(DEFAULT_NAMESPACE, String::as_str);
        let network = self.network()?;
        self.objects()
            .create(namespace, args, &network.nodename)
            .await?;
        let mut holder = None;
        match self.start(namespace, args, &mut holder).await {
            Ok((record, addresses)) => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                let serves = match record.serves.join(", ") {
                    serves if serves.is_empty() => serves,
                    serves => format!(", serves {serves}"),
                };
                writeln!(
                    anstream::stdout(),
                    "Pod {record} runs: {}{serves} ({:.2} s)",
                    addresses.join(", "),
                    start.elapsed().as_secs_f64()
                )?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                // What was made is taken back; the plugin has taken back its own.
                if let Some(holder) = holder {
                    holder.end();
                }
                self.objects().delete(namespace, &args.name.name).await?;
                let name = &args.name.name;
                Err(error.context(format!("pod {namespace}/{name} cannot be run")))
            }
        }
    }

    /// Starts a pod that the API knows. `holder` is its process, as soon as there is one.
    async fn start(
        &self,
        namespace: &str,
        args: &PodRun,
        holder: &mut Option<Holder>,
    ) -> Result<(Record, Vec<IpAddr>)> {
        let name = &args.name.name;
        let process = Process::find(&self.folder)?;
        let ends_with = process.filter(|up| up.has_own_network()).map(Process::id);
        let holder = holder.insert(Holder::start(namespace, name, &args.serve, ends_with)?);
        let record = Record {
            namespace: namespace.to_owned(),
            name: name.clone(),
            process: holder.process(),
            started: holder.started()?,
            container: Some(holder::new_id()?),
            serves: args.serve.iter().map(ToString::to_string).collect(),
        };
        // From here on whoever comes next knows what there is to clean up.
        record.write(&self.folder)?;
        match self.connect_pod(&record).await {
            Ok(addresses) => Ok((record, addresses)),
            Err(error) => {
                // The plugin has taken back its own, unless it was something later that failed.
                let _ = self.call_plugin(Command::Del, &record).await;
                record.remove(&self.folder)?;
                Err(error)
            }
        }
    }

    async fn connect_pod(&self, record: &Record) -> Result<Vec<IpAddr>> {
        let end = Instant::now() + AGENT_PATIENCE;
        let addresses = loop {
            match self.call_plugin(Command::Add, record).await {
                // An `up` that has just started may not have brought policy into force yet.
                Err(error) if is_for_later(&error) && Instant::now() < end => {
                    tokio::time::sleep(AGENT_INTERVAL).await;
                }
                added => break added?,
            }
        };
        let Record {
            namespace, name, ..
        } = record;
        self.objects()
            .report_running(namespace, name, &addresses)
            .await?;
        Ok(addresses)
    }

    /// Deletes a pod with all that belongs to it.
    pub(super) async fn delete(&self, record: &Record) -> Result<()> {
        if record.container.is_none() {
            bail!("pod {record} is one of `tortie demo`, and ends with that");
        }
        self.call_plugin(Command::Del, record).await?;
        holder::end(record).await;
        self.objects()
            .delete(&record.namespace, &record.name)
            .await?;
        record.remove(&self.folder)
    }

    /// Deletes all pods that were made here, and gives their names.
    pub(in crate::commands) async fn remove_all(&self) -> Vec<String> {
        self.remove(|record| record.container.is_some()).await
    }

    /// Deletes what is left of pods whose process has ended.
    pub(in crate::commands) async fn remove_dead(&self) -> Vec<String> {
        self.remove(|record| !record.is_live()).await
    }

    async fn remove(&self, is_meant: impl Fn(&Record) -> bool) -> Vec<String> {
        let records = Record::all(&self.folder).unwrap_or_else(|error| {
            tracing::warn!(error = %Causes(&*error), "Pods cannot be cleaned up");
            Vec::new()
        });
        let mut removed = Vec::new();
        for record in records.iter().filter(|record| is_meant(record)) {
            match self.delete(record).await {
                Ok(()) => removed.push(record.to_string()),
                Err(error) => {
                    tracing::warn!(pod = %record, error = %Causes(&*error), "A pod cannot be deleted");
                }
            }
        }
        removed
    }

    /// Calls the CNI plugin for a pod as a container runtime does. Gives the pod's addresses, if it was to get some.
    async fn call_plugin(&self, command: Command, record: &Record) -> Result<Vec<IpAddr>> {
        let text = self.network_text()?;
        let config = NetworkConfig::parse(&text)?;
        let Record {
            namespace, name, ..
        } = record;
        let container = record.container.clone().unwrap_or_default();
        let arguments = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};K8S_POD_INFRA_CONTAINER_ID={container}"
        );
        let request = Request {
            command,
            container_id: container,
            namespace: record.live_network().unwrap_or_default(),
            interface: INTERFACE.to_owned(),
            arguments: Arguments::parse(&arguments)?,
            path: Vec::new(),
        };
        let environment = |name: &str| std::env::var(name).ok();
        let (store, place) = (Arc::clone(&self.store), self.folder.display().to_string());
        let datastore = Datastore::beside_cluster(store, place, self.cluster.clone());
        let context = Context::new(&request, &config, &text, datastore, &environment)?;
        if command == Command::Add {
            let result = tortie_cni::add(&context).await?;
            return Ok(result.ips.iter().map(|ip| ip.address.addr()).collect());
        }
        tortie_cni::del(&context).await?;
        Ok(Vec::new())
    }

    fn network(&self) -> Result<NetworkConfig> {
        NetworkConfig::parse(&self.network_text()?).map_err(|error| anyhow!(error))
    }

    fn network_text(&self) -> Result<Vec<u8>> {
        let file = self.folder.join(NETWORK_FILE);
        fs::read(&file).with_context(|| {
            format!(
                "pods are made for `tortie up`, which would have written {}",
                file.display()
            )
        })
    }
}

/// Whether the plugin asks to be called again.
fn is_for_later(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<tortie_cni::Error>();
    error.is_some_and(|error| error.code() == Code::TryLater)
}
