//! `tortie kubeconfig`: credentials for somebody who is not the administrator.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_apiserver::server::certificates::{Client, kubeconfig_for, write_secret};

use crate::args::{Global, Kubeconfig};
use crate::config::data_folder;

/// What names begin with that are not for people.
const SYSTEM: &str = "system:";

pub(super) fn run(args: Kubeconfig, global: &Global) -> Result<ExitCode> {
    let folder = data_folder(global);
    let groups = groups(&args)?;
    let client = Client {
        user: args.user,
        groups,
        namespace: args.namespace,
        lifetime: args.expires,
        url: args.server,
    };
    let issued = kubeconfig_for(&folder, &client)?;
    match &args.output {
        Some(file) => write_secret(file, &issued.kubeconfig)?,
        None => write!(anstream::stdout(), "{}", issued.kubeconfig)?,
    }
    let groups = match client.groups.as_slice() {
        [] => "no groups".to_owned(),
        groups => format!("groups {}", groups.join(", ")),
    };
    writeln!(
        anstream::stderr(),
        "User {}, {groups}, until {:.0}",
        client.user,
        issued.until
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The groups that the certificate names. A service account is in those of its kind, as in Kubernetes.
fn groups(args: &Kubeconfig) -> Result<Vec<String>> {
    let account = args.user.strip_prefix("system:serviceaccount:");
    let account = account.and_then(|account| account.split_once(':'));
    let account = account.filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    if !args.allow_system_names {
        let user = (account.is_none() && args.user.starts_with(SYSTEM)).then_some(&args.user);
        let mut groups = args.groups.iter();
        let group = groups.find(|group| group.starts_with(SYSTEM));
        for (what, name) in [("--user", user), ("--group", group)] {
            if let Some(name) = name {
                bail!(
                    "{what} {name}: names that begin with `system:` may have rights that no role shows, and \
                     `system:masters` has all; give --allow-system-names if that is meant"
                );
            }
        }
    }
    let mut groups = args.groups.clone();
    if let Some((namespace, _)) = account {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}
