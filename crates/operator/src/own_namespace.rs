//! Where this process runs.

/// Holds the namespace of the pod that this process runs in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of the pod that this process runs in, if it runs in one.
pub fn own_namespace() -> Option<String> {
    let namespace = std::fs::read_to_string(NAMESPACE_FILE).unwrap_or_default();
    let namespace = namespace.trim();
    (!namespace.is_empty()).then(|| namespace.to_owned())
}
