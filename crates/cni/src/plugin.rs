//! The plugins as programs: environment and standard input in, JSON and an exit code out.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_client::connect::{Source, environment};
use tortie_error::Causes;
use tortie_variables as variables;
use tracing::Instrument as _;

use crate::config::{NetworkConfig, written_version_of};
use crate::context::Context;
use crate::datastore::Datastore;
use crate::error::{Code, Error, Result};
use crate::gone::Record;
use crate::ipam::{self, Wanted};
use crate::network::Waiting;
use crate::request::{Command, Request};
use crate::upgrade::{Places, upgrade};
use crate::version::CniVersion;
use crate::{add, check, del, gc, logging, machine, plugins, status};

/// The largest configuration that is read. Those of real networks have a few kilobytes.
const MAX_CONFIG: u64 = 16 << 20;

/// How soon taking over addresses is tried again.
const UPGRADE_INTERVAL: Duration = Duration::from_secs(1);

/// Which plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// `calico`: connects containers.
    Calico,
    /// `calico-ipam`: gives addresses to them.
    CalicoIpam,
    /// `loopback`: takes the loopback interface up.
    Loopback,
    /// `portmap`: leads ports of the node to containers.
    Portmap,
    /// `bandwidth`: limits how much containers send and receive.
    Bandwidth,
    /// `tuning`: changes settings of the kernel and of interfaces.
    Tuning,
    /// `host-local`: gives addresses from ranges of this node.
    HostLocal,
}

impl Plugin {
    /// All of them; Calico's own come first.
    pub const ALL: [Self; 7] = [
        Self::Calico,
        Self::CalicoIpam,
        Self::Loopback,
        Self::Portmap,
        Self::Bandwidth,
        Self::Tuning,
        Self::HostLocal,
    ];

    /// The plugin that a program of this name is.
    pub fn from_program_name(program: &OsStr) -> Option<Self> {
        let name = Path::new(program).file_name()?.to_str()?;
        Self::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// The name by which configurations call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calico => "calico",
            Self::CalicoIpam => "calico-ipam",
            Self::Loopback => "loopback",
            Self::Portmap => "portmap",
            Self::Bandwidth => "bandwidth",
            Self::Tuning => "tuning",
            Self::HostLocal => "host-local",
        }
    }

    /// Reads a configuration for it, and does nothing else.
    pub fn check_config(self, request: &Request, config: &[u8]) -> Result<()> {
        match self {
            Self::Calico | Self::CalicoIpam => NetworkConfig::parse(config).map(drop),
            _ => plugins::check_config(self, request, config),
        }
    }
}

/// Runs as a plugin, with the arguments of the command line and the version of the program.
pub fn main(plugin: Plugin, arguments: &[OsString], version: &str) -> ExitCode {
    let argument = arguments.first().and_then(|argument| argument.to_str());
    match argument {
        Some("-v" | "--v" | "-version" | "--version") => {
            return print(&format!("{version}\n"), ExitCode::SUCCESS);
        }
        Some("-t" | "--t") if plugin == Plugin::Calico => {
            return finish(|stdin, environment| test_connection(stdin, environment));
        }
        Some("-upgrade" | "--upgrade") if plugin == Plugin::CalicoIpam => {
            return match upgrade_node() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => print(&format!("{}\n", error.to_json("")), ExitCode::FAILURE),
            };
        }
        _ => {}
    }
    if std::env::var_os(variables::CNI_COMMAND).is_none() {
        let versions = CniVersion::ALL.map(CniVersion::as_str).join(", ");
        let name = plugin.name();
        // Nothing is left to do if nobody reads it.
        let _ = writeln!(
            io::stderr(),
            "CNI plugin {name} {version}\nCNI protocol versions supported: {versions}"
        );
        return ExitCode::SUCCESS;
    }
    finish(|stdin, environment| {
        let request = Request::from_environment(environment)?;
        serve(plugin, &request, stdin, environment)
    })
}

/// Takes over what `host-local` has given out on this node, however often that has to be tried.
fn upgrade_node() -> Result<()> {
    let node = environment(variables::KUBERNETES_NODE_NAME).unwrap_or_default();
    if node.is_empty() {
        let message = "KUBERNETES_NODE_NAME is not set: whose addresses are to be taken over?";
        return Err(Error::new(Code::InvalidEnvironment, message));
    }
    let config = NetworkConfig {
        datastore_type: "kubernetes".to_owned(),
        ..NetworkConfig::default()
    };
    logging::start(&config);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::of(Code::Other, "the plugin cannot start"))?
        .block_on(async {
            let datastore = Datastore::open(&config, &environment).await?;
            while let Err(error) = upgrade(&datastore, &node, &Places::default()).await {
                tracing::error!(error = %Causes(&error), "Addresses could not be taken over; trying again");
                tokio::time::sleep(UPGRADE_INTERVAL).await;
            }
            Ok(())
        })
}

/// Reads the configuration, works, and prints the outcome.
fn finish(work: impl FnOnce(&[u8], Source<'_>) -> Result<Option<Value>>) -> ExitCode {
    let mut stdin = Vec::new();
    let read = io::stdin().take(MAX_CONFIG).read_to_end(&mut stdin);
    let outcome = match read {
        Err(error) => Err(Error::of(
            Code::Io,
            "the network configuration cannot be read from the standard input",
        )(error)),
        Ok(_) => panic::catch_unwind(AssertUnwindSafe(|| work(&stdin, &environment)))
            .unwrap_or_else(|_| {
                let message = "internal error: the plugin panicked; see its standard error";
                Err(Error::new(Code::Other, message))
            }),
    };
    match outcome {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(answer)) => print(&format!("{answer}\n"), ExitCode::SUCCESS),
        Err(error) => {
            let version = written_version_of(&stdin);
            print(&format!("{}\n", error.to_json(&version)), ExitCode::FAILURE)
        }
    }
}

fn print(text: &str, code: ExitCode) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Serves a request. Only some commands have an answer.
fn serve(
    plugin: Plugin,
    request: &Request,
    stdin: &[u8],
    environment: Source<'_>,
) -> Result<Option<Value>> {
    if request.command == Command::Version {
        return Ok(Some(versions(stdin)));
    }
    let began = Instant::now();
    let is_calicos = matches!(plugin, Plugin::Calico | Plugin::CalicoIpam);
    let config = if is_calicos {
        NetworkConfig::parse(stdin)?
    } else {
        NetworkConfig::for_log_of(stdin)
    };
    logging::start(&config);
    let span = tracing::error_span!(
        "cni",
        plugin = plugin.name(),
        command = ?request.command,
        container = request.container_id,
        interface = request.interface,
        namespace = request.arguments.get("K8S_POD_NAMESPACE"),
        pod = request.arguments.get("K8S_POD_NAME"),
    );
    span.in_scope(|| {
        let outcome = if is_calicos {
            answer(plugin, request, (stdin, &config), environment)
        } else {
            plugins::answer(plugin, request, stdin)
        };
        let milliseconds = began.elapsed().as_millis();
        match &outcome {
            Ok(_) => tracing::info!(milliseconds, "The plugin has done what was asked"),
            Err(error) => {
                tracing::error!(milliseconds, error = %Causes(error), "The plugin failed");
            }
        }
        outcome
    })
}

fn answer(
    plugin: Plugin,
    request: &Request,
    (stdin, config): (&[u8], &NetworkConfig),
    environment: Source<'_>,
) -> Result<Option<Value>> {
    check_command(request.command, config.version()?)?;
    let record = Record::of(plugin, request, config, environment);
    match (request.command, &record) {
        (Command::Del, Some(record)) if record.is_there() => {
            tracing::info!("A DEL before has done all that there was to do");
            return Ok(None);
        }
        (Command::Add, Some(record)) => record.remove()?,
        _ => {}
    }
    let work = async {
        let opened = Datastore::open(config, environment).await;
        let context = opened
            .and_then(|datastore| Context::new(request, config, stdin, datastore, environment));
        let mut context = context.map_err(|error| match request.command {
            Command::Status => error.with_code(Code::NotAvailable),
            _ => error,
        })?;
        context.waiting = Waiting::Elsewhere;
        dispatch(plugin, &context).await
    };
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::of(Code::Other, "the plugin cannot start"))?
        .block_on(work.in_current_span());
    match (request.command, &record, &outcome) {
        (Command::Del, Some(record), Ok(_)) => record.leave(),
        (Command::Add, Some(record), _) => record.remove()?,
        _ => {}
    }
    outcome
}

/// Refuses commands that the version of the configuration does not have.
pub(crate) fn check_command(command: Command, version: CniVersion) -> Result<()> {
    let since = match command {
        Command::Add | Command::Del | Command::Version => CniVersion::V0_1_0,
        Command::Check => CniVersion::V0_4_0,
        Command::Status | Command::Gc => CniVersion::V1_1_0,
    };
    if version < since {
        let message = format!(
            "{command:?} is there since CNI version {since}, and the network configuration has `cniVersion` {version}"
        );
        return Err(Error::new(Code::IncompatibleVersion, message));
    }
    Ok(())
}

async fn dispatch(plugin: Plugin, context: &Context<'_>) -> Result<Option<Value>> {
    let version = context.config.version()?;
    match (plugin, context.request.command) {
        (Plugin::Calico, Command::Add) => Ok(Some(add(context).await?.to_json(version))),
        (Plugin::Calico, Command::Del) => del(context).await.map(|()| None),
        (Plugin::Calico, Command::Check) => check(context).await.map(|()| None),
        (Plugin::CalicoIpam, Command::Add) => {
            let (namespace, machine) =
                tokio::try_join!(add::namespace(context), machine::arriving(context, None))?;
            let wanted = Wanted {
                namespace_labels: namespace.map(|namespace| namespace.labels),
                machine,
                ..Wanted::of(context)?
            };
            Ok(Some(ipam::assign(context, &wanted).await?.to_json(version)))
        }
        (Plugin::CalicoIpam, Command::Del) => ipam::release_own(context).await.map(|()| None),
        (Plugin::CalicoIpam, Command::Check) => check::check_held(context).await.map(|()| None),
        // The others are answered without a datastore.
        (_, Command::Add | Command::Del | Command::Check) => Ok(None),
        (_, Command::Status) => status(context).await.map(|()| None),
        (_, Command::Gc) => gc(context).await.map(|()| None),
        (_, Command::Version) => Ok(Some(versions(context.raw))),
    }
}

fn versions(stdin: &[u8]) -> Value {
    let written = match written_version_of(stdin) {
        version if version.is_empty() => CniVersion::NEWEST.to_string(),
        version => version,
    };
    json!({ "cniVersion": written, "supportedVersions": CniVersion::ALL.map(CniVersion::as_str) })
}

/// Sees whether the datastore can be reached and is ready, as installers ask before they put a configuration in place.
fn test_connection(stdin: &[u8], environment: Source<'_>) -> Result<Option<Value>> {
    let config = NetworkConfig::parse(stdin)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::of(Code::Other, "the plugin cannot start"))?
        .block_on(async {
            let datastore = Datastore::open(&config, environment).await?;
            datastore.check_ready().await?;
            if !config.kubernetes.kubeconfig.is_empty() {
                let client = datastore.cluster(&config, environment).await?;
                let version = client.apiserver_version().await;
                version.map_err(Error::of(Code::TryLater, "Kubernetes cannot be reached"))?;
            }
            Ok(None)
        })
}
