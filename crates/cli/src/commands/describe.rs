//! `tortie describe`: a resource for people, with what it selects and what refers to it.

mod relations;
mod world;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::Value;
use tortie_api::Resource;
use tortie_client::connect::Connection;
use tortie_store::Query;

use super::kinds;
use crate::args::{Describe, Global};
use crate::config;
use crate::output::to_yaml;

/// Width of the first column.
const LABEL: usize = 14;

/// Lines under a heading.
struct Section {
    title: &'static str,
    lines: Vec<String>,
}

pub(super) async fn run(args: &Describe, global: &Global) -> Result<ExitCode> {
    let connection = config::open(global).await?;
    let resources = find(args, &connection).await?;
    let mut out = std::io::BufWriter::new(anstream::stdout().lock());
    let mut world = None;
    for (index, resource) in resources.iter().enumerate() {
        if index > 0 {
            writeln!(out, "\n---")?;
        }
        let sections = relations::of(resource, &connection, &mut world).await?;
        write!(out, "{}", render(resource, &sections)?)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn find(args: &Describe, connection: &Connection) -> Result<Vec<Resource>> {
    let (kind, names) = kinds::parse_with_names(&args.kind, &args.names)?;
    let client = &connection.client;
    if names.is_empty() || (args.all_namespaces && kind.is_namespaced()) {
        let query = match &args.namespace {
            _ if !kind.is_namespaced() || args.all_namespaces => Query::all(kind),
            namespace => Query::in_namespace(kind, namespace.as_deref().unwrap_or("default")),
        };
        let mut found = client.list(&query).await?.items;
        found.retain(|one| names.is_empty() || names.contains(&one.metadata().name));
        if found.is_empty() {
            bail!("there is no {kind} here to describe");
        }
        return Ok(found);
    }
    let mut found = Vec::new();
    for name in &names {
        let key = kinds::key(kind, name, args.namespace.as_deref())?;
        found.push(client.get(&key).await?);
    }
    Ok(found)
}

fn render(resource: &Resource, sections: &[Section]) -> Result<String> {
    let mut text = String::new();
    let metadata = resource.metadata();
    let mut field = |label: &str, values: &[String]| {
        for (index, value) in values.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label:LABEL$}{value}");
        }
    };
    field("Name:", std::slice::from_ref(&metadata.name));
    if resource.kind().is_namespaced() {
        field("Namespace:", std::slice::from_ref(&metadata.namespace));
    }
    field("Kind:", &[resource.kind().to_string()]);
    field("Labels:", &pairs(&metadata.labels));
    field("Annotations:", &pairs(&metadata.annotations));
    if let Some(created) = &metadata.creation_timestamp {
        field("Created:", &[created.0.to_string()]);
    }
    field(
        "Revision:",
        std::slice::from_ref(&metadata.resource_version),
    );
    let value = resource.to_value();
    for (title, part) in [("Spec", &value["spec"]), ("Status", &value["status"])] {
        if !is_empty(part) {
            section(&mut text, title, to_yaml(part)?.lines());
        }
    }
    for Section { title, lines } in sections {
        if lines.is_empty() {
            section(&mut text, title, ["<none>"]);
        } else {
            section(&mut text, title, lines.iter().map(String::as_str));
        }
    }
    Ok(text)
}

fn section<'a>(text: &mut String, title: &str, lines: impl IntoIterator<Item = &'a str>) {
    let _ = writeln!(text, "{title}:");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn pairs<'a>(map: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<String> {
    let pairs: Vec<String> = map
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if pairs.is_empty() {
        return vec!["<none>".to_owned()];
    }
    pairs
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}
