//! Label selectors of Kubernetes as selectors of Calico.
//!
//! The text is part of the contract: selectors are compared and hashed as written, so that all components that
//! convert the same object must agree on every space.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Matches the endpoints of pods, as opposed to host endpoints and network sets.
const IS_POD: &str = "projectcalico.org/orchestrator == 'k8s'";

/// Selects pods; a selector that is missing or empty selects all of them.
pub(super) fn of_pods(selector: Option<&LabelSelector>) -> String {
    let mut terms = vec![IS_POD.to_owned()];
    terms.extend(selector.into_iter().flat_map(terms_of));
    terms.join(" && ")
}

/// Selects namespaces; a missing selector stays empty, whereas an empty one selects all of them.
pub(super) fn of_namespaces(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let is_empty = selector
        .match_labels
        .as_ref()
        .is_none_or(BTreeMap::is_empty)
        && selector
            .match_expressions
            .as_ref()
            .is_none_or(Vec::is_empty);
    if is_empty {
        return "all()".to_owned();
    }
    terms_of(selector).collect::<Vec<_>>().join(" && ")
}

fn terms_of(selector: &LabelSelector) -> impl Iterator<Item = String> {
    let labels = selector
        .match_labels
        .iter()
        .flatten()
        .map(|(key, value)| format!("{key} == '{value}'"));
    let expressions = selector
        .match_expressions
        .iter()
        .flatten()
        .filter_map(|expression| {
            let key = &expression.key;
            let values = || {
                expression
                    .values
                    .as_deref()
                    .unwrap_or_default()
                    .join("', '")
            };
            match expression.operator.as_str() {
                "In" => Some(format!("{key} in {{ '{}' }}", values())),
                "NotIn" => Some(format!("{key} not in {{ '{}' }}", values())),
                "Exists" => Some(format!("has({key})")),
                "DoesNotExist" => Some(format!("! has({key})")),
                // The API server knows no other operator.
                _ => None,
            }
        });
    labels.chain(expressions)
}
