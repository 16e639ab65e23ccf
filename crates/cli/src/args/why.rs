//! Arguments of `tortie why`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tortie_api::names;

const HELP: &str = "\
FROM and TO are one of
  NAMESPACE/POD   a pod; one in the host's network counts as its node
  host/NAME       a node, or a host endpoint
  ADDRESS         an address; the address of a running pod is that pod, that of a node is that host
TO can also be
  svc/NAMESPACE/NAME, NAME.NAMESPACE, or an address of a service
                  each pod behind it is asked about
  host/NAME or ADDRESS of a node, with --port of a node port
                  the same, on the way through that node

Both sides must let a connection pass: the policies for egress of FROM and those for ingress of TO; and so must those of
host endpoints on its way (applyOnForward, preDNAT, doNotTrack). A node always reaches its own pods; what pods send to their
own node meets defaultEndpointToHostAction. Without a port, or with ICMP without a type, the answer says what is open.

Without -f the datastore is asked. With -f the files are all there is: what plain manifests leave out (namespaces, the
service account `default`, nodes, addresses, endpoints of services) is filled in. An object that cannot be used as it is
written is an error, unless --ignore-invalid.

Where the kernel denies whatever rules say, so does the answer: a policy that would need more than 20,000 rules in one chain
(of the data plane that nftablesMode asks for, nftables if nothing does), and what the kernel of this machine refused, if the
agent answers here (healthPort).

Examples:
  tortie why shop/web shop/db --protocol TCP --port 5432
  tortie why shop/web shop/db                    what is open between these two?
  tortie why shop/web svc/shop/db --port pg      may it use the service, whichever pod answers?
  tortie why 203.0.113.7 host/node-1 --protocol TCP --port 30080   the same from outside, by a node port
  tortie why 203.0.113.7 shop/web --protocol TCP --port 443 -o json
  tortie why host/node-1 shop/web --protocol ICMP --icmp-type 8
  sudo tortie why shop/web shop/db -p TCP --port 5432 --live   and does the kernel here have it so?
  tortie why -f cluster/ -f new-policy.yaml shop/web shop/db --protocol TCP --port 5432
  tortie why -f cluster/ --batch flows.jsonl -o json
      with lines such as {\"from\": \"shop/web\", \"to\": \"shop/db\", \"protocol\": \"TCP\", \"port\": 5432}
      and optional fields srcPort, icmpType, icmpCode and ipVersion
  tortie why --policies shop/web                which policies apply to this pod, in which order?
  tortie why --endpoints networkpolicy/shop/web  which endpoints does this policy apply to?

Exit code: 0 allowed, 2 denied, 1 error. Where a question is about several connections (a service, no port), 0 means that
all of them are allowed, and 2 that one or more are denied. With --live 1 if the kernel differs. With --batch 0 unless a flow has an error.";

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent options of the command line"
)]
pub(crate) struct Why {
    /// Where the connection comes from: NAMESPACE/POD, host/NAME or an address.
    #[arg(requires = "to", required_unless_present_any = ["batch", "policies", "endpoints"])]
    pub(crate) from: Option<String>,
    /// Where the connection goes to: the same, or a service.
    pub(crate) to: Option<String>,
    /// Protocol: TCP, UDP, SCTP, ICMP, `ICMPv6`, `UDPLite`, AH or a number.
    #[arg(short, long, value_name = "NAME", requires = "from")]
    pub(crate) protocol: Option<String>,
    /// Port that the connection goes to: a number, or the name that the pod or service gives it.
    #[arg(long, value_name = "PORT", requires = "from")]
    pub(crate) port: Option<String>,
    /// Port that the connection comes from.
    #[arg(long, value_name = "PORT", requires = "from", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) src_port: Option<u16>,
    /// Type of the ICMP message, such as 8 for a ping.
    #[arg(long, value_name = "NUMBER", requires = "from")]
    pub(crate) icmp_type: Option<u8>,
    /// Code of the ICMP message.
    #[arg(long, value_name = "NUMBER", requires = "icmp_type")]
    pub(crate) icmp_code: Option<u8>,
    /// IP version, where both sides have both [default: 4 if both sides have it].
    #[arg(long, value_name = "VERSION", requires = "from")]
    pub(crate) ip_version: Option<IpVersion>,
    /// Ask many questions: a file with one JSON object a line, or `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "policies", "endpoints"])]
    pub(crate) batch: Option<PathBuf>,
    /// List the policies that apply to an endpoint, in the order in which they are asked.
    #[arg(long, value_name = "ENDPOINT", conflicts_with_all = ["from", "endpoints"])]
    pub(crate) policies: Option<String>,
    /// List the endpoints that a policy applies to: KIND/NAME or KIND/NAMESPACE/NAME.
    #[arg(long, value_name = "POLICY", conflicts_with = "from")]
    pub(crate) endpoints: Option<String>,
    /// Read these files or folders, or `-` for standard input, instead of a datastore; may be given several times.
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) filename: Vec<PathBuf>,
    /// Leave out objects of files that cannot be used as they are written.
    #[arg(long, requires = "filename")]
    pub(crate) ignore_invalid: bool,
    /// Read folders with all their subfolders.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Keep what the engine was told in a file, for `tortie replay`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Answer in one line.
    #[arg(long, requires = "from", conflicts_with = "explain")]
    pub(crate) short: bool,
    /// Tell all that was asked on the way: every tier, policy and rule.
    #[arg(long, requires = "from")]
    pub(crate) explain: bool,
    /// Show what the kernel of this machine has for the packet, with counters, and whether that is what it should have. Needs root.
    #[arg(long, requires = "from")]
    pub(crate) live: bool,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: WhyOutput,
    /// Tell on stderr what was filled in, and how long it took.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Versions of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IpVersion {
    /// IPv4
    #[value(name = "4")]
    V4,
    /// IPv6
    #[value(name = "6")]
    V6,
}

impl From<IpVersion> for names::IpVersion {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => Self::V4,
            IpVersion::V6 => Self::V6,
        }
    }
}

/// Output forms of `why`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhyOutput {
    /// For people.
    Text,
    /// For programs: one JSON object, or one a line.
    Json,
}
