//! The data planes that each test runs on.

/// A data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    Nftables,
    /// With the programs that write the older tables.
    Iptables,
    /// With the programs of the same name that write nftables.
    IptablesNft,
}

impl Plane {
    /// The parameters that choose it.
    pub(crate) fn parameters(self) -> [(&'static str, &'static str); 2] {
        let (mode, backend) = match self {
            Self::Nftables => ("Enabled", "legacy"),
            Self::Iptables => ("Disabled", "legacy"),
            Self::IptablesNft => ("Disabled", "nft"),
        };
        [("nftablesmode", mode), ("iptablesbackend", backend)]
    }

    /// The programs that show the rules of iptables.
    pub(crate) fn save_programs(self) -> &'static [&'static str] {
        match self {
            Self::Nftables => &[],
            Self::Iptables => &["iptables-legacy-save", "ip6tables-legacy-save"],
            Self::IptablesNft => &["iptables-nft-save", "ip6tables-nft-save"],
        }
    }
}

/// Makes three tests of a function that takes a data plane.
macro_rules! on_all_data_planes {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[test]
            fn nftables() {
                super::$name(crate::e2e::planes::Plane::Nftables);
            }

            #[test]
            fn iptables() {
                super::$name(crate::e2e::planes::Plane::Iptables);
            }

            #[test]
            fn iptables_nft() {
                super::$name(crate::e2e::planes::Plane::IptablesNft);
            }
        }
    )+};
}

/// Makes two tests of a function that takes a data plane.
macro_rules! on_both_data_planes {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[test]
            fn nftables() {
                super::$name(crate::e2e::planes::Plane::Nftables);
            }

            #[test]
            fn iptables() {
                super::$name(crate::e2e::planes::Plane::Iptables);
            }
        }
    )+};
}
