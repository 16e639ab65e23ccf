//! What the kernel has, as files tell: only to explain why something did not work.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tortie_rules::Dataplane as Kind;

/// The first kernel with all that the nftables driver asks for: sets in which addresses and ports are joined.
pub(super) const OLDEST_KERNEL: (u32, u32) = (5, 6);

/// What the data planes use of the kernel, by the names of modules.
const OF_NFTABLES: [&str; 3] = ["nf_tables", "nf_conntrack", "nf_nat"];
const OF_IPTABLES: [&str; 11] = [
    "ip_tables",
    "ip_set",
    "ipt_REJECT",
    "nf_conntrack_netlink",
    "xt_addrtype",
    "xt_conntrack",
    "xt_mark",
    "xt_multiport",
    "xt_rpfilter",
    "xt_set",
    "xt_comment",
];

/// The modules of this kernel, loaded, built in, or to be loaded.
pub(super) struct Modules {
    pub(super) release: String,
    /// Nothing if no file tells.
    known: BTreeSet<String>,
}

impl Modules {
    pub(super) fn read() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let release = release.trim().to_owned();
        let folder = Path::new("/lib/modules").join(&release);
        let mut known = BTreeSet::new();
        for file in ["modules.dep", "modules.builtin"] {
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            known.extend(text.lines().filter_map(module_of));
        }
        // Without these, what is loaded tells little: most may be built in.
        if !known.is_empty() {
            let loaded = fs::read_to_string("/proc/modules").unwrap_or_default();
            let names = loaded
                .lines()
                .filter_map(|line| line.split_whitespace().next());
            known.extend(names.map(ToOwned::to_owned));
        }
        Self { release, known }
    }

    pub(super) fn is_new_enough(&self) -> bool {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next().and_then(|number| number.parse().ok());
        let version: Option<(u32, u32)> = number().zip(number());
        version.is_none_or(|version| version >= OLDEST_KERNEL)
    }

    /// What a data plane uses and no file names; nothing where no file tells.
    pub(super) fn missing_of(&self, kind: Kind) -> Vec<&'static str> {
        let used: &[&str] = match kind {
            Kind::Nftables => &OF_NFTABLES,
            Kind::Iptables => &OF_IPTABLES,
        };
        if self.known.is_empty() {
            return Vec::new();
        }
        let used = used.iter().copied();
        used.filter(|name| !self.known.contains(*name)).collect()
    }
}

/// `kernel/net/netfilter/xt_set.ko.xz: …` is of `xt_set`.
fn module_of(line: &str) -> Option<String> {
    let path = line.split(':').next()?;
    let file = path.rsplit('/').next()?;
    let (name, _) = file.split_once(".ko")?;
    Some(name.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(release: &str, known: &[&str]) -> Modules {
        Modules {
            release: release.to_owned(),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn modules_are_named_after_their_files() {
        for (line, expected) in [
            (
                "kernel/net/netfilter/xt_set.ko: kernel/net/x.ko",
                Some("xt_set"),
            ),
            ("kernel/a/nf-tables.ko.zst", Some("nf_tables")),
            ("no module", None),
        ] {
            assert_eq!(module_of(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (release, expected) in [
            ("5.6.0", true),
            ("5.10.0-28-amd64", true),
            ("6.1", true),
            ("5.4.0", false),
            ("4.19", false),
            ("unknown", true),
        ] {
            assert_eq!(modules(release, &[]).is_new_enough(), expected, "{release}");
        }
    }

    #[test]
    fn what_no_file_tells_is_not_called_missing() {
        assert_eq!(
            modules("6.1", &[]).missing_of(Kind::Nftables),
            Vec::<&str>::new()
        );
        let some = modules("6.1", &["nf_tables", "nf_nat"]);
        assert_eq!(some.missing_of(Kind::Nftables), ["nf_conntrack"]);
    }
}
