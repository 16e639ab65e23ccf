//! What another data plane left behind. Its rules would go on to decide about packets by policies of long ago.

use tortie_rules::{Dataplane, IpVersion, Table};

use crate::change::{Batch, Driver as _, Error};
use crate::iptables::{Backend, IptablesDriver, Options, Variant};
use crate::nftables::NftablesDriver;

/// Removes what the data planes that are not in use have of ours, once the one in use has everything. Gives what could
/// not be removed.
///
/// Parts of the kernel that are not loaded are left alone: looking would load them, and they hold nothing.
pub fn remove_left_overs(in_use: Dataplane, versions: &[IpVersion]) -> Vec<Error> {
    let mut errors = Vec::new();
    for version in versions {
        match in_use {
            Dataplane::Nftables => {
                for variant in [Variant::Legacy, Variant::Nft] {
                    errors.extend(remove_iptables(*version, variant).err());
                }
            }
            Dataplane::Iptables => errors.extend(remove_nftables(*version).err()),
        }
    }
    errors
}

fn remove_nftables(version: IpVersion) -> Result<(), Error> {
    if !NftablesDriver::is_usable() {
        return Ok(());
    }
    let mut driver = NftablesDriver::open(version)?;
    if driver.is_there()? {
        driver.remove_all()?;
    }
    Ok(())
}

fn remove_iptables(version: IpVersion, variant: Variant) -> Result<(), Error> {
    let may_have_rules = match variant {
        Variant::Legacy => has_legacy_tables(version),
        Variant::Nft => NftablesDriver::open(version)?.has_tables(&Table::ALL.map(Table::name))?,
    };
    if !may_have_rules {
        return Ok(());
    }
    let options = Options {
        backend: Backend::Only(variant),
        ..Options::new(version)
    };
    // Without the programs there is nobody who could have made rules with them.
    let Ok(mut driver) = IptablesDriver::new(&options) else {
        return Ok(());
    };
    let nothing = Batch {
        is_full: true,
        ..Batch::default()
    };
    driver.apply(&nothing)
}

/// Whether legacy iptables has any tables in this network namespace.
fn has_legacy_tables(version: IpVersion) -> bool {
    let file = match version {
        IpVersion::V4 => "/proc/thread-self/net/ip_tables_names",
        IpVersion::V6 => "/proc/thread-self/net/ip6_tables_names",
    };
    std::fs::read(file).is_ok_and(|names| !names.is_empty())
}
