//! Which of the two kinds of iptables to use, and the programs of it.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use tortie_rules::IpVersion;
use tortie_variables as variables;

use super::program::{Program, is_lock_chosen, is_usable_lock};
use crate::Error;

/// Chains that the kubelet makes, so that others know which kind it uses.
const HINTS: [&str; 2] = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];

/// The first version whose `iptables-restore` knows of the lock.
const FIRST_WITH_LOCK: [u32; 3] = [1, 6, 2];

/// Which kind of iptables to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The one that others on this machine use.
    #[default]
    Auto,
    /// This one, if it is there.
    Only(Variant),
}

/// The kinds of iptables. Each has rules of its own in the kernel, and packets pass both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The one with a part of the kernel of its own.
    Legacy,
    /// The one whose rules are kept by nftables.
    Nft,
}

/// The programs of one kind, for one IP version.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) variant: Variant,
    pub(super) restore: Program,
    pub(super) save: Program,
    /// Whether `restore` can wait for the lock.
    pub(super) can_wait: bool,
}

// === impl Variant ===

impl Variant {
    pub(crate) const BOTH: [Self; 2] = [Self::Legacy, Self::Nft];

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Nft,
            Self::Nft => Self::Legacy,
        }
    }

    fn infix(self) -> &'static str {
        match self {
            Self::Legacy => "-legacy",
            Self::Nft => "-nft",
        }
    }
}

// === impl Tools ===

impl Tools {
    /// Finds the programs that suit `backend`, or else those that there are.
    pub(super) fn find(
        ip_version: IpVersion,
        backend: Backend,
        lock_file: &Path,
    ) -> Result<Self, Error> {
        let wanted = match backend {
            Backend::Only(variant) => variant,
            Backend::Auto => detect(),
        };
        let infixes = [wanted.infix(), "", wanted.other().infix()];
        let found = infixes.into_iter().find_map(|infix| {
            let restore = program(ip_version, infix, "restore")?;
            let save = program(ip_version, infix, "save")?;
            Some((restore, save))
        });
        let Some((restore, save)) = found else {
            let name = family(ip_version);
            return Err(Error::Program {
                program: format!("{name}{}-restore", wanted.infix()),
                message: format!(
                    "not found, and neither is {name}-restore; it comes with the package `iptables`"
                ),
            });
        };
        let version = restore.run(&["--version"], "").unwrap_or_default();
        let variant = variant_of(&version);
        if variant != wanted {
            tracing::warn!(
                program = %restore.name(),
                ?wanted,
                "The wanted kind of iptables is not installed; using the other"
            );
        }
        let can_wait = number_of(&version).is_some_and(|number| number >= FIRST_WITH_LOCK);
        let (restore, save) = match lock_for(lock_file, variant) {
            Some(lock) => (
                restore.with_lock_file(lock.clone()),
                save.with_lock_file(lock),
            ),
            None => (restore, save),
        };
        Ok(Self {
            variant,
            restore,
            save,
            can_wait,
        })
    }
}

/// The kind that others use: where the kubelet left its hint, else where more rules are.
///
/// With as many rules in both, the legacy one if the kernel has it already: else it would get loaded into a kernel that
/// may deliberately be without.
fn detect() -> Variant {
    let mangle = |variant| saved(variant, &["-t", "mangle"]);
    let all = |variant| saved(variant, &[]);
    let has_hint = |text: &String| HINTS.iter().any(|hint| text.contains(hint));
    let rules = |texts: Vec<String>| -> usize {
        let count = |text: &String| text.lines().filter(|line| line.starts_with('-')).count();
        texts.iter().map(count).sum()
    };
    for variant in [Variant::Nft, Variant::Legacy] {
        if mangle(variant).iter().any(has_hint) {
            return variant;
        }
    }
    let [legacy, nft] = Variant::BOTH.map(|variant| rules(all(variant)));
    let is_loaded = [IpVersion::V4, IpVersion::V6]
        .into_iter()
        .any(is_legacy_loaded);
    if legacy > nft || (legacy == nft && is_loaded) {
        Variant::Legacy
    } else {
        Variant::Nft
    }
}

/// What is in the kernel, for both IP versions.
fn saved(variant: Variant, arguments: &[&str]) -> Vec<String> {
    let versions = [IpVersion::V4, IpVersion::V6].into_iter();
    // The legacy program would load its part of the kernel.
    let can_ask = |version: &IpVersion| variant == Variant::Nft || is_legacy_loaded(*version);
    let ask = |version| {
        let save = program(version, variant.infix(), "save")?;
        save.run(arguments, "").ok()
    };
    versions.filter(can_ask).filter_map(ask).collect()
}

fn is_legacy_loaded(ip_version: IpVersion) -> bool {
    let file = match ip_version {
        IpVersion::V4 => "/proc/thread-self/net/ip_tables_names",
        IpVersion::V6 => "/proc/thread-self/net/ip6_tables_names",
    };
    fs::exists(file).unwrap_or(false)
}

fn program(ip_version: IpVersion, infix: &str, task: &str) -> Option<Program> {
    Program::find(&format!("{}{infix}-{task}", family(ip_version)))
}

fn family(ip_version: IpVersion) -> &'static str {
    match ip_version {
        IpVersion::V4 => "iptables",
        IpVersion::V6 => "ip6tables",
    }
}

/// The file to use as the lock: this one, or another if it may not be written.
fn lock_for(lock_file: &Path, variant: Variant) -> Option<PathBuf> {
    if variant == Variant::Nft || is_lock_chosen() {
        return None;
    }
    let private = env::var_os(variables::XDG_RUNTIME_DIR).map(PathBuf::from);
    let private = private.map(|folder| folder.join("tortie-xtables.lock"));
    let shared = env::temp_dir().join("tortie-xtables.lock");
    // In case that the shared one is another user's.
    let own = env::temp_dir().join(format!("tortie-xtables-{}.lock", process::id()));
    let instead = private.into_iter().chain([shared, own]);
    let mut candidates = [lock_file.to_owned()].into_iter().chain(instead);
    let lock = candidates.find(|path| is_usable_lock(path))?;
    if lock != lock_file {
        tracing::info!(usual = %lock_file.display(), lock = %lock.display(), "Using another file as the lock of iptables");
    }
    Some(lock)
}

/// The kind in `iptables-restore v1.8.9 (nf_tables)`. Before there were two, it was not named.
fn variant_of(version: &str) -> Variant {
    if version.contains("(nf_tables)") {
        Variant::Nft
    } else {
        Variant::Legacy
    }
}

/// The number in `iptables-restore v1.8.9 (legacy)`.
fn number_of(version: &str) -> Option<[u32; 3]> {
    let number = version
        .split_whitespace()
        .find_map(|word| word.strip_prefix('v'))?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    let mut next = || parts.next().unwrap_or(Some(0));
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let version = "iptables-restore v1.8.9 (nf_tables)\n";
        assert_eq!(number_of(version), Some([1, 8, 9]));
        assert_eq!(variant_of(version), Variant::Nft);
        assert_eq!(
            variant_of("iptables-restore v1.8.9 (legacy)"),
            Variant::Legacy
        );
        assert_eq!(number_of("iptables v1.6"), Some([1, 6, 0]));
        assert_eq!(variant_of("iptables v1.6.1"), Variant::Legacy);
        assert_eq!(number_of("what"), None);
    }
}
