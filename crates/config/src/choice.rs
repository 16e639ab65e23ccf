//! Parameters that are one of some words, as types.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::value::{FromValue, Value};

/// An enum whose variants are the options of parameters. `none` says which one the value `none` stands for.
macro_rules! choices {
    ($(
        $(#[$meta:meta])*
        $name:ident, none = $none:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
    )+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {
                $($(#[$variant_meta])* $variant,)+
            }

            impl $name {
                pub(super) const OPTIONS: &[&str] = &[$($text),+];

                /// The word that stands for it.
                pub const fn as_str(self) -> &'static str {
                    match self {
                        $(Self::$variant => $text,)+
                    }
                }
            }

            impl FromValue for $name {
                fn from_value(value: &Value) -> Option<Self> {
                    match value {
                        Value::Unset => Some(Self::$none),
                        $(Value::Choice($text) => Some(Self::$variant),)+
                        _ => None,
                    }
                }
            }
        )+
    };
}

choices! {
    /// Whether rules are programmed with nftables.
    NftablesMode, none = Disabled {
        /// Always.
        Enabled = "Enabled",
        /// Never.
        Disabled = "Disabled",
        /// If kube-proxy does so, or the kernel can.
        Auto = "Auto",
    }
    /// Which flows skip the rules once they are established.
    FlowTableOffload, none = Disabled {
        /// All that can.
        All = "All",
        /// None.
        Disabled = "Disabled",
    }
    /// Which iptables is used.
    IptablesBackend, none = Auto {
        /// The old one.
        Legacy = "legacy",
        /// The one on top of nftables.
        Nft = "nft",
        /// The one that the machine already uses.
        Auto = "auto",
    }
    /// Where our rules go in the kernel's chains.
    ChainInsertMode, none = Insert {
        /// Before those of others.
        Insert = "insert",
        /// After those of others.
        Append = "append",
    }
    /// What happens to packets from workloads to their host that policy allows.
    #[derive(Serialize)]
    EndpointToHostAction, none = Drop {
        /// They are dropped.
        Drop = "DROP",
        /// They meet the host's own rules.
        Return = "RETURN",
        /// They are accepted.
        Accept = "ACCEPT",
    }
    /// What happens to packets that policy allows.
    AllowAction, none = Accept {
        /// They are accepted at once.
        Accept = "ACCEPT",
        /// They meet the rules of others.
        Return = "RETURN",
    }
    /// What happens to packets that policy denies.
    DenyAction, none = Drop {
        /// They vanish.
        Drop = "DROP",
        /// The sender is told.
        Reject = "REJECT",
    }
    /// What happens to packets for service addresses that nothing answers.
    ServiceLoopPrevention, none = Disabled {
        /// They vanish.
        Drop = "Drop",
        /// The sender is told.
        Reject = "Reject",
        /// They may loop between this host and its gateway.
        Disabled = "Disabled",
    }
    /// Whether annotations may let workloads send from foreign addresses.
    SourceSpoofing, none = Disabled {
        /// No.
        Disabled = "Disabled",
        /// Yes, from any address.
        Any = "Any",
    }
    /// What routes to other nodes are made from.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    RouteSource, none = CalicoIpam {
        /// Addresses of workloads.
        WorkloadIps = "WorkloadIPs",
        /// Address blocks of nodes.
        CalicoIpam = "CalicoIPAM",
    }
    /// Which routes to other nodes the agent programs, rather than BGP.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    ProgramClusterRoutes, none = Disabled {
        /// All.
        Enabled = "Enabled",
        /// Those that need VXLAN only.
        Disabled = "Disabled",
        /// Also those of pools with IP-in-IP.
        IpipOnly = "EnabledIPIPOnly",
        /// Also those of pools without encapsulation.
        NoEncapOnly = "EnabledNoEncapOnly",
    }
    /// Which destinations outgoing NAT leaves alone.
    NatOutgoingExclusions, none = IpPoolsOnly {
        IpPoolsOnly = "IPPoolsOnly",
        /// Pools and addresses of nodes.
        IpPoolsAndHostIps = "IPPoolsAndHostIPs",
    }
    /// For which addresses in the host's own subnet ARP and NDP are answered.
    LocalSubnetL2Reachability, none = Disabled {
        /// None.
        Disabled = "Disabled",
        /// Those of local pods and load balancers.
        PodsAndLoadBalancers = "PodsAndLoadBalancers",
    }
    /// How severe a log line is, from the least.
    LogSeverity, none = Fatal {
        /// Each object.
        Trace = "TRACE",
        /// Each decision.
        Debug = "DEBUG",
        /// Changes of state.
        Info = "INFO",
        /// What goes wrong and mends itself.
        Warning = "WARNING",
        /// What a person must look at.
        Error = "ERROR",
        /// What ends the process.
        Fatal = "FATAL",
    }
    /// Which certificates readers of metrics must show.
    ClientAuth, none = NoClientCert {
        /// One that an authority has signed.
        RequireAndVerifyClientCert = "RequireAndVerifyClientCert",
        RequireAnyClientCert = "RequireAnyClientCert",
        /// None, but if there is one, an authority must have signed it.
        VerifyClientCertIfGiven = "VerifyClientCertIfGiven",
        /// None.
        NoClientCert = "NoClientCert",
    }
}

impl FromValue for Option<LogSeverity> {
    /// `none` stands for no logs at all.
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(None),
            value => LogSeverity::from_value(value).map(Some),
        }
    }
}

impl fmt::Display for EndpointToHostAction {
    /// As people write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl ProgramClusterRoutes {
    /// Whether the agent programs routes of pools with IP-in-IP.
    pub fn ipip(self) -> bool {
        matches!(self, Self::Enabled | Self::IpipOnly)
    }

    /// Whether the agent programs routes of pools without encapsulation.
    pub fn no_encap(self) -> bool {
        matches!(self, Self::Enabled | Self::NoEncapOnly)
    }
}
