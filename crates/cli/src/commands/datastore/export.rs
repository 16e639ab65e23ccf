//! `tortie datastore migrate export`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_api::k8s::is_kubernetes_policy;
use tortie_api::{FelixConfiguration, Kind, Resource};
use tortie_client::Client;
use tortie_client::connect::{Backend, Connection};
use tortie_store::Query;

use super::addresses::Addresses;
use super::dump::{Dump, KINDS};
use super::node_names::NodeNames;
use super::read_information;

pub(super) async fn run(connection: &Connection) -> Result<ExitCode> {
    let found = match connection.backend {
        Backend::Etcd(_) => None,
        Backend::Kubernetes(_) => Some("kubernetes"),
        Backend::Embedded => Some("embedded"),
    };
    if let Some(found) = found {
        bail!(
            "invalid datastore type: {found} to export from for datastore migration. Datastore type must be etcdv3"
        );
    }
    let dump = read(&connection.client).await?;
    // All or nothing: half a file could be taken for a whole one.
    let text = dump.print()?;
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn read(client: &Client) -> Result<Dump> {
    let information = read_information(client).await?;
    if information.spec.datastore_ready != Some(false) {
        bail!(
            "datastore is not locked. Run the `tortie datastore migrate lock` command in order to begin migration"
        );
    }
    let mut resources = Vec::new();
    for kind in KINDS {
        resources.extend(list(client, kind).await?);
    }
    resources.retain(|resource| !is_kubernetes_policy(resource.kind(), &resource.metadata().name));
    let names = NodeNames::of(&resources)?;
    for resource in &mut resources {
        names.apply(resource);
        if let Resource::FelixConfiguration(config) = resource {
            correct_actions(config);
        }
        let metadata = resource.metadata_mut();
        metadata.uid.clear();
        metadata.resource_version.clear();
        metadata.creation_timestamp = None;
        metadata.deletion_timestamp = None;
        metadata.deletion_grace_period_seconds = None;
    }
    let mut addresses = Addresses::default();
    for kind in [
        Kind::IpamBlock,
        Kind::BlockAffinity,
        Kind::IpamHandle,
        Kind::IpamConfiguration,
    ] {
        for mut resource in list(client, kind).await? {
            names.apply(&mut resource);
            addresses.add(&resource)?;
        }
    }
    Ok(Dump {
        resources,
        information,
        addresses,
    })
}

/// All of a kind. What cannot be read would be lost, so it is not left out.
async fn list(client: &Client, kind: Kind) -> Result<Vec<Resource>> {
    let list = client.list(&Query::all(kind)).await?;
    if !list.invalid.is_empty() {
        let lines: Vec<String> = list
            .invalid
            .iter()
            .map(|invalid| format!("  {}: {}", invalid.key, invalid.reason))
            .collect();
        bail!(
            "these cannot be read; repair or delete them first:\n{}",
            lines.join("\n")
        );
    }
    Ok(list.items)
}

/// Old versions wrote these actions in any case.
fn correct_actions(config: &mut FelixConfiguration) {
    let spec = &mut config.spec;
    for action in [
        &mut spec.default_endpoint_to_host_action,
        &mut spec.iptables_filter_allow_action,
        &mut spec.iptables_mangle_allow_action,
        &mut spec.iptables_filter_deny_action,
    ] {
        let mut letters = action.chars();
        if let Some(first) = letters.next() {
            *action = first
                .to_uppercase()
                .chain(letters.flat_map(char::to_lowercase))
                .collect();
        }
    }
}
