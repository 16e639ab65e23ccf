//! Which settings of the kernel the node's administrator lets configurations change.

use std::fs;
use std::io;
use std::path::Path;

use regex::Regex;

use crate::error::{Code, Error, Result};

/// A regular expression on each line. Where there is no such file, all of the network's settings may be changed.
const FILE: &str = "/etc/cni/tuning/allowlist.conf";

/// Refuses settings that are not on the list.
pub(super) fn check(sysctls: &[(String, String)]) -> Result<()> {
    let file = Path::new(FILE);
    match fs::read_to_string(file) {
        Ok(list) => check_against(&list, sysctls),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::of(Code::Io, format!("{FILE} cannot be read"))(error)),
    }
}

fn check_against(list: &str, sysctls: &[(String, String)]) -> Result<()> {
    let lines = list.lines().map(str::trim).filter(|line| !line.is_empty());
    let allowed = lines.map(|line| {
        Regex::new(line).map_err(Error::of(Code::Other, format!("{FILE} has `{line}`")))
    });
    let allowed = allowed.collect::<Result<Vec<Regex>>>()?;
    let refused = sysctls
        .iter()
        .find(|(key, _)| !allowed.iter().any(|one| one.is_match(key)));
    match refused {
        None => Ok(()),
        Some((key, _)) => {
            let message = format!(
                "network configuration: `sysctl` has the key `{key}`, which is not allowed by {FILE}"
            );
            Err(Error::config(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_line_matches_is_refused() {
        let list = "^net\\.core\\.somaxconn$\n\n ^net\\.ipv4\\.conf\\.IFNAME\\.[a-z_]*$ \n";
        let one = |key: &str| check_against(list, &[(key.to_owned(), "1".to_owned())]);
        assert!(one("net.core.somaxconn").is_ok());
        assert!(one("net.ipv4.conf.IFNAME.arp_filter").is_ok());
        assert!(one("net.ipv4.ip_forward").is_err());
        assert!(check_against("(", &[]).is_err());
        assert!(check_against("", &[]).is_ok());
    }
}
