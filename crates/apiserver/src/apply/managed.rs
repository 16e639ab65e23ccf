//! `metadata.managedFields`: who manages what.

use serde_json::{Value, json};

use super::field_set::FieldSet;

/// How a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else.
    Update,
}

/// Who writes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// The name it gives itself.
    pub name: String,
    /// How it writes.
    pub operation: Operation,
    /// The group and version it writes.
    pub api_version: String,
    /// The part of the object that it writes, such as `status`, or nothing for the object itself.
    pub subresource: String,
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: Manager,
    pub(super) time: String,
    pub(super) fields: FieldSet,
}

impl Manager {
    /// As messages about conflicts name it.
    pub(super) fn describe(&self) -> String {
        let subresource = match self.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        match self.operation {
            Operation::Apply => format!("{:?}{subresource}", self.name),
            Operation::Update => {
                format!("{:?}{subresource} using {}", self.name, self.api_version)
            }
        }
    }
}

impl Entry {
    /// Whether this is the entry of a manager. The version that it writes may have changed.
    pub(super) fn is_of(&self, manager: &Manager) -> bool {
        self.manager.name == manager.name
            && self.manager.operation == manager.operation
            && self.manager.subresource == manager.subresource
    }

    fn to_value(&self) -> Value {
        let mut value = json!({
            "manager": self.manager.name,
            "operation": match self.manager.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            },
            "apiVersion": self.manager.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_value(),
        });
        if !self.manager.subresource.is_empty() {
            value["subresource"] = json!(self.manager.subresource);
        }
        value
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let operation = match text("operation")? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        Some(Self {
            manager: Manager {
                name: text("manager").unwrap_or_default().to_owned(),
                operation,
                api_version: text("apiVersion").unwrap_or_default().to_owned(),
                subresource: text("subresource").unwrap_or_default().to_owned(),
            },
            time: text("time").unwrap_or_default().to_owned(),
            fields: FieldSet::from_value(value.get("fieldsV1")?),
        })
    }
}

/// Who manages an object. Entries that cannot be read are forgotten: their fields belong to nobody.
pub(super) fn read_entries(object: &Value) -> Vec<Entry> {
    let entries = object.pointer("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(Entry::read).collect()
}

/// Writes down who manages an object.
pub(super) fn write_entries(object: &mut Value, entries: &[Entry]) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        let entries = entries.iter().map(Entry::to_value).collect();
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}
