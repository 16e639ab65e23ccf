//! Selectors in the words of those who write them.
//!
//! Selectors of policies carry conditions that nobody wrote: the namespace of a policy, prefixes before the labels of
//! namespaces and service accounts, and that Kubernetes' own policies are for pods.

use std::fmt::Write as _;

use tortie_api::k8s::{NAMESPACE_LABEL, SERVICE_ACCOUNT_LABEL};
use tortie_selector::{Comparison, Expr, FailingTerm, Labels, Node, Values};

use super::EndpointKey;
use crate::input::{NAMESPACE, SERVICE_ACCOUNT};

/// The label that says which system an endpoint belongs to.
const ORCHESTRATOR: &str = "projectcalico.org/orchestrator";

/// Labels that hold the name of a namespace: Calico's and Kubernetes'.
const NAMES_OF_NAMESPACE: [&str; 2] = ["projectcalico.org/name", "kubernetes.io/metadata.name"];

/// What a label is about.
enum About<'a> {
    /// The namespace that something is in, by its name.
    Namespace,
    /// The service account of a pod, by its name.
    ServiceAccount,
    /// Whether something is a pod.
    Pods,
    /// A label of the namespace.
    OfNamespace(&'a str),
    /// A label of the service account.
    OfServiceAccount(&'a str),
    /// A label of its own.
    Own(&'a str),
}

impl<'a> About<'a> {
    fn new(label: &'a str) -> Self {
        match label {
            NAMESPACE => Self::Namespace,
            SERVICE_ACCOUNT => Self::ServiceAccount,
            ORCHESTRATOR => Self::Pods,
            _ => match (
                label.strip_prefix(NAMESPACE_LABEL),
                label.strip_prefix(SERVICE_ACCOUNT_LABEL),
            ) {
                (Some(name), _) if NAMES_OF_NAMESPACE.contains(&name) => Self::Namespace,
                (Some(label), _) => Self::OfNamespace(label),
                (_, Some(label)) => Self::OfServiceAccount(label),
                _ => Self::Own(label),
            },
        }
    }
}

/// Why an endpoint is not one that a selector means. `side` is `source` or `destination`.
pub(super) fn mismatch(
    side: &str,
    endpoint: &EndpointKey,
    labels: &impl Labels,
    term: &FailingTerm<'_>,
) -> String {
    let who = format!("{side} {endpoint}");
    let expr = term.expr();
    let Some(label) = term.label() else {
        return format!("{who} is not what it is for: {}", condition(expr));
    };
    let value = term.value();
    let named = |label: &str| labels.get(label).unwrap_or("?").to_owned();
    match About::new(label) {
        About::Namespace => {
            let place = match labels.get(NAMESPACE) {
                Some(namespace) => format!("is in namespace {namespace}"),
                None => "is in no namespace".to_owned(),
            };
            match expr.node() {
                Node::Not(_) => {
                    format!(
                        "it is for what is not {}, and {who} {place}",
                        inner(expr, condition)
                    )
                }
                Node::Has { .. } => format!("it is for what is in a namespace, and {who} {place}"),
                _ => format!("it is for pods {}, and {who} {place}", condition(expr)),
            }
        }
        About::ServiceAccount => {
            let account = value.map_or("there is none".to_owned(), |name| format!("it is {name}"));
            format!("it is for {}, and of {who} {account}", condition(expr))
        }
        About::Pods => format!("it is for pods, and {who} is none"),
        About::OfNamespace(label) => {
            let subject = format!("namespace {} of {who}", named(NAMESPACE));
            of_label(&subject, label, expr, value)
        }
        About::OfServiceAccount(label) => {
            let subject = format!("service account {} of {who}", named(SERVICE_ACCOUNT));
            of_label(&subject, label, expr, value)
        }
        About::Own(label) => of_label(&who, label, expr, value),
    }
}

/// What is wrong with one label.
fn of_label(subject: &str, label: &str, expr: Expr<'_>, value: Option<&str>) -> String {
    let wanted = match expr.node() {
        Node::Compare {
            comparison: Comparison::Equal,
            value,
            ..
        } => format!("{value:?}"),
        Node::Compare {
            comparison:
                comparison @ (Comparison::Contains | Comparison::StartsWith | Comparison::EndsWith),
            value,
            ..
        } => format!("one that {} {value:?}", verb(comparison)),
        Node::In { values, .. } if values.len() == 1 => list(values),
        Node::In { values, .. } => format!("one of {}", list(values)),
        // What else there is excludes values.
        _ => String::new(),
    };
    match (value, &*wanted) {
        (None, "") => format!("{subject} has no label {label}"),
        (None, wanted) => format!("{subject} has no label {label}, which must be {wanted}"),
        (Some(value), "") => {
            format!("label {label} of {subject} is {value:?}, which it excludes")
        }
        (Some(value), wanted) => format!("label {label} of {subject} is {value:?}, not {wanted}"),
    }
}

/// Whom a selector means, such as `pods with app == "web" in namespace shop`.
pub(super) fn meant(expr: Expr<'_>) -> String {
    let mut operands = Vec::new();
    flatten(expr, &mut operands);
    let mut noun = "endpoints";
    let (mut conditions, mut places) = (Vec::new(), Vec::new());
    for operand in operands {
        match (operand.label().map(About::new), operand.node()) {
            (Some(About::Pods), Node::Compare { .. }) => noun = "pods",
            (_, Node::All) => {}
            (Some(About::Namespace | About::ServiceAccount), _) => places.push(condition(operand)),
            _ => conditions.push(condition(operand)),
        }
    }
    let mut text = noun.to_owned();
    if !conditions.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, " with {}", conditions.join(" and "));
    }
    for place in places {
        let _ = write!(text, " {place}");
    }
    text
}

/// All that must hold at once.
fn flatten<'a>(expr: Expr<'a>, operands: &mut Vec<Expr<'a>>) {
    match expr.node() {
        Node::And(parts) => parts.for_each(|part| flatten(part, operands)),
        _ => operands.push(expr),
    }
}

fn condition(expr: Expr<'_>) -> String {
    let joined = |operands: tortie_selector::Operands<'_>, word: &str| {
        let all: Vec<String> = operands.map(condition).collect();
        format!("({})", all.join(word))
    };
    match expr.node() {
        Node::All => "anything".to_owned(),
        Node::Global => "anything that is in no namespace".to_owned(),
        Node::And(operands) => joined(operands, " and "),
        Node::Or(operands) => joined(operands, " or "),
        Node::Not(operand) => match (operand.node(), operand.label().map(About::new)) {
            (Node::Has { .. }, Some(About::Namespace)) => "in no namespace".to_owned(),
            (Node::Has { .. }, Some(about)) => format!("no {}", name(&about)),
            _ => format!("not {}", condition(operand)),
        },
        Node::Has { label } => match About::new(label) {
            About::Namespace => "in a namespace".to_owned(),
            About::Pods => "pods".to_owned(),
            about => name(&about),
        },
        Node::Compare {
            comparison,
            label,
            value,
        } => match (About::new(label), comparison) {
            (About::Namespace, Comparison::Equal) => format!("of namespace {value}"),
            (About::Pods, Comparison::Equal) => "pods".to_owned(),
            (about, comparison) => {
                format!("{} {} {value:?}", term_name(&about), comparison.as_str())
            }
        },
        Node::In { label, values } => match About::new(label) {
            About::Namespace => format!("of namespace {}", plain(values)),
            About::ServiceAccount => format!("service account {}", plain(values)),
            about => format!("{} in {{{}}}", term_name(&about), list(values)),
        },
        Node::NotIn { label, values } => {
            format!(
                "{} not in {{{}}}",
                term_name(&About::new(label)),
                list(values)
            )
        }
    }
}

/// A label as it stands before an operator.
fn term_name(about: &About<'_>) -> String {
    match about {
        About::Own(label) => (*label).to_owned(),
        other => name(other),
    }
}

fn name(about: &About<'_>) -> String {
    match about {
        About::Namespace => "namespace".to_owned(),
        About::ServiceAccount => "service account".to_owned(),
        About::Pods => "orchestrator".to_owned(),
        About::OfNamespace(label) => format!("namespace label {label}"),
        About::OfServiceAccount(label) => format!("service account label {label}"),
        About::Own(label) => format!("label {label}"),
    }
}

fn inner(expr: Expr<'_>, text: impl Fn(Expr<'_>) -> String) -> String {
    match expr.node() {
        Node::Not(operand) => text(operand),
        _ => text(expr),
    }
}

fn verb(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::StartsWith => "starts with",
        Comparison::EndsWith => "ends with",
        other => other.as_str(),
    }
}

fn list(values: Values<'_>) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    quoted.join(", ")
}

fn plain(values: Values<'_>) -> String {
    values.iter().collect::<Vec<_>>().join(" or ")
}
