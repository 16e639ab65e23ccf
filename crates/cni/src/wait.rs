//! Waiting until the agent says that an endpoint's policy is in force.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::NetworkConfig;
use crate::identity::Identity;

const FOLDER: &str = "/var/run/calico/endpoint-status";

/// How soon the file is seen. Looking costs a few microseconds.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits for the agent's file about an endpoint, if that is configured. Without the file, the container starts
/// nevertheless, with a warning.
pub(crate) async fn for_policy(config: &NetworkConfig, identity: &Identity, endpoint: &str) {
    let Ok(seconds @ 1..) = u64::try_from(config.policy_setup_timeout_seconds) else {
        return;
    };
    let folder = if config.endpoint_status_dir.as_os_str().is_empty() {
        Path::new(FOLDER)
    } else {
        &config.endpoint_status_dir
    };
    let file = folder.join(file_name(
        identity.orchestrator(),
        &identity.workload(),
        endpoint,
    ));
    let end = Instant::now() + Duration::from_secs(seconds);
    while !file.exists() {
        if Instant::now() >= end {
            let file = file.display();
            tracing::warn!(%file, seconds, "The endpoint's policy is not in force in time; the container starts nevertheless");
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The parts of an endpoint's identity, separated by spaces, each escaped as Go escapes a segment of a path.
fn file_name(orchestrator: &str, workload: &str, endpoint: &str) -> String {
    [orchestrator, workload, endpoint].map(escaped).join(" ")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn the_file_is_named_as_the_agent_names_it() {
        assert_eq!(
            file_name("k8s", "default/pod-1", "eth0"),
            "k8s default%2Fpod-1 eth0"
        );
    }
}
