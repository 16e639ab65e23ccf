//! Names, labels and annotations of objects, with the stricter names of some kinds.

use super::labels::{self, MAX_LABEL, MAX_NAME, is_label_text, is_subdomain_text};
use crate::kind::Kind;
use crate::meta::Metadata;
use crate::names::KUBERNETES_POLICY;
use crate::problem::{Path, Problems};

/// The label that carries an endpoint's namespace; a user may not claim it for a set.
const NAMESPACE_LABEL: &str = "projectcalico.org/namespace";

/// Name prefixes of policies that other systems put into the datastore.
const FOREIGN_POLICY_PREFIXES: [&str; 2] = [KUBERNETES_POLICY, "ossg.default."];

pub(super) fn check(kind: Kind, metadata: &Metadata, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("metadata");
    check_name(kind, &at.field("name"), &metadata.name, problems);
    labels::annotations(&at.field("annotations"), &metadata.annotations, problems);
    let labels_at = at.field("labels");
    for (key, value) in &metadata.labels {
        labels::check(&labels_at, key, value, problems);
    }
    if matches!(kind, Kind::NetworkSet | Kind::GlobalNetworkSet)
        && metadata.labels.contains_key(NAMESPACE_LABEL)
    {
        problems.add(
            &labels_at,
            NAMESPACE_LABEL,
            "is set by the system and must not be given",
        );
    }
    if kind.is_namespaced() && metadata.namespace.is_empty() {
        problems.add_missing(
            &at.field("namespace"),
            format!("must be given: {kind} is namespaced"),
        );
    }
}

fn check_name(kind: Kind, at: &Path<'_>, name: &str, problems: &mut Problems) {
    if name.is_empty() {
        problems.add_missing(at, "must be given");
        return;
    }
    let max = if kind == Kind::Tier {
        MAX_LABEL
    } else {
        MAX_NAME
    };
    if name.len() > max {
        let excess = name.len() - max;
        problems.add(
            at,
            name,
            format!("must be at most {max} characters; too long by {excess}"),
        );
    }
    if !is_subdomain_text(name) {
        problems.add(
            at,
            name,
            "must be lower-case letters, digits, `-` and `.`, starting and ending with a letter or digit",
        );
        return;
    }
    let dots = name.matches('.').count();
    match kind {
        Kind::Tier if !is_label_text(name) => problems.add(at, name, "must not contain a dot"),
        Kind::GlobalNetworkPolicy | Kind::StagedGlobalNetworkPolicy if dots > 1 => {
            problems.add(at, name, "must contain at most one dot");
        }
        Kind::NetworkPolicy | Kind::StagedNetworkPolicy
            if dots > 1
                && !FOREIGN_POLICY_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix)) =>
        {
            problems.add(at, name, "must contain at most one dot");
        }
        Kind::KubeControllersConfiguration | Kind::ClusterInformation | Kind::IpamConfiguration
            if name != "default" =>
        {
            problems.add(
                at,
                name,
                format!("must be `default`: there is only one {kind}"),
            );
        }
        _ => {}
    }
}
