//! Where policies are written: files and lines.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::Deserialize as _;
use serde_json::Value;
use tortie_api::k8s::{self, ClusterNetworkPolicy};
use tortie_api::names::{PolicyId, PolicyKind};

use tortie_input::{self as input, STDIN};

/// The files that policies come from.
#[derive(Debug, Default)]
pub struct Sources {
    policies: HashMap<PolicyId, Source>,
}

/// An object of a file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) file: Arc<str>,
    /// Its number within the file, from 1.
    pub(crate) number: usize,
}

impl Sources {
    pub(crate) fn note(&mut self, policy: &PolicyId, source: &Source) {
        self.policies.insert(policy.clone(), source.clone());
    }

    /// `shop.yaml:31`, where a rule of a policy is written. The file is read again: few rules are shown.
    pub fn place(&self, policy: &PolicyId, is_ingress: bool, rule: usize) -> Option<String> {
        let Source { file, number } = self.policies.get(policy)?;
        if **file == *STDIN {
            return Some(format!("{file}: document {number}"));
        }
        let line = || {
            let text = fs::read_to_string(&**file).ok()?;
            let mut documents = input::parse(file, &text).ok()?.into_iter();
            let document = documents.nth(number - 1)?;
            let rule = written_rule(policy, document.value, is_ingress, rule)?;
            let field = format!("spec.{}[{rule}]", direction(is_ingress));
            document.origin.line(&field)
        };
        Some(match line() {
            Some(line) => format!("{file}:{line}"),
            None => format!("{file}: document {number}"),
        })
    }
}

fn direction(is_ingress: bool) -> &'static str {
    if is_ingress { "ingress" } else { "egress" }
}

/// The place of a rule in the policy as it is written: one rule of Kubernetes becomes several of Calico's.
fn written_rule(
    policy: &PolicyId,
    mut value: Value,
    is_ingress: bool,
    rule: usize,
) -> Option<usize> {
    let count: fn(&Value) -> Option<[usize; 2]> = match policy.kind {
        PolicyKind::KubernetesNetworkPolicy => |value| {
            let policy = NetworkPolicy::deserialize(value).ok()?;
            let spec = k8s::network_policy(&policy).resource?.spec;
            Some([spec.ingress.len(), spec.egress.len()])
        },
        PolicyKind::KubernetesClusterNetworkPolicy => |value| {
            let policy = ClusterNetworkPolicy::deserialize(value).ok()?;
            let spec = k8s::cluster_network_policy(&policy).resource?.spec;
            Some([spec.ingress.len(), spec.egress.len()])
        },
        _ => return Some(rule),
    };
    let written = value.pointer(&format!("/spec/{}", direction(is_ingress)))?;
    let written = written.as_array()?.clone();
    // With only the first rules, so many rules of Calico are there.
    (0..written.len()).find(|last| {
        value["spec"][direction(is_ingress)] = written[..=*last].to_vec().into();
        count(&value).is_some_and(|counts| counts[usize::from(!is_ingress)] > rule)
    })
}
