//! Waiting until the agent says that an endpoint's policy is in force.

use std::path::Path;
use std::time::{Duration, Instant};

use tortie_files::places;

use crate::config::NetworkConfig;
use crate::identity::Identity;

/// How soon the file is seen. Looking costs a few microseconds.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits for the agent's file about an endpoint, if that is configured. Without the file, the container starts
/// nevertheless, with a warning.
pub(crate) async fn for_policy(config: &NetworkConfig, identity: &Identity, endpoint: &str) {
    let Ok(seconds @ 1..) = u64::try_from(config.policy_setup_timeout_seconds) else {
        return;
    };
    let folder = if config.endpoint_status_dir.as_os_str().is_empty() {
        Path::new(places::ENDPOINT_STATUS_FOLDER)
    } else {
        &config.endpoint_status_dir
    };
    let file = folder.join(places::endpoint_status(
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
