//! The parameters of operations.

use serde_json::{Map, Value, json};

use super::Form;

/// A parameter: its name, its type, and what it does.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

pub(super) const PRETTY: Parameter = ("pretty", "string", "If 'true', the output is indented.");
const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "With 'All', everything is checked and nothing is written.",
);
const FIELD_MANAGER: Parameter = (
    "fieldManager",
    "string",
    "The name of whoever makes the change.",
);
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What becomes of unknown fields: 'Ignore', 'Warn' or 'Strict'.",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Whether an apply takes over fields that others manage.",
);
pub(super) const RESOURCE_VERSION: Parameter = (
    "resourceVersion",
    "string",
    "The version that the answer must not be older than, or after which a watch begins.",
);
const GRACE_PERIOD: Parameter = (
    "gracePeriodSeconds",
    "integer",
    "How many seconds the object has to end; zero for none.",
);
const PROPAGATION_POLICY: Parameter = (
    "propagationPolicy",
    "string",
    "Whether and how dependents are collected: 'Orphan', 'Background' or 'Foreground'.",
);
const CONTINUE: Parameter = ("continue", "string", "Where the page before ended.");
const FIELD_SELECTOR: Parameter = (
    "fieldSelector",
    "string",
    "Restricts objects by their fields.",
);
const LABEL_SELECTOR: Parameter = (
    "labelSelector",
    "string",
    "Restricts objects by their labels.",
);
const LIMIT: Parameter = ("limit", "integer", "How many objects are given at most.");
const RESOURCE_VERSION_MATCH: Parameter = (
    "resourceVersionMatch",
    "string",
    "How resourceVersion is meant: 'Exact' or 'NotOlderThan'.",
);
const TIMEOUT: Parameter = (
    "timeoutSeconds",
    "integer",
    "After how many seconds a watch ends.",
);
const BOOKMARKS: Parameter = (
    "allowWatchBookmarks",
    "boolean",
    "Whether a watch tells how far it has come when nothing changes.",
);
const INITIAL_EVENTS: Parameter = (
    "sendInitialEvents",
    "boolean",
    "Whether a watch begins with the objects that are there.",
);
const WATCH: Parameter = (
    "watch",
    "boolean",
    "Gives changes as they come instead of a list.",
);

pub(super) const SELECTION: &[Parameter] = &[
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    TIMEOUT,
];
pub(super) const WATCHING: &[Parameter] = &[BOOKMARKS, INITIAL_EVENTS, WATCH];
pub(super) const WRITING: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
pub(super) const PATCHING: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
pub(super) const DELETING: &[Parameter] = &[DRY_RUN, GRACE_PERIOD, PROPAGATION_POLICY];

/// The parameters that operations refer to.
pub(in crate::openapi) fn shared_parameters(form: Form) -> Map<String, Value> {
    let groups = [&[PRETTY], SELECTION, WATCHING, WRITING, PATCHING, DELETING];
    let all = groups.into_iter().flatten();
    all.map(|known| (known.0.to_owned(), query_parameter(known, form)))
        .collect()
}

pub(super) fn query_parameter((name, kind, description): &Parameter, form: Form) -> Value {
    let mut parameter = json!({"name": name, "in": "query", "description": description});
    set_type(&mut parameter, kind, form);
    parameter
}

pub(super) fn path_parameter(name: &str, form: Form) -> Value {
    let mut parameter = json!({
        "name": name,
        "in": "path",
        "description": format!("The {name} of the object."),
        "required": true,
    });
    set_type(&mut parameter, "string", form);
    parameter
}

fn set_type(parameter: &mut Value, kind: &str, form: Form) {
    match form {
        Form::V2 => parameter["type"] = json!(kind),
        Form::V3 => parameter["schema"] = json!({"type": kind}),
    }
}
