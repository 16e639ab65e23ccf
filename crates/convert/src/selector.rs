//! Selectors of policies and rules, composed of what the user wrote and what namespace and service accounts add.
//!
//! Labels of namespaces and service accounts reach endpoints through profiles, with a prefix each; a selector for
//! them gets the prefix before every label and is written in canonical form. The selector for the endpoints
//! themselves stays as it was written.

use tortie_api::k8s::{NAMESPACE_LABEL, SERVICE_ACCOUNT_LABEL};
use tortie_api::rule::{EntityRule, ServiceAccountMatch};
use tortie_api::{Path, Problems};
use tortie_engine::input::{NAMESPACE, SERVICE_ACCOUNT};
use tortie_selector::Selector;

use super::read;

/// Which endpoints a policy of a namespace applies to.
pub(super) fn of_policy(
    at: &Path<'_>,
    namespace: &str,
    selector: &str,
    service_accounts: &str,
    problems: &mut Problems,
) -> Option<String> {
    let checked = check(&at.field("selector"), selector, problems);
    let accounts = service_account_selector(at, service_accounts, problems);
    checked?;
    let mut combined = selector.to_owned();
    if !namespace.is_empty() {
        append(&mut combined, &in_namespace(namespace));
    }
    append(&mut combined, &accounts?);
    composed(at, combined, problems)
}

/// Which endpoints a policy for the cluster applies to.
///
/// `all()` means all namespaces in a selector of namespaces, and all service accounts in one of those. It is replaced
/// in the whole text, which includes the policy's own selector: with a selector of namespaces the policy is for
/// endpoints in namespaces alone, anyway.
pub(super) fn of_global_policy(
    at: &Path<'_>,
    selector: &str,
    namespaces: &str,
    service_accounts: &str,
    problems: &mut Problems,
) -> Option<String> {
    let checked = check(&at.field("selector"), selector, problems);
    let of_namespaces = namespace_selector(at, namespaces, problems);
    let of_accounts = service_account_selector(at, service_accounts, problems);
    checked?;
    let mut combined = selector.to_owned();
    for (added, label) in [(of_namespaces?, NAMESPACE), (of_accounts?, SERVICE_ACCOUNT)] {
        if !added.is_empty() {
            append(&mut combined, &added);
            combined = combined.replace("all()", &format!("has({label})"));
        }
    }
    composed(at, combined, problems)
}

/// Which endpoints and network sets one side of a rule is about; empty if it names none.
///
/// In a policy of a namespace this is limited to the namespace as soon as any selector is used, `notSelector`
/// included, unless the side has a namespace selector of its own.
pub(super) fn of_entity(
    at: &Path<'_>,
    entity: &EntityRule,
    namespace: &str,
    problems: &mut Problems,
) -> Option<String> {
    let checked = check(&at.field("selector"), &entity.selector, problems);
    let checked_not = check(&at.field("notSelector"), &entity.not_selector, problems);
    let namespaces = namespace_selector(at, &entity.namespace_selector, problems);
    let accounts = match &entity.service_accounts {
        Some(accounts) => service_account_match(&at.field("serviceAccounts"), accounts, problems),
        None => Some(String::new()),
    };
    checked?;
    checked_not?;
    let mut namespaces = namespaces?
        .replace("all()", &format!("has({NAMESPACE})"))
        .replace("global()", &format!("!has({NAMESPACE})"));
    if namespaces.is_empty() && !namespace.is_empty() {
        namespaces = in_namespace(namespace);
    }
    let mut combined = both(&accounts?, &entity.selector);
    let has_selector = [&combined, &entity.not_selector, &entity.namespace_selector]
        .into_iter()
        .any(|text| !text.is_empty());
    if has_selector {
        combined = both(&namespaces, &combined);
    }
    if combined.is_empty() {
        return Some(combined);
    }
    composed(at, combined, problems)
}

/// The condition of being in a namespace.
fn in_namespace(namespace: &str) -> String {
    format!("{NAMESPACE} == '{namespace}'")
}

/// `(a) && (b)`, or the one that is not empty.
fn both(a: &str, b: &str) -> String {
    match (a, b) {
        ("", only) | (only, "") => only.to_owned(),
        _ => format!("({a}) && ({b})"),
    }
}

/// Adds a condition that needs no parentheses of its own; nothing if it is empty.
fn append(selector: &mut String, condition: &str) {
    if selector.is_empty() {
        condition.clone_into(selector);
    } else if !condition.is_empty() {
        *selector = format!("({selector}) && {condition}");
    }
}

fn namespace_selector(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<String> {
    prefixed(
        &at.field("namespaceSelector"),
        text,
        NAMESPACE_LABEL,
        problems,
    )
}

fn service_account_selector(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<String> {
    prefixed(
        &at.field("serviceAccountSelector"),
        text,
        SERVICE_ACCOUNT_LABEL,
        problems,
    )
}

/// The service accounts of a rule: labels, names, or both at once.
fn service_account_match(
    at: &Path<'_>,
    accounts: &ServiceAccountMatch,
    problems: &mut Problems,
) -> Option<String> {
    let labels = prefixed(
        &at.field("selector"),
        &accounts.selector,
        SERVICE_ACCOUNT_LABEL,
        problems,
    );
    let names = if accounts.names.is_empty() {
        Some(String::new())
    } else {
        let text = format!(
            "{SERVICE_ACCOUNT} in {{ '{}' }}",
            accounts.names.join("', '")
        );
        let names = Selector::parse(&text);
        if names.is_err() {
            let rule = "must be names of service accounts";
            problems.add(&at.field("names"), &accounts.names, rule);
        }
        names.ok().map(String::from)
    };
    Some(both(&labels?, &names?))
}

/// A selector for labels that carry a prefix, in canonical form; empty text stays empty.
fn prefixed(at: &Path<'_>, text: &str, prefix: &str, problems: &mut Problems) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    let selector = read::selector(at, text, problems)?;
    Some(selector.prefix_labels(prefix).into())
}

fn check(at: &Path<'_>, text: &str, problems: &mut Problems) -> Option<()> {
    read::selector(at, text, problems).map(|_| ())
}

/// Selectors that are valid by themselves can still be too long together.
fn composed(at: &Path<'_>, text: String, problems: &mut Problems) -> Option<String> {
    check(&at.field("selector"), &text, problems).map(|()| text)
}
