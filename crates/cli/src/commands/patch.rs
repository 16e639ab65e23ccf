//! `tortie patch`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize as _;
use serde_json::Value;
use tortie_api::{Resource, yaml};
use tortie_client::Client;
use tortie_store::{Error, Key};

use super::{kinds, report};
use crate::args::{Patch, PatchType};

pub(super) async fn run(args: Patch, client: &Client) -> Result<ExitCode> {
    let kind = kinds::parse(&args.kind)?;
    let key = kinds::key(kind, &args.name, args.namespace.as_deref())?;
    let patch = match args.r#type {
        PatchType::Strategic | PatchType::Merge => yaml::parse_as(kind, &args.change),
        PatchType::Json => yaml::parse_one(&args.change),
    };
    let patch = patch.context("the patch is not valid JSON or YAML")?;
    let written = client.modify(&key, |resource: &mut Resource| {
        *resource = patched(resource, &patch, args.r#type)?;
        anyhow::Ok(())
    });
    written.await?;
    writeln!(
        anstream::stdout(),
        "Successfully patched 1 '{kind}' resource"
    )?;
    Ok(ExitCode::SUCCESS)
}

fn patched(old: &Resource, patch: &Value, r#type: PatchType) -> Result<Resource> {
    let key = Key::of(old);
    let mut value = old.to_value();
    match r#type {
        PatchType::Strategic | PatchType::Merge => json_patch::merge(&mut value, patch),
        PatchType::Json => {
            let operations = json_patch::Patch::deserialize(patch)
                .context("the patch is not a list of operations such as {\"op\": \"replace\", \"path\": \"/spec/order\", \"value\": 5}")?;
            json_patch::patch(&mut value, &operations)
                .context("the patch does not fit the resource")?;
        }
    }
    let mut new = Resource::decode_strict(&value).map_err(|problems| {
        anyhow!(report::problem_lines(
            &format!("{key} after the patch"),
            &problems
        ))
    })?;
    if new.kind() != key.kind || new.metadata().name != key.name {
        bail!("a patch must not change the kind or the name of {key}");
    }
    let revision = &old.metadata().resource_version;
    let given = &mut new.metadata_mut().resource_version;
    if given.is_empty() {
        given.clone_from(revision);
    } else if given != revision {
        return Err(Error::Conflict(key).into());
    }
    Ok(new)
}
