//! Names of IP sets.

use crate::{Dataplane, IpVersion};

/// The kernel's limit for ipset, in bytes. nftables would take more, but Calico uses one limit.
const MAX_LENGTH: usize = 31;

/// The set in the kernel with the members of one IP version of the IP set `id`.
///
/// What does not fit is cut off. Identifiers of IP sets are hashes or short words, so those of two
/// sets differ in what remains.
pub fn ip_set_name(id: &str, ip_version: IpVersion, dataplane: Dataplane) -> String {
    let prefix = match ip_version {
        IpVersion::V4 => "cali40",
        IpVersion::V6 => "cali60",
    };
    let mut name = [prefix, id].concat();
    name.truncate(name.floor_char_boundary(MAX_LENGTH));
    match dataplane {
        Dataplane::Iptables => name,
        // A colon is not part of a name in nftables' language.
        Dataplane::Nftables => name.replace(':', "-"),
    }
}

/// A set that is filled beside one in use and then swapped with it, as only ipset needs to.
///
/// The index is any that is free.
pub fn temp_ip_set_name(index: u64, ip_version: IpVersion) -> String {
    let prefix = match ip_version {
        IpVersion::V4 => "cali4t",
        IpVersion::V6 => "cali6t",
    };
    format!("{prefix}{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(id: &str, expected: [&str; 4]) {
        let names = [
            ip_set_name(id, IpVersion::V4, Dataplane::Iptables),
            ip_set_name(id, IpVersion::V6, Dataplane::Iptables),
            ip_set_name(id, IpVersion::V4, Dataplane::Nftables),
            ip_set_name(id, IpVersion::V6, Dataplane::Nftables),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_short_id_is_kept() {
        check(
            "this-host",
            [
                "cali40this-host",
                "cali60this-host",
                "cali40this-host",
                "cali60this-host",
            ],
        );
    }

    #[test]
    fn a_hash_is_cut_and_its_colon_replaced_for_nftables() {
        check(
            "s:5y5I3VdRZfDU01O--xXAPx2yxCQQqMf0M6IWug",
            [
                "cali40s:5y5I3VdRZfDU01O--xXAPx2",
                "cali60s:5y5I3VdRZfDU01O--xXAPx2",
                "cali40s-5y5I3VdRZfDU01O--xXAPx2",
                "cali60s-5y5I3VdRZfDU01O--xXAPx2",
            ],
        );
    }

    #[test]
    fn temporary_names_always_fit() {
        assert_eq!(temp_ip_set_name(0, IpVersion::V4), "cali4t0");
        let longest = temp_ip_set_name(u64::MAX, IpVersion::V6);
        assert_eq!(longest, "cali6t18446744073709551615");
        assert!(longest.len() <= MAX_LENGTH);
    }
}
