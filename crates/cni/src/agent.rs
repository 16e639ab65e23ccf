//! Whether somebody enforces policy on this node.
//!
//! Without an agent a container would be connected where nothing is denied, after each start of the machine anew. The
//! agent writes a file once everything is in force; what it enforced stays in the kernel while the machine runs, so that
//! the file holds for as long. It has the identity of the machine's start in it, in case its folder outlives that.

use std::fs;
use std::path::Path;

use tortie_files::places;

use crate::config::NetworkConfig;
use crate::error::{Code, Error, Result};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Refuses to go on unless an agent has brought policy into force since the machine started.
pub(crate) fn check(config: &NetworkConfig) -> Result<()> {
    if config.require_agent == Some(false) {
        return Ok(());
    }
    let file = if config.agent_ready_file.as_os_str().is_empty() {
        Path::new(places::AGENT_READY)
    } else {
        &config.agent_ready_file
    };
    let boot = fs::read_to_string(BOOT_ID)
        .map_err(Error::of(Code::Other, format!("{BOOT_ID} cannot be read")))?;
    let reason = match fs::read_to_string(file) {
        Ok(said) if said.trim() == boot.trim() => return Ok(()),
        Ok(_) => "is of before the machine was started".to_owned(),
        Err(error) => format!("cannot be read: {error}"),
    };
    let message = format!(
        "no node agent has brought policy into force since this machine was started, so that nothing would be denied to the \
         container: {} {reason}; start `tortie agent` or `tortie up`, or set `require_agent` to false in the network \
         configuration to connect containers nevertheless",
        file.display()
    );
    Err(Error::new(Code::TryLater, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_agent_of_this_start_of_the_machine_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent-ready");
        let mut config = NetworkConfig {
            agent_ready_file: file.clone(),
            ..NetworkConfig::default()
        };
        let error = check(&config).unwrap_err();
        assert_eq!(error.code(), Code::TryLater);
        assert!(error.to_string().contains("require_agent"), "{error}");
        fs::write(&file, "another").unwrap();
        assert!(check(&config).is_err());
        fs::write(&file, fs::read(BOOT_ID).unwrap()).unwrap();
        check(&config).unwrap();
        fs::remove_file(&file).unwrap();
        config.require_agent = Some(false);
        check(&config).unwrap();
    }
}
