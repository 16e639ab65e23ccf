//! Tables of custom resources: their names and ages. The columns that definitions ask for are not shown.

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, age};

pub(super) const COLUMNS: &[Column] = &[Column::new("Name"), Column::new("Age")];

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let metadata = &object["metadata"];
    let age = age::since(&metadata["creationTimestamp"], now);
    vec![metadata["name"].clone(), age.into()]
}
