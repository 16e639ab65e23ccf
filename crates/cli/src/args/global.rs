//! Options of every command.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tortie_client::connect::DatastoreType;
use tortie_variables as variables;

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Where resources are kept; found out from the environment and the configuration file if not given.
    #[arg(long, global = true, value_name = "TYPE", value_parser = datastore_type())]
    pub(crate) datastore: Option<DatastoreType>,
    /// Folder of the embedded datastore.
    #[arg(long, global = true, env = tortie_client::connect::DATA_FOLDER_VARIABLE, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
    /// File of the embedded datastore [default: tortie.redb in that folder].
    #[arg(long, global = true, env = tortie_client::connect::DATA_FILE_VARIABLE, value_name = "FILE")]
    pub(crate) data_file: Option<PathBuf>,
    /// Configuration file in the form that calicoctl reads.
    #[arg(short, long, global = true, value_name = "FILE", default_value = tortie_client::connect::DEFAULT_FILE)]
    pub(crate) config: PathBuf,
    /// Context of the kubeconfig to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// How much to log to stderr: off, error, warn, info, debug or trace; wins over what the datastore says [default: warn].
    #[arg(short, long, global = true, value_name = "LEVEL", value_parser = log_level)]
    pub(crate) log_level: Option<String>,
    /// How log lines look.
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        env = variables::TORTIE_LOG_FORMAT,
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,
    /// Accepted because calicoctl has it; versions are not compared.
    #[arg(long, global = true, hide = true)]
    pub(crate) allow_version_mismatch: bool,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// An object of JSON a line.
    Json,
}

/// The kinds of datastore, with what their names mean.
fn datastore_type() -> impl TypedValueParser<Value = DatastoreType> {
    let known = PossibleValuesParser::new([
        PossibleValue::new("embedded").help("A file on this machine; nothing else is needed"),
        PossibleValue::new("etcdv3")
            .alias("etcd")
            .help("etcd, with Calico's keys"),
        PossibleValue::new("kubernetes")
            .aliases(["k8s", "kdd"])
            .help("Kubernetes, with Calico's custom resources"),
    ]);
    known.try_map(|word| word.parse())
}

/// Levels, and those that calicoctl has besides.
pub(super) fn log_level(text: &str) -> Result<String, String> {
    let level = match text {
        "panic" | "fatal" => "error",
        "warning" => "warn",
        "off" | "error" | "warn" | "info" | "debug" | "trace" => text,
        _ => {
            return Err(
                "-l is --log-level, as calicoctl has it: expected off, error, warn, info, debug or trace".to_owned(),
            );
        }
    };
    Ok(level.to_owned())
}
