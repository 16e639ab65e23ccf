//! `tortie label`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_api::Resource;
use tortie_client::Client;

use super::kinds;
use crate::args::Label;

pub(super) async fn run(args: Label, client: &Client) -> Result<ExitCode> {
    let kind = kinds::parse(&args.kind)?;
    let key = kinds::key(kind, &args.name, args.namespace.as_deref())?;
    let mut messages = Vec::new();
    let written = client.modify(&key, |resource: &mut Resource| {
        messages.clear();
        for label in &args.labels {
            messages.push(change(&mut resource.metadata_mut().labels, label, &args)?);
        }
        anyhow::Ok(())
    });
    written.await?;
    for message in messages {
        writeln!(anstream::stdout(), "{message}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Changes one label and says what was done.
fn change(
    labels: &mut std::collections::BTreeMap<String, String>,
    label: &str,
    args: &Label,
) -> Result<String> {
    let Label {
        kind,
        name,
        overwrite,
        remove,
        ..
    } = args;
    if *remove {
        let key = label.split_once('=').map_or(label, |(key, _)| key);
        return match labels.remove(key) {
            Some(_) => Ok(format!(
                "Successfully removed label {key} from {kind} {name}."
            )),
            None => bail!("can not remove label of {kind} {name}, key {key} does not exist"),
        };
    }
    let Some((key, value)) = label.split_once('=') else {
        bail!("label `{label}` must be KEY=VALUE, or give --remove");
    };
    match labels.insert(key.to_owned(), value.to_owned()) {
        None => Ok(format!("Successfully set label {key} on {kind} {name}.")),
        Some(_) if *overwrite => Ok(format!(
            "Successfully updated label {key} on {kind} {name}."
        )),
        Some(old) if old == value => Ok(format!("Successfully set label {key} on {kind} {name}.")),
        Some(_) => bail!(
            "failed to update label of {kind} {name}, key {key} is already present. please use '--overwrite' to set a new value"
        ),
    }
}
