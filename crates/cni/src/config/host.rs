//! What files of this machine say: its name, and the largest packet.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tortie_files::places;

use super::NetworkConfig;
use crate::error::{Code, Error, Result};

const KERNEL_NAME: &str = "/proc/sys/kernel/hostname";

/// The name of this node: configured, of the agent's file, or the machine's.
///
/// Unless the configuration says otherwise the file must be there even where its content is not used: it tells that the
/// agent has been started.
pub(crate) fn node_name(config: &NetworkConfig) -> Result<String> {
    let file = or_default(&config.nodename_file, places::NODE_NAME);
    let read = fs::read_to_string(&file);
    if let Err(error) = &read
        && !config.nodename_file_optional
    {
        let message = format!(
            "the name of this node cannot be read from {}: {error}: check that the node agent is running and has mounted {}",
            file.display(),
            file.parent().unwrap_or(Path::new("/")).display()
        );
        return Err(Error::new(Code::TryLater, message));
    }
    name_from(config, read.ok().as_deref())
}

fn name_from(config: &NetworkConfig, file: Option<&str>) -> Result<String> {
    let given = [&config.nodename, file.unwrap_or_default(), &config.hostname];
    if let Some(name) = given.iter().map(|name| name.trim()).find(|n| !n.is_empty()) {
        return Ok(name.to_owned());
    }
    let name = fs::read_to_string(KERNEL_NAME).map_err(Error::of(
        Code::Other,
        "the name of this machine cannot be read",
    ))?;
    match name.trim() {
        "" | "(none)" => Err(Error::config(
            "this machine has no name, and the network configuration has no `nodename`",
        )),
        name => Ok(name.to_lowercase()),
    }
}

/// The largest packet: configured, or of the agent's file; none to leave it to the kernel.
pub(crate) fn mtu(config: &NetworkConfig) -> Result<Option<u32>> {
    mtu_from(config, &or_default(&config.mtu_file, places::MTU))
}

fn mtu_from(config: &NetworkConfig, file: &Path) -> Result<Option<u32>> {
    let configured = Some(config.mtu).filter(|mtu| *mtu != 0);
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !config.require_mtu_file => {
            return Ok(configured);
        }
        Err(error) => {
            let message = format!("the largest packet cannot be read from {}", file.display());
            return Err(Error::of(Code::TryLater, message)(error));
        }
    };
    let text = text.trim();
    let mtu: u32 = text.parse().map_err(|_| {
        let message = format!("{} has `{text}`, which is not a number", file.display());
        Error::new(Code::Other, message)
    })?;
    Ok(configured.or(Some(mtu).filter(|mtu| *mtu != 0)))
}

fn or_default(path: &Path, default: &str) -> PathBuf {
    if path.as_os_str().is_empty() {
        default.into()
    } else {
        path.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_name_comes_before_that_of_the_file() {
        let mut config = NetworkConfig {
            hostname: "old".to_owned(),
            ..NetworkConfig::default()
        };
        let name = |config: &NetworkConfig, file| name_from(config, file).expect("a name");
        assert_eq!(name(&config, None), "old");
        assert_eq!(name(&config, Some("file\n")), "file");
        config.nodename = "new".to_owned();
        assert_eq!(name(&config, Some("file")), "new");
    }

    #[test]
    fn a_missing_file_of_the_agent_is_an_error_unless_it_may_be_missing() {
        let mut config = NetworkConfig {
            nodename: "n".to_owned(),
            nodename_file: "/nonexistent/nodename".into(),
            ..NetworkConfig::default()
        };
        let error = node_name(&config).expect_err("a refusal");
        assert!(
            error.to_string().contains("/nonexistent/nodename"),
            "{error}"
        );
        config.nodename_file_optional = true;
        assert_eq!(node_name(&config).expect("a name"), "n");
    }

    #[test]
    fn the_largest_packet_comes_from_the_configuration_or_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mtu");
        let config = |mtu, require_mtu_file| NetworkConfig {
            mtu,
            require_mtu_file,
            ..NetworkConfig::default()
        };
        let read = |config: &NetworkConfig| mtu_from(config, &file);
        assert_eq!(read(&config(0, false)).expect("none"), None);
        assert_eq!(read(&config(1400, false)).expect("one"), Some(1400));
        assert!(read(&config(1400, true)).is_err());
        fs::write(&file, "1450\n").expect("a file");
        assert_eq!(read(&config(0, true)).expect("one"), Some(1450));
        assert_eq!(read(&config(1400, true)).expect("one"), Some(1400));
        fs::write(&file, "many").expect("a file");
        let error = read(&config(0, false)).expect_err("a refusal");
        assert!(error.to_string().contains("`many`"), "{error}");
    }
}
