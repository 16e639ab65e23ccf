//! Forms of output: tables, YAML, JSON, names, chosen columns and JSON path templates.

pub(crate) mod bordered;
mod go_template;
mod jsonpath;
mod live;
mod table;

use std::io::Write;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tortie_api::columns::{self, TableContext};
use tortie_api::{API_VERSION, Kind, Resource};

pub(crate) use jsonpath::Template;
pub(crate) use live::{Happened, Live};
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
            "go-template" | "go-template-file" | "template" | "templatefile" => {
                bail!(go_template::advice(name, argument))
            }
            _ => bail!(
                "unknown output form `{text}`; use ps, wide, yaml, json, name, custom-columns=… or jsonpath=…"
            ),
        })
    }

    /// Writes the resources in this form.
    pub(crate) fn write(&self, shown: &Shown, out: &mut impl Write) -> Result<()> {
        match self {
            Self::Table { .. } | Self::Headings(_) => self.write_tables(shown, out)?,
            Self::Paths(columns) => {
                let headings = columns.iter().map(|(heading, _)| heading.clone()).collect();
                let mut table = Table::new(headings);
                for resource in &shown.resources {
                    table.add(self.cells(resource, &[], shown.context));
                }
                table.write(out)?;
            }
            Self::Yaml => out.write_all(to_yaml(&shown.to_value())?.as_bytes())?,
            Self::Json => writeln!(out, "{}", serde_json::to_string_pretty(&shown.to_value())?)?,
            Self::Name => {
                for resource in &shown.resources {
                    let kind = resource.kind().as_str().to_ascii_lowercase();
                    writeln!(out, "{kind}/{}", resource.metadata().name)?;
                }
            }
            Self::Template(template) => {
                out.write_all(template.render(&shown.to_value()).as_bytes())?;
            }
        }
        Ok(())
    }

    /// Writes one table for each kind, in the order in which the kinds first appear.
    fn write_tables(&self, shown: &Shown, out: &mut impl Write) -> Result<()> {
        let mut kinds: Vec<Kind> = shown.kind.into_iter().collect();
        for resource in &shown.resources {
            if !kinds.contains(&resource.kind()) {
                kinds.push(resource.kind());
            }
        }
        for kind in kinds {
            let headings = self.headings(kind, shown.with_namespace)?;
            let mut table = Table::new(headings.clone());
            let resources = shown.resources.iter();
            for resource in resources.filter(|resource| resource.kind() == kind) {
                table.add(self.cells(resource, &headings, shown.context));
            }
            table.write(out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// The headings of a table of a kind; none for forms that are no tables.
    fn headings(&self, kind: Kind, with_namespace: bool) -> Result<Vec<String>> {
        let mut headings = match self {
            Self::Table { wide } => {
                let headings = columns::headings(kind, *wide).iter();
                headings.map(|heading| (*heading).to_owned()).collect()
            }
            Self::Headings(headings) => {
                let known = columns::known_headings(kind);
                let is_unknown = |heading: &&String| !known.contains(&heading.as_str());
                if let Some(unknown) = headings.iter().find(is_unknown) {
                    let known = known.join(", ");
                    bail!("unknown heading {unknown}, valid values are: {known}");
                }
                headings.clone()
            }
            Self::Paths(columns) => {
                return Ok(columns.iter().map(|(heading, _)| heading.clone()).collect());
            }
            _ => return Ok(Vec::new()),
        };
        if with_namespace && kind.is_namespaced() && !headings.iter().any(|h| h == "NAMESPACE") {
            headings.insert(0, "NAMESPACE".to_owned());
        }
        Ok(headings)
    }

    /// A row of a table with these headings.
    fn cells(
        &self,
        resource: &Resource,
        headings: &[String],
        context: TableContext,
    ) -> Vec<String> {
        let Self::Paths(columns) = self else {
            let headings = headings.iter();
            return headings
                .map(|heading| columns::cell(resource, heading, &context))
                .collect();
        };
        let value = resource.to_value();
        let cells = columns.iter();
        cells
            .map(|(_, path)| or_none(path.render(&value)))
            .collect()
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
}

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
