//! `tortie convert`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tortie_api::k8s::{self, Converted};
use tortie_api::{Problems, Resource};

use super::report;
use crate::args::Convert;
use crate::input::{self, Document};
use crate::output::to_yaml;

pub(super) fn run(args: &Convert) -> Result<ExitCode> {
    let is_json = match args.output.as_str() {
        "yaml" => false,
        "json" => true,
        other => bail!("unknown output form `{other}`; use yaml or json"),
    };
    let files = &args.files;
    let mut stderr = anstream::stderr();
    let mut stdout = std::io::BufWriter::new(anstream::stdout().lock());
    let mut failed = false;
    for document in input::read_all(&files.filename, files.recursive, files.skip_empty)? {
        let place = format!("{}: {}", document.origin.place(), document.name());
        let (resource, problems) = convert(&document, files.namespace.as_deref())
            .map_err(|error| error.context(place.clone()))?;
        if !problems.is_empty() {
            failed = true;
            writeln!(
                stderr,
                "{}",
                report::problem_lines_of(&document.origin, &document.name(), &problems)
            )?;
        }
        if let Some(resource) = resource {
            if is_json {
                writeln!(stdout, "{}", serde_json::to_string(&resource)?)?;
            } else {
                writeln!(stdout, "---")?;
                stdout.write_all(to_yaml(&resource.to_value())?.as_bytes())?;
            }
        }
    }
    stdout.flush()?;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Converts one object; what could not be converted is among the problems.
fn convert(document: &Document, namespace: Option<&str>) -> Result<(Option<Resource>, Problems)> {
    let text = |field: &str| {
        document
            .value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match (text("apiVersion"), text("kind")) {
        ("networking.k8s.io/v1", "NetworkPolicy") => {
            let mut policy: k8s_openapi::api::networking::v1::NetworkPolicy =
                read(&document.value)?;
            let default = namespace.unwrap_or("default");
            policy
                .metadata
                .namespace
                .get_or_insert_with(|| default.to_owned());
            Ok(split(k8s::network_policy(&policy)))
        }
        (version, "ClusterNetworkPolicy") if version.starts_with("policy.networking.k8s.io/") => {
            Ok(split(k8s::cluster_network_policy(&read(&document.value)?)))
        }
        ("v1", "Namespace") => Ok(split(k8s::namespace(&read(&document.value)?))),
        ("v1", "ServiceAccount") => Ok(split(k8s::service_account(&read(&document.value)?))),
        (tortie_api::API_VERSION, _) => match document.decode(namespace) {
            Ok(resource) => Ok((Some(resource), Problems::default())),
            Err(problems) => Ok((None, problems)),
        },
        (version, kind) => bail!(
            "cannot convert {version} {kind}; NetworkPolicy, ClusterNetworkPolicy, Namespace and ServiceAccount can be converted"
        ),
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|error| anyhow!("not a valid object of its kind: {error}"))
}

fn split<T: Into<Resource>>(converted: Converted<T>) -> (Option<Resource>, Problems) {
    (converted.resource.map(Into::into), converted.problems)
}
