//! Where agent and CNI plugins meet, in the places of Calico.

use std::fmt::Write as _;

/// The name by which this node is known, written at its start.
pub const NODE_NAME: &str = "/var/lib/calico/nodename";

/// The file beside that one which says when the node was shut down.
pub const SHUTDOWN: &str = "shutdownTS";

/// How large packets of pods may be, written by the agent.
pub const MTU: &str = "/var/lib/calico/mtu";

/// Says that policy has been in force since the machine's start, whose identity is in it.
pub const AGENT_READY: &str = "/var/run/calico/agent-ready";

/// Locked by plugins that assign addresses.
pub const IPAM_LOCK: &str = "/var/run/calico/ipam.lock";

/// The folder with a file for each endpoint whose policy is in force, below the one that the parameter
/// `EndpointStatusPathPrefix` names.
pub const ENDPOINT_STATUS: &str = "endpoint-status";

/// That folder as plugins expect it.
pub const ENDPOINT_STATUS_FOLDER: &str = "/var/run/calico/endpoint-status";

/// The name of an endpoint's file: the parts of its identity, separated by spaces, with what a file's name cannot hold
/// escaped.
pub fn endpoint_status(orchestrator: &str, workload: &str, endpoint: &str) -> String {
    [orchestrator, workload, endpoint].map(escaped).join(" ")
}

/// As Go escapes a segment of a path.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~$&+=:@".contains(&byte);
        if is_plain {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::endpoint_status;

    #[test]
    fn files_are_named_after_the_endpoint() {
        assert_eq!(
            endpoint_status("k8s", "default/pod-1", "eth0"),
            "k8s default%2Fpod-1 eth0"
        );
    }
}
