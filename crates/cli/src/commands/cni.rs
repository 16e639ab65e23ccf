//! `tortie cni`: the plugins under their other name, and their installation.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tortie_backoff::{Backoff, Retries};
use tortie_cni::Plugin;
use tortie_cni::install::{self, Installed, Options, Plan, Replaced, ServiceAccount, Values};
use tortie_error::Causes;

use crate::args::{Cli, CniCommand, CniInstall, CniPlaces, CniUninstall, Command};
use crate::commands::agent::node_name;
use crate::commands::until_signal;

/// Where a pod with other plugins has them.
const OTHER_PLUGINS: &str = "/opt/cni/bin";

/// How soon a token is asked for again.
const RENEWAL: Backoff = Backoff {
    first: Duration::from_secs(10),
    most: Duration::from_mins(5),
    jitter: 0.2,
};

/// How often certificates are compared.
const REFRESH: Duration = Duration::from_secs(10);

/// Runs as a plugin, or as what a plugin started, if the program was called by the name of one.
pub(crate) fn by_program_name() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let program = arguments.next()?;
    let rest: Vec<_> = arguments.collect();
    let first = rest.first().map(OsString::as_os_str);
    if let Some(is_done) = tortie_cni::delete_by_program_name(&program, first) {
        return Some(if is_done {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let plugin = Plugin::from_program_name(&program)?;
    Some(tortie_cni::plugin::main(plugin, &rest, VERSION))
}

/// Runs as a plugin, if that is the command: plugins have a log and a runtime of their own.
pub(crate) fn by_command(cli: &Cli) -> Option<ExitCode> {
    let Command::Cni(cni) = &cli.command else {
        return None;
    };
    let (plugin, given) = match &cni.command {
        CniCommand::Calico(given) => (Plugin::Calico, given),
        CniCommand::CalicoIpam(given) => (Plugin::CalicoIpam, given),
        CniCommand::Loopback(given) => (Plugin::Loopback, given),
        CniCommand::Portmap(given) => (Plugin::Portmap, given),
        CniCommand::Bandwidth(given) => (Plugin::Bandwidth, given),
        CniCommand::Tuning(given) => (Plugin::Tuning, given),
        CniCommand::HostLocal(given) => (Plugin::HostLocal, given),
        CniCommand::Install(_) | CniCommand::Uninstall(_) => return None,
    };
    Some(tortie_cni::plugin::main(plugin, &given.arguments, VERSION))
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Installs the plugins, or shows what would be done.
pub(crate) async fn install(args: &CniInstall) -> Result<ExitCode> {
    let options = options(args)?;
    let plan = install::plan(&options).await?;
    if args.dry_run {
        return show(&plan);
    }
    plan.carry_out(&mut |step, outcome| say(&step.told(outcome)))?;
    if args.sleep {
        stay(&options).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the plugins, or shows what would be done. What cannot be removed keeps nothing else from being removed.
pub(crate) fn uninstall(args: &CniUninstall) -> Result<ExitCode> {
    let places = &args.places;
    let root = root(places);
    let plan = install::plan_removal(&Installed {
        binary_folders: binary_folders(&root, places),
        config_folder: below(&root, &places.net_dir),
    })?;
    if args.dry_run {
        return show(&plan);
    }
    if plan.steps.is_empty() {
        let root = root.display();
        say(&format!(
            "none of Tortie's CNI plugins are installed under {root}"
        ));
    }
    let mut code = ExitCode::SUCCESS;
    for step in &plan.steps {
        match step.carry_out() {
            Ok(outcome) => say(&step.told(outcome)),
            Err(error) => {
                say(&format!("error: {}", Causes(&error)));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn show(plan: &Plan) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for step in &plan.steps {
        writeln!(out, "{step}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) {
    // Nothing is left to do if nobody reads it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Copies certificates again when they change, and gives plugins a new token long before the old one runs out, until a signal
/// comes.
async fn stay(options: &Options) -> Result<()> {
    let signal = until_signal()?;
    tokio::pin!(signal);
    let mut retries = Retries::new(RENEWAL);
    let mut renewal = Some(Instant::now());
    loop {
        let is_due = renewal.is_some_and(|at| at <= Instant::now());
        if is_due || install::lacks_kubeconfig(options) {
            renewal = match install::renew_token(options).await {
                Ok(lifetime) => {
                    retries.reset();
                    lifetime.map(|lifetime| Instant::now() + lifetime / 2)
                }
                Err(error) => {
                    let retry_in = retries.failed();
                    tracing::warn!(error = %Causes(&error), ?retry_in, "The plugins' token could not be renewed");
                    Some(Instant::now() + retry_in)
                }
            };
        }
        tokio::select! {
            () = &mut signal => return Ok(()),
            () = tokio::time::sleep(REFRESH) => {}
        }
        if let Err(error) = install::refresh_tls(options) {
            tracing::warn!(error = %Causes(&error), "Certificates for etcd could not be copied");
        }
    }
}

fn options(args: &CniInstall) -> Result<Options> {
    let root = root(&args.places);
    let binary = std::env::current_exe().context("this program cannot find itself")?;
    let template = match &args.network_config_file {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .with_context(|| format!("{} could not be read", file.display()))?,
        ),
        None => args.network_config.clone().filter(|text| !text.is_empty()),
    };
    let account = ServiceAccount {
        folder: ServiceAccount::FOLDER.into(),
        plugins_account: args.service_account.clone(),
        protocol: args.values.service_protocol.clone(),
        host: args.values.service_host.clone(),
        port: args.values.service_port.clone(),
        skip_tls_verify: args.skip_tls_verify,
    };
    let account = account.is_there().then_some(account);
    let net_dir = &args.places.net_dir;
    Ok(Options {
        binary,
        binary_folders: binary_folders(&root, &args.places),
        // In a pod, what is not mounted there is not the node's.
        make_folders: root != Path::new(IN_POD),
        other_plugins: (root != Path::new("/")).then(|| OTHER_PLUGINS.into()),
        skipped: args
            .skip_binaries
            .split(',')
            .map(|s| s.trim().to_owned())
            .collect(),
        replaced: match args.update_binaries {
            None => Replaced::Usual,
            Some(true) => Replaced::All,
            Some(false) => Replaced::None,
        },
        config_folder: below(&root, net_dir),
        config_folder_on_node: net_dir.clone(),
        config_name: args.conf_name.clone(),
        old_config_name: args.old_conf_name.clone(),
        template,
        values: values(args, account.as_ref())?,
        tls_folder: args.tls_assets_dir.clone(),
        service_account: account.filter(|_| args.kubeconfig.is_none()),
        kubeconfig: args.kubeconfig.clone(),
    })
}

fn values(args: &CniInstall, account: Option<&ServiceAccount>) -> Result<Values> {
    let given = &args.values;
    Ok(Values {
        log_level: given.plugin_log_level.clone(),
        log_file_path: given.log_file_path.clone(),
        log_file_max_size: given.log_file_max_size.clone(),
        log_file_max_age: given.log_file_max_age.clone(),
        log_file_max_count: given.log_file_max_count.clone(),
        datastore_type: given.datastore_type.clone(),
        node_name: node_name(
            given.node_name.as_deref(),
            &std::collections::BTreeMap::new(),
        )?,
        mtu: given.mtu.clone(),
        service_host: given.service_host.clone(),
        service_port: given.service_port.clone(),
        token: account
            .map(ServiceAccount::token)
            .transpose()?
            .unwrap_or_default(),
        api_group: given.api_group.clone(),
        etcd_endpoints: given.etcd_endpoints.clone(),
        etcd_discovery_srv: given.etcd_discovery_srv.clone(),
        require_mtu_file: given.require_mtu_file.clone(),
    })
}

/// Where a pod has the node's folders.
const IN_POD: &str = "/host";

fn root(places: &CniPlaces) -> PathBuf {
    let root = places.root.clone();
    root.unwrap_or_else(|| install::host_root().to_owned())
}

fn binary_folders(root: &Path, places: &CniPlaces) -> Vec<PathBuf> {
    if places.bin_dir.is_empty() {
        vec![root.join("opt/cni/bin"), root.join("secondary-bin-dir")]
    } else {
        places.bin_dir.clone()
    }
}

/// A path of the node, as it is seen under a root. In a pod the folder is always mounted in the usual place.
fn below(root: &Path, path: &Path) -> PathBuf {
    if root == Path::new(IN_POD) {
        return root.join("etc/cni/net.d");
    }
    root.join(path.strip_prefix("/").unwrap_or(path))
}
