//! The cells of an event, in either of its views.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, age, text_or};

pub(super) const COLUMNS: &[Column] = &[
    Column::new("Last Seen"),
    Column::new("Type"),
    Column::new("Reason"),
    Column::new("Object"),
    Column::wide("Subobject"),
    Column::wide("Source"),
    Column::new("Message"),
    Column::wide("First Seen"),
    Column::wide("Count"),
    Column::wide("Name"),
];

pub(super) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, other: &str| match &event[core] {
        Value::Null => &event[other],
        value => value,
    };
    let about = either("involvedObject", "regarding");
    let source = either("source", "deprecatedSource");
    let reporter = either("reportingComponent", "reportingController");
    let seen = |times: [&Value; 3]| {
        let known = times.into_iter().find(|time| !time.is_null());
        age::since(known.unwrap_or(&Value::Null), now)
    };
    let (series, begun) = (&event["series"], &event["eventTime"]);
    let first = either("firstTimestamp", "deprecatedFirstTimestamp");
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let count = either("count", "deprecatedCount").as_u64();
    let object = format!(
        "{}/{}",
        text_or(&about["kind"], "").to_lowercase(),
        text_or(&about["name"], "")
    );
    vec![
        seen([&series["lastObservedTime"], last, begun]).into(),
        text_or(&event["type"], "").into(),
        text_or(&event["reason"], "").into(),
        object.into(),
        text_or(&about["fieldPath"], "").into(),
        text_or(&source["component"], text_or(reporter, "")).into(),
        text_or(either("message", "note"), "").trim().into(),
        seen([first, begun, last]).into(),
        json!(series["count"].as_u64().or(count).unwrap_or(1)),
        event["metadata"]["name"].clone(),
    ]
}
