//! Objects as a table, for clients that show them to people: `kubectl get` prints what it gets.

mod age;
mod calico;
mod custom;
mod event;
mod json_path;
mod native;
mod node;
mod pod;
mod service;

pub use age::human_duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::registry::{Content, ResourceType};

/// How a table is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The version of `meta.k8s.io` that is asked for.
    pub version: Version,
    /// What each row holds of its object.
    pub include: Include,
    /// Whether the columns are described. A watch describes them with its first event only.
    pub has_columns: bool,
}

/// A version of `meta.k8s.io`. All say the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    V1,
    /// `v1beta1`.
    V1Beta1,
}

/// What a row holds of its object, besides the cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// What is fixed about a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Column {
    name: &'static str,
    kind: &'static str,
    /// Where the cells come from, for people.
    description: &'static str,
    /// Whether it is shown only when more is asked for.
    is_wide: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: Version::default(),
            include: Include::default(),
            has_columns: true,
        }
    }
}

impl Version {
    /// The version in `apiVersion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

impl Include {
    /// Reads the parameter `includeObject`. Nothing for a word that is not known.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

impl Column {
    /// A column that is always shown.
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            kind: "string",
            description: "",
            is_wide: false,
        }
    }

    /// A column that is shown when more is asked for.
    const fn wide(name: &'static str) -> Self {
        Self {
            is_wide: true,
            ..Self::new(name)
        }
    }

    const fn whole(name: &'static str) -> Self {
        Self {
            kind: "integer",
            ..Self::new(name)
        }
    }

    fn to_value(self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": if self.name == "Name" { "name" } else { "" },
            "description": self.description,
            "priority": i32::from(self.is_wide),
        })
    }
}

/// A table of objects of one resource. `metadata` is that of the list, or that of the object if there is one only.
pub fn table<'a>(
    resource: &ResourceType,
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: &Value,
    options: Options,
    now: Timestamp,
) -> Value {
    let columns = column_definitions(resource, options);
    let rows: Vec<_> = objects
        .into_iter()
        .map(|object| row(resource, object, options, now))
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": api_version(options.version),
        "metadata": list_metadata(metadata),
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// What is said of the columns.
pub fn column_definitions(resource: &ResourceType, options: Options) -> Vec<Value> {
    if !options.has_columns {
        return Vec::new();
    }
    let columns = columns(resource).into_iter();
    columns.map(Column::to_value).collect()
}

/// An object with nothing but its metadata.
pub fn partial(object: &Value, version: Version) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version(version),
        "metadata": object["metadata"],
    })
}

pub(crate) fn api_version(version: Version) -> String {
    format!("meta.k8s.io/{}", version.as_str())
}

/// What a list knows about itself, also out of the metadata of an object.
fn list_metadata(metadata: &Value) -> Map<String, Value> {
    let known = [
        "resourceVersion",
        "continue",
        "remainingItemCount",
        "selfLink",
    ];
    let fields = known.into_iter();
    fields
        .filter_map(|name| Some((name.to_owned(), metadata.get(name)?.clone())))
        .collect()
}

fn columns(resource: &ResourceType) -> Vec<Column> {
    match resource.content {
        Content::Calico(kind) => calico::columns(kind),
        Content::Native(kind) => native::columns(kind).to_vec(),
        Content::Custom => custom::COLUMNS.to_vec(),
        Content::Review(_) => Vec::new(),
    }
}

pub fn row(resource: &ResourceType, object: &Value, options: Options, now: Timestamp) -> Value {
    let cells = match resource.content {
        Content::Calico(kind) => calico::cells(kind, object, now),
        Content::Native(kind) => native::cells(kind, object, now),
        Content::Custom => custom::cells(object, now),
        Content::Review(_) => Vec::new(),
    };
    let mut row = json!({"cells": cells});
    match options.include {
        Include::None => {}
        Include::Metadata => row["object"] = partial(object, options.version),
        Include::Object => row["object"] = object.clone(),
    }
    if let Some(phase) = pod::ending(resource, object) {
        row["conditions"] = json!([{
            "type": "Completed",
            "status": "True",
            "reason": phase,
            "message": "The pod has ended.",
        }]);
    }
    row
}

/// Text of an object, or another where there is none.
fn text_or<'a>(value: &'a Value, other: &'a str) -> &'a str {
    match value.as_str() {
        None | Some("") => other,
        Some(text) => text,
    }
}

/// The items of a list; none if there is no list.
fn items(value: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Texts joined by commas, or `<none>`.
fn join_or_none<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<T> = texts.into_iter().collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    if texts.is_empty() {
        NONE.to_owned()
    } else {
        texts.join(",")
    }
}

/// What stands in a cell that has nothing to show.
const NONE: &str = "<none>";

#[cfg(test)]
mod tests;
