//! How often the kernel's rules have matched.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tortie_kernel::nft::{Family, Socket, Table as KernelTable};
use tortie_rules::{Chain, Dataplane as Kind, IpVersion, nftables};

/// Reads counters of rules.
pub(super) enum Counters {
    Nftables(Socket),
    Iptables(Saved),
}

/// What `iptables-save` said.
pub(super) struct Saved {
    is_legacy: bool,
    by_table: HashMap<(IpVersion, &'static str), String>,
}

impl Counters {
    pub(super) fn open(kind: Kind, is_legacy: bool) -> Result<Self> {
        Ok(match kind {
            Kind::Nftables => Self::Nftables(Socket::open()?),
            Kind::Iptables => Self::Iptables(Saved {
                is_legacy,
                by_table: HashMap::new(),
            }),
        })
    }

    /// The packets that each rule of a chain has matched; none where nothing counts.
    pub(super) fn of(&mut self, chain: &Chain, version: IpVersion) -> Result<Vec<Option<u64>>> {
        match self {
            Self::Nftables(socket) => {
                let family = match version {
                    IpVersion::V4 => Family::Ip,
                    IpVersion::V6 => Family::Ip6,
                };
                let table = KernelTable::new(family, tortie_dataplane::nftables::TABLE);
                let name = nftables::chain_name(chain.table, &chain.name);
                let read = socket.rules(&table, Some(&name), |found: &mut Vec<_>, rule| {
                    found.push(rule.counted().map(|counted| counted.packets));
                });
                Ok(read?)
            }
            Self::Iptables(saved) => {
                let text = saved.of(version, chain.table.name())?;
                Ok(counted(text, &chain.name))
            }
        }
    }
}

impl Saved {
    fn of(&mut self, version: IpVersion, table: &'static str) -> Result<&str> {
        Ok(match self.by_table.entry((version, table)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(save(version, table, self.is_legacy)?),
        })
    }
}

fn save(version: IpVersion, table: &str, is_legacy: bool) -> Result<String> {
    let program = match (version, is_legacy) {
        (IpVersion::V4, true) => "iptables-legacy-save",
        (IpVersion::V4, false) => "iptables-nft-save",
        (IpVersion::V6, true) => "ip6tables-legacy-save",
        (IpVersion::V6, false) => "ip6tables-nft-save",
    };
    let mut command = Command::new(program);
    command.args(["-c", "-t", table]);
    let output = command
        .output()
        .with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} failed: {}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packets of each rule of a chain, from lines such as `[12:720] -A cali-pi-x -j DROP`.
fn counted(saved: &str, chain: &str) -> Vec<Option<u64>> {
    let lines = saved.lines().filter_map(|line| {
        let (counters, rule) = line.strip_prefix('[')?.split_once("] -A ")?;
        let (name, _) = rule.split_once(' ')?;
        (name == chain).then(|| counters.split(':').next()?.parse().ok())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_chain() {
        let saved = "*filter\n:a - [9:9]\n[1:60] -A a -j b\n[12:720] -A ab -j DROP\n[0:0] -A a -j DROP\nCOMMIT\n";
        assert_eq!(counted(saved, "a"), [Some(1), Some(0)]);
        assert_eq!(counted(saved, "ab"), [Some(12)]);
        assert_eq!(counted(saved, "b"), []);
    }
}
