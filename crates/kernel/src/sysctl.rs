//! The kernel's settings under `/proc/sys`, of the calling thread's network namespace where they are of one.
//!
//! Settings are named by their path, such as `net/ipv4/ip_forward`: names of interfaces may have dots in them.

mod error;
mod workload;

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

pub use error::{Error, Result};
pub use workload::{Workload, workload_interface};

const ROOT: &str = "/proc/sys";

/// The longest name of an interface.
const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    file: PathBuf,
}

/// The settings that each interface has, by folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// `net/ipv4/conf`
    Ipv4,
    /// `net/ipv6/conf`
    Ipv6,
    /// `net/ipv4/neigh`
    Ipv4Neighbours,
    /// `net/ipv6/neigh`
    Ipv6Neighbours,
}

impl Group {
    fn folder(self) -> &'static str {
        match self {
            Self::Ipv4 => "net/ipv4/conf",
            Self::Ipv6 => "net/ipv6/conf",
            Self::Ipv4Neighbours => "net/ipv4/neigh",
            Self::Ipv6Neighbours => "net/ipv6/neigh",
        }
    }
}

impl Sysctl {
    /// The setting with this path.
    pub fn new(path: &'static str) -> Self {
        Self {
            file: PathBuf::from(ROOT).join(path),
        }
    }

    /// A setting of the network with a path that somebody gives, such as `net/ipv4/tcp_rmem`.
    pub fn of_network(path: &str) -> Result<Self> {
        let is_inside = |part: &str| !["", ".", ".."].contains(&part) && !part.contains('\0');
        if !path.starts_with("net/") || !path.split('/').all(is_inside) {
            return Err(Error::NotOfNetwork {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            file: PathBuf::from(ROOT).join(path),
        })
    }

    /// A setting of one interface. `all` and `default` are not interfaces, but have settings too.
    pub fn of_interface(group: Group, interface: &str, setting: &'static str) -> Result<Self> {
        if !is_interface_name(interface) {
            return Err(Error::NotAnInterface {
                name: interface.to_owned(),
            });
        }
        let folder = PathBuf::from(ROOT).join(group.folder()).join(interface);
        Ok(Self {
            file: folder.join(setting),
        })
    }

    /// The value, without the line's end.
    pub fn read(&self) -> Result<String> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(source) => Err(Error::Read {
                file: self.file.clone(),
                source,
            }),
        }
    }

    /// Sets the value.
    pub fn write(&self, value: &str) -> Result<()> {
        let write = || -> io::Result<()> {
            // The kernel takes the value in one piece only.
            let written = fs::OpenOptions::new()
                .write(true)
                .open(&self.file)?
                .write(value.as_bytes())?;
            if written < value.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Ok(())
        };
        write().map_err(|source| Error::Write {
            file: self.file.clone(),
            value: value.to_owned(),
            source,
        })
    }

    /// Whether there is such a setting.
    pub fn exists(&self) -> bool {
        self.file.exists()
    }
}

/// Whether an interface can have this name, so that it is one folder and no way out of it.
fn is_interface_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && ![".", ".."].contains(&name)
        && !name.contains(|c: char| c == '/' || c == ':' || c == '\0' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Group, Sysctl};

    #[track_caller]
    fn check(interface: &str, expected: Option<&str>) {
        let sysctl = Sysctl::of_interface(Group::Ipv4, interface, "proxy_arp").ok();
        assert_eq!(
            sysctl.as_ref().map(|s| s.file.as_path()),
            expected.map(Path::new),
            "{interface}"
        );
    }

    #[test]
    fn settings_of_others_than_the_network_are_refused() {
        assert!(Sysctl::of_network("net/ipv4/conf/eth0.1/arp_filter").is_ok());
        for path in [
            "",
            "kernel/panic",
            "net",
            "net/",
            "/net/x",
            "net/../kernel/panic",
            "net//x",
            "network/x",
        ] {
            assert!(Sysctl::of_network(path).is_err(), "{path}");
        }
    }

    #[test]
    fn names_of_interfaces_are_one_folder() {
        check("cali1", Some("/proc/sys/net/ipv4/conf/cali1/proxy_arp"));
        check(
            "eth0.100",
            Some("/proc/sys/net/ipv4/conf/eth0.100/proxy_arp"),
        );
        check(
            "fifteen_letters",
            Some("/proc/sys/net/ipv4/conf/fifteen_letters/proxy_arp"),
        );
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../../x",
            "a b",
            "a:0",
            "sixteen__letters",
        ] {
            check(name, None);
        }
    }
}
