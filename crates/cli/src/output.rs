//! Forms of output: tables, YAML, JSON, names, chosen columns and JSON path templates.

mod jsonpath;
mod table;

use std::io::Write;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tortie_api::columns::{self, TableContext};
use tortie_api::{API_VERSION, Kind, Resource};

pub(crate) use jsonpath::Template;
pub(crate) use table::Table;

/// A form of output.
#[derive(Debug)]
pub(crate) enum Form {
    /// A table with the usual columns.
    Table { wide: bool },
    /// Whole resources as YAML.
    Yaml,
    /// Whole resources as JSON.
    Json,
    /// `kind/name` lines.
    Name,
    /// A table with some of the usual columns.
    Headings(Vec<String>),
    /// A table with columns taken by path.
    Paths(Vec<(String, Template)>),
    /// Text with values taken by path.
    Template(Template),
}

/// What was asked for and found.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The kind, where all resources are of one.
    pub(crate) kind: Option<Kind>,
    /// The resources.
    pub(crate) resources: Vec<Resource>,
    /// The revision of the list, where a whole kind was listed.
    pub(crate) list_revision: Option<String>,
    /// Whether tables name the namespace.
    pub(crate) with_namespace: bool,
    /// What table cells depend on besides their object.
    pub(crate) context: TableContext,
}

impl Form {
    /// Reads the value of `-o`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (name, argument) = text.split_once('=').unwrap_or((text, ""));
        Ok(match name {
            "ps" | "table" => Self::Table { wide: false },
            "wide" => Self::Table { wide: true },
            "yaml" | "yml" => Self::Yaml,
            "json" => Self::Json,
            "name" => Self::Name,
            "custom-columns" if argument.contains(':') => Self::Paths(
                argument
                    .split(',')
                    .map(|column| {
                        let (heading, path) = column.split_once(':').unwrap_or((column, ""));
                        Ok((heading.to_owned(), Template::parse_path(path)?))
                    })
                    .collect::<Result<_>>()?,
            ),
            "custom-columns" if !argument.is_empty() => Self::Headings(
                argument
                    .split(',')
                    .map(|heading| heading.trim().to_ascii_uppercase())
                    .collect(),
            ),
            "jsonpath" if !argument.is_empty() => Self::Template(Template::parse(argument)?),
            "go-template" | "go-template-file" => {
                bail!(
                    "output form `{name}` is not there; use jsonpath=… or custom-columns=… instead"
                )
            }
            _ => bail!(
                "unknown output form `{text}`; use ps, wide, yaml, json, name, custom-columns=… or jsonpath=…"
            ),
        })
    }

    /// Writes the resources in this form.
    pub(crate) fn write(&self, shown: &Shown, out: &mut impl Write) -> Result<()> {
        match self {
            Self::Table { wide } => shown.write_tables(out, |kind| {
                Ok(columns::headings(kind, *wide)
                    .iter()
                    .map(|heading| (*heading).to_owned())
                    .collect())
            }),
            Self::Headings(headings) => shown.write_tables(out, |kind| {
                let known = columns::known_headings(kind);
                match headings
                    .iter()
                    .find(|heading| !known.contains(&heading.as_str()))
                {
                    Some(unknown) => {
                        bail!(
                            "unknown heading {unknown}, valid values are: {}",
                            known.join(", ")
                        )
                    }
                    None => Ok(headings.clone()),
                }
            }),
            Self::Paths(columns) => {
                let mut table =
                    Table::new(columns.iter().map(|(heading, _)| heading.clone()).collect());
                for resource in &shown.resources {
                    let value = resource.to_value();
                    table.add(
                        columns
                            .iter()
                            .map(|(_, path)| or_none(path.render(&value)))
                            .collect(),
                    );
                }
                table.write(out)?;
                Ok(())
            }
            Self::Yaml => {
                out.write_all(to_yaml(&shown.to_value())?.as_bytes())?;
                Ok(())
            }
            Self::Json => {
                writeln!(out, "{}", serde_json::to_string_pretty(&shown.to_value())?)?;
                Ok(())
            }
            Self::Name => {
                for resource in &shown.resources {
                    let kind = resource.kind().as_str().to_ascii_lowercase();
                    writeln!(out, "{kind}/{}", resource.metadata().name)?;
                }
                Ok(())
            }
            Self::Template(template) => {
                out.write_all(template.render(&shown.to_value()).as_bytes())?;
                Ok(())
            }
        }
    }
}

impl Shown {
    /// One resource as it is, several as a list.
    fn to_value(&self) -> Value {
        let items: Vec<Value> = self.resources.iter().map(Resource::to_value).collect();
        match (&self.list_revision, self.kind) {
            (Some(revision), Some(kind)) => json!({
                "apiVersion": API_VERSION,
                "kind": format!("{kind}List"),
                "metadata": {"resourceVersion": revision},
                "items": items,
            }),
            _ if items.len() == 1 => items.into_iter().next().unwrap_or_default(),
            _ => Value::Array(items),
        }
    }

    /// Writes one table for each kind, in the order in which the kinds first appear.
    fn write_tables(
        &self,
        out: &mut impl Write,
        headings: impl Fn(Kind) -> Result<Vec<String>>,
    ) -> Result<()> {
        let mut kinds: Vec<Kind> = self.kind.into_iter().collect();
        for resource in &self.resources {
            if !kinds.contains(&resource.kind()) {
                kinds.push(resource.kind());
            }
        }
        for kind in kinds {
            let mut headings = headings(kind)?;
            if self.with_namespace
                && kind.is_namespaced()
                && !headings.iter().any(|h| h == "NAMESPACE")
            {
                headings.insert(0, "NAMESPACE".to_owned());
            }
            let mut table = Table::new(headings.clone());
            for resource in self
                .resources
                .iter()
                .filter(|resource| resource.kind() == kind)
            {
                table.add(
                    headings
                        .iter()
                        .map(|h| columns::cell(resource, h, &self.context))
                        .collect(),
                );
            }
            table.write(out)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// A value as YAML.
pub(crate) fn to_yaml(value: &impl serde::Serialize) -> Result<String> {
    Ok(serde_saphyr::to_string(value)?)
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}
