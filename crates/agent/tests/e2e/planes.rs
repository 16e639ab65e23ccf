//! The data planes that each test runs on.

/// A data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    Nftables,
    Iptables,
}

impl Plane {
    /// The parameters that choose it.
    pub(crate) fn parameters(self) -> [(&'static str, &'static str); 2] {
        let mode = match self {
            Self::Nftables => "Enabled",
            Self::Iptables => "Disabled",
        };
        [("nftablesmode", mode), ("iptablesbackend", "legacy")]
    }
}

/// Makes two tests of a function that takes a data plane.
macro_rules! on_both_data_planes {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[test]
            fn nftables() {
                super::$name(crate::planes::Plane::Nftables);
            }

            #[test]
            fn iptables() {
                super::$name(crate::planes::Plane::Iptables);
            }
        }
    )+};
}
