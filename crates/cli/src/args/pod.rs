//! Arguments of `pod`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

use super::global::log_level;

const HELP: &str = "\
A pod here is a network namespace that is connected as a container runtime connects containers: by the CNI plugin, with an
address of the pools and an endpoint in the datastore, and a Pod in the API, whose labels policies select. A small process
holds it and answers on the ports of --serve. Pods belong to the `tortie up` with the same data folder, with root or without.

Examples:
  tortie up &                                              with root or without
  tortie pod run web -l app=web --serve tcp:80
  tortie pod run client -l app=client
  tortie pod connect client web:80                         a real connection, and what `tortie why` says about it
  tortie apply -f policy.yaml                              or `kubectl apply`, with the kubeconfig of `up`
  tortie pod connect client web:80 --watch                 tells when it changes, until Ctrl-C
  tortie pod exec client -- ping -c 1 192.168.0.1          any program in the pod's network
  tortie pod delete web client                             or all of them: `tortie down`";

/// Arguments of `pod`.
#[derive(Debug, Args)]
#[command(after_help = HELP, arg_required_else_help = true)]
pub(crate) struct Pod {
    #[command(subcommand)]
    pub(crate) command: PodCommand,
}

/// What to do with pods.
#[derive(Debug, Subcommand)]
pub(crate) enum PodCommand {
    /// Make a pod.
    Run(PodRun),
    /// Run a program in a pod's network.
    Exec(PodExec),
    /// Try a connection from a pod, and tell beside it what `tortie why` says.
    Connect(PodConnect),
    /// Delete pods.
    Delete(PodDelete),
    /// List the pods that were made here.
    List,
    /// What holds a pod: how the program calls itself.
    #[command(hide = true)]
    Serve(PodServe),
}

/// Arguments of `pod run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tortie pod run web -n shop -l app=web,tier=front --serve tcp:80 --serve tcp:8080
  tortie pod run dns --serve udp:53")]
pub(crate) struct PodRun {
    /// Name of the pod.
    pub(crate) name: PodName,
    /// Namespace, which is made if it is not there [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Labels, as key=value pairs separated by commas; may be given several times.
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// A port that the pod answers on, such as tcp:80 or udp:53; may be given several times.
    #[arg(long, value_name = "PROTOCOL:PORT")]
    pub(crate) serve: Vec<Service>,
    /// How much to log to stderr. The same option as everywhere, without the short form: that is for labels here.
    #[arg(id = "log_level", long = "log-level", value_name = "LEVEL", hide = true, default_value = "warn", value_parser = log_level)]
    _log_level: String,
}

/// Arguments of `pod exec`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  tortie pod exec client -- curl -s http://192.168.0.1\n\nExit code: that of the program."
)]
pub(crate) struct PodExec {
    /// Pod: NAME or NAMESPACE/NAME.
    pub(crate) pod: PodName,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

const CONNECT_HELP: &str = "\
The first line is what became of a real connection, the second one what `tortie why` says about it.

Examples:
  tortie pod connect client web:80
  tortie pod connect shop/client kitchen/oven:8080
  tortie pod connect client dns:53 --protocol udp
  tortie pod connect client 192.168.0.7:80
  tortie pod connect client svc/web:80                     a pod that the service selects
  tortie pod connect client web:80 --watch                 a line whenever it changes, until Ctrl-C

Exit code: 0 connected, 2 not connected, 1 could not be tried.";

/// Arguments of `pod connect`.
#[derive(Debug, Args)]
#[command(after_help = CONNECT_HELP)]
pub(crate) struct PodConnect {
    /// The pod that connects: NAME or NAMESPACE/NAME.
    pub(crate) from: PodName,
    /// Whom to: a pod, a service (svc/NAME, svc/NAMESPACE/NAME) or an address, and the port.
    #[arg(value_name = "TO:PORT")]
    pub(crate) to: String,
    /// Namespace of names that have none [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The protocol.
    #[arg(long, value_name = "NAME", default_value = "tcp")]
    pub(crate) protocol: PodProtocol,
    /// Try twice a second, and tell when the outcome changes.
    #[arg(long)]
    pub(crate) watch: bool,
}

/// Arguments of `pod delete`.
#[derive(Debug, Args)]
pub(crate) struct PodDelete {
    /// Pods: NAME or NAMESPACE/NAME.
    #[arg(required = true)]
    pub(crate) pods: Vec<PodName>,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// Arguments of `pod serve`.
#[derive(Debug, Args)]
pub(crate) struct PodServe {
    /// The pod.
    pub(crate) pod: PodName,
    /// A port that it answers on.
    #[arg(long)]
    pub(crate) serve: Vec<Service>,
    /// The process that it ends with.
    #[arg(long, value_name = "PID")]
    pub(crate) ends_with: Option<u32>,
}

/// `NAME` or `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodName {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// A port that a pod answers on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) protocol: PodProtocol,
    pub(crate) port: u16,
}

/// Protocols of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PodProtocol {
    Tcp,
    Udp,
}

// === impl PodName ===

impl FromStr for PodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        for part in namespace.into_iter().chain([name]) {
            if !is_name(part) {
                return Err(format!(
                    "`{part}` cannot be a name: it must have small letters, digits and `-` only, begin and end with a letter \
                     or digit, and have at most 63 of them"
                ));
            }
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

/// Names of namespaces, and of pods as most are: a label of RFC 1123.
fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

// === impl Service ===

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be PROTOCOL:PORT, such as tcp:80 or udp:53".to_owned();
        let (protocol, port) = text.split_once(':').ok_or_else(wrong)?;
        let protocol = PodProtocol::from_str(protocol, true).map_err(|_| wrong())?;
        match port.parse() {
            Ok(port @ 1..) => Ok(Self { protocol, port }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.protocol, self.port)
    }
}

// === impl PodProtocol ===

impl PodProtocol {
    /// As Kubernetes writes it.
    pub(crate) fn upper(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl fmt::Display for PodProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

// === impl PodRun ===

impl PodRun {
    /// The labels; of those with the same key, the last one.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("labels are KEY=VALUE, such as app=web".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_namespace() {
        let name = |text: &str| text.parse::<PodName>().map(|n| (n.namespace, n.name));
        assert_eq!(name("web"), Ok((None, "web".to_owned())));
        assert_eq!(
            name("shop/web-1"),
            Ok((Some("shop".to_owned()), "web-1".to_owned()))
        );
        for wrong in ["", "/web", "shop/", "a/b/c", "Web", "-a", "a.b", "../x"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn services_are_a_protocol_and_a_port() {
        let service = |text: &str| text.parse::<Service>().map(|service| service.to_string());
        assert_eq!(service("tcp:80"), Ok("tcp:80".to_owned()));
        assert_eq!(service("UDP:53"), Ok("udp:53".to_owned()));
        for wrong in ["80", "tcp:", "tcp:0", "tcp:65536", "sctp:1", "tcp:80:90"] {
            assert!(service(wrong).is_err(), "{wrong}");
        }
    }
}
