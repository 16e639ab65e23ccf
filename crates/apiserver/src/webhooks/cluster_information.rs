//! `/cluster-info`: what the cluster says of itself is written by Calico's own programs.

use serde_json::Value;
use tortie_operator::webhook::{Refusal, Review};

/// The accounts of Calico's programs that write it.
const WRITERS: &[&str] = &["calico-node", "calico-kube-controllers", "calico-typha"];

/// Lets only Calico's own programs write, by their accounts in their namespace.
pub(super) fn check(namespace: &str, review: &Review<Value>) -> Result<(), Refusal> {
    let user = &review.user.username;
    if is_writer(namespace, user) {
        return Ok(());
    }
    let text = format!("ClusterInformation is a read-only resource (user: {user})");
    Err(Refusal::new(text).with_reason(405, "MethodNotAllowed"))
}

fn is_writer(namespace: &str, user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:");
    let account = account.and_then(|account| account.split_once(':'));
    account.is_some_and(|(place, name)| place == namespace && WRITERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_accounts_of_the_namespace_write() {
        for (user, expected) in [
            ("system:serviceaccount:calico-system:calico-node", true),
            ("system:serviceaccount:calico-system:calico-typha", true),
            ("system:serviceaccount:default:calico-node", false),
            ("system:serviceaccount:calico-system:other", false),
            ("system:serviceaccount:calico-system:calico-node:x", false),
            ("calico-node", false),
            ("admin", false),
        ] {
            assert_eq!(is_writer("calico-system", user), expected, "{user}");
        }
    }
}
