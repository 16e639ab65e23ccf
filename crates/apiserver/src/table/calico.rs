//! Tables of Calico's kinds: the columns of their CRDs, and the age.

use jiff::Timestamp;
use serde_json::Value;
use tortie_api::{Kind, crd};

use super::{Column, age, json_path};

const CREATED: &str = ".metadata.creationTimestamp";

const AGE: Column = Column {
    kind: "date",
    description: CREATED,
    ..Column::new("Age")
};

pub(super) fn columns(kind: Kind) -> Vec<Column> {
    let own = crd::printer_columns(kind).iter();
    let own = own.map(|(name, kind, path)| Column {
        kind,
        description: path,
        ..Column::new(name)
    });
    let mut columns = vec![Column::new("Name")];
    columns.extend(own);
    if !columns.contains(&AGE) {
        columns.push(AGE);
    }
    columns
}

pub(super) fn cells(kind: Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    columns(kind)
        .into_iter()
        .map(|column| match column.name {
            "Name" => object["metadata"]["name"].clone(),
            _ => cell(column, object, now),
        })
        .collect()
}

fn cell(column: Column, object: &Value, now: Timestamp) -> Value {
    let found = json_path::find(object, column.description);
    match (column.kind, found) {
        ("date", found) if column == AGE => age::since(found.unwrap_or(&Value::Null), now).into(),
        (_, None | Some(Value::Null)) => Value::Null,
        ("date", Some(time)) => age::since(time, now).into(),
        ("integer" | "number", Some(number)) if number.is_number() => number.clone(),
        ("boolean", Some(flag)) if flag.is_boolean() => flag.clone(),
        (_, Some(Value::String(text))) => text.as_str().into(),
        (_, Some(other)) => other.to_string().into(),
    }
}
