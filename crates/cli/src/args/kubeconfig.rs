//! Arguments of `kubeconfig`.

use std::path::PathBuf;

use clap::Args;
use tortie_apiserver::server::certificates::Lifetime;

const HELP: &str = "\
The certificate is issued on the machine where `tortie up` runs, with the files of its data folder. What the user may do is
said by roles and bindings; docs/users-and-roles.md has examples. A certificate cannot be called back before it expires, but
its rights can: delete the bindings of the user. So bind roles to users rather than to groups, which are in the certificate.

Examples:
  tortie kubeconfig --user ann -o ann.kubeconfig
  kubectl create clusterrolebinding ann --clusterrole=view --user=ann       ann may read everything
  tortie kubeconfig --user bob --group shop --namespace shop --expires 12h > bob.kubeconfig
  tortie kubeconfig --user eve --server https://policy.example.org:6443 -o eve.kubeconfig
  tortie kubeconfig --user system:serviceaccount:shop:deployer -o deployer.kubeconfig";

/// Arguments of `kubeconfig`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Kubeconfig {
    /// Name of the user.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) user: String,
    /// A group that the user is in; may be given several times.
    #[arg(long = "group", value_name = "NAME", value_parser = parse_name)]
    pub(crate) groups: Vec<String>,
    /// Namespace of commands that name none.
    #[arg(short, long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) namespace: Option<String>,
    /// How long it is good, in days, hours or minutes.
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub(crate) expires: Lifetime,
    /// Where the user finds the server [default: where `up` listens].
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(crate) server: Option<String>,
    /// File to write to, which its owner alone may read [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Allow names that begin with `system:`, which may have rights that no role shows: who is in `system:masters` may do
    /// everything, for as long as the certificate is good.
    #[arg(long)]
    pub(crate) allow_system_names: bool,
}

/// The longest name of a user or group.
const MAX_NAME: usize = 253;

fn parse_name(text: &str) -> Result<String, String> {
    let is_right = !text.is_empty() && text.len() <= MAX_NAME && !text.contains(char::is_control);
    is_right
        .then(|| text.to_owned())
        .ok_or_else(|| format!("must be at most {MAX_NAME} characters, and no control characters"))
}

fn parse_url(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
    let host = text.strip_prefix("https://");
    match host {
        Some(host) if !host.is_empty() && host.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err("must be such as https://policy.example.org:6443".to_owned()),
    }
}
