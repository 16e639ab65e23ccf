//! The table of kinds: names, scopes and the words people use for them.

use std::fmt;

use crate::schema::edit_distance;

/// Whether objects of a kind live in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each object belongs to one namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// What is fixed about one kind.
#[derive(Debug)]
struct Info {
    name: &'static str,
    plural: &'static str,
    scope: Scope,
    /// Words that the command line accepts besides the name and the plural.
    aliases: &'static [&'static str],
    /// Short names that the CRD registers with Kubernetes.
    short_names: &'static [&'static str],
    storage: Storage,
    has_status: bool,
}

/// Where Kubernetes keeps objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// A CRD of the same name in both groups.
    Crd,
    /// A CRD whose kind and plural differ in the older group.
    CrdNamed(&'static str, &'static str),
    /// Read from Kubernetes' own objects; there is no CRD.
    Native,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $plural:literal, $scope:ident, $storage:expr, $status:literal,
       [$($alias:literal),*], [$($short:literal),*];)*) => {
        /// A kind of resource.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$doc])* $kind,)* }

        impl Kind {
            /// Every kind, in alphabetical order.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            fn info(self) -> &'static Info {
                match self {
                    $(Self::$kind => &Info {
                        name: $name,
                        plural: $plural,
                        scope: Scope::$scope,
                        aliases: &[$($alias),*],
                        short_names: &[$($short),*],
                        storage: $storage,
                        has_status: $status,
                    },)*
                }
            }
        }
    };
}

kinds! {
    /// Node-level or cluster-wide BGP settings.
    BgpConfiguration = "BGPConfiguration", "bgpconfigurations", Cluster, Storage::Crd, false,
        ["bgpconfig", "bgpconfigs"], ["bgpconfig", "bgpconfigs"];
    /// What routes to accept from and give to BGP peers.
    BgpFilter = "BGPFilter", "bgpfilters", Cluster, Storage::Crd, false,
        ["bgpf", "bgpfs", "bf", "bfs"], [];
    /// A BGP peer of some or all nodes.
    BgpPeer = "BGPPeer", "bgppeers", Cluster, Storage::Crd, false, ["bgpp", "bgpps", "bp", "bps"], [];
    /// Which node holds an address block.
    BlockAffinity = "BlockAffinity", "blockaffinities", Cluster, Storage::Crd, false,
        ["affinity", "affinities"], ["affinity", "affinities"];
    /// What a node reports of its BGP daemon and routes.
    CalicoNodeStatus = "CalicoNodeStatus", "caliconodestatuses", Cluster, Storage::Crd, true,
        ["nodestatus", "nodestatuses"], [];
    /// Identity and state of the installation.
    ClusterInformation = "ClusterInformation", "clusterinformations", Cluster, Storage::Crd, false,
        ["clusterinfo", "clusterinfos"], ["clusterinfo", "clusterinfos"];
    /// Settings of the node agent.
    FelixConfiguration = "FelixConfiguration", "felixconfigurations", Cluster, Storage::Crd, false,
        ["felixconfig", "felixconfigs"], [];
    /// A policy for endpoints of all namespaces and for hosts.
    GlobalNetworkPolicy = "GlobalNetworkPolicy", "globalnetworkpolicies", Cluster, Storage::Crd, false,
        ["gnp", "gnps", "cgnp"], ["gnp", "cgnp"];
    /// Labelled addresses that global policies can refer to.
    GlobalNetworkSet = "GlobalNetworkSet", "globalnetworksets", Cluster, Storage::Crd, false,
        ["gns", "gnetset", "gnetsets"], ["gns"];
    /// An interface of a host that policy applies to.
    HostEndpoint = "HostEndpoint", "hostendpoints", Cluster, Storage::Crd, false,
        ["hep", "heps"], ["hep", "heps"];
    /// A block of addresses and who holds each.
    IpamBlock = "IPAMBlock", "ipamblocks", Cluster, Storage::Crd, false, [], [];
    /// Settings of address management.
    IpamConfiguration = "IPAMConfiguration", "ipamconfigurations", Cluster,
        Storage::CrdNamed("IPAMConfig", "ipamconfigs"), false,
        ["ipamconfig", "ipamconfigs"], ["ipamconfig", "ipamconfigs"];
    /// The addresses that one owner holds.
    IpamHandle = "IPAMHandle", "ipamhandles", Cluster, Storage::Crd, false, [], [];
    /// A range of addresses for pods.
    IpPool = "IPPool", "ippools", Cluster, Storage::Crd, true, ["ipp", "ipps", "pool", "pools"], [];
    /// Addresses that are never handed out.
    IpReservation = "IPReservation", "ipreservations", Cluster, Storage::Crd, false,
        ["reservation", "reservations"], [];
    /// Settings of the controllers.
    KubeControllersConfiguration = "KubeControllersConfiguration", "kubecontrollersconfigurations", Cluster,
        Storage::Crd, true, ["kubecontrollersconfig", "kubecontrollersconfigs", "kcc", "kccs"], ["kcc", "kccs"];
    /// A virtual machine on its way from one node to another.
    LiveMigration = "LiveMigration", "livemigrations", Namespaced, Storage::Native, false, [], [];
    /// A policy for the endpoints of one namespace.
    NetworkPolicy = "NetworkPolicy", "networkpolicies", Namespaced, Storage::Crd, false,
        ["policy", "policies", "np", "nps", "pol", "pols", "cnp", "caliconetworkpolicy"],
        ["cnp", "caliconetworkpolicy"];
    /// Labelled addresses that the policies of a namespace can refer to.
    NetworkSet = "NetworkSet", "networksets", Namespaced, Storage::Crd, false, ["netset", "netsets"], [];
    /// A host of the cluster.
    Node = "Node", "nodes", Cluster, Storage::Native, true, ["no", "nos"], [];
    /// Labels and rules that endpoints inherit.
    Profile = "Profile", "profiles", Cluster, Storage::Native, false, ["pro", "pros"], [];
    /// A global policy that is computed but not enforced.
    StagedGlobalNetworkPolicy = "StagedGlobalNetworkPolicy", "stagedglobalnetworkpolicies", Cluster, Storage::Crd,
        false, ["sgnp", "sgnps"], ["sgnp"];
    /// A Kubernetes policy that is computed but not enforced.
    StagedKubernetesNetworkPolicy = "StagedKubernetesNetworkPolicy", "stagedkubernetesnetworkpolicies", Namespaced,
        Storage::Crd, false,
        ["stagedkubernetespolicy", "stagedkubernetespolicies", "sknp", "sknps", "skpol", "skpols"], ["sknp"];
    /// A policy that is computed but not enforced.
    StagedNetworkPolicy = "StagedNetworkPolicy", "stagednetworkpolicies", Namespaced, Storage::Crd, false,
        ["stagedpolicy", "stagedpolicies", "snp", "snps", "spol", "spols", "scnp"], ["scnp", "snp"];
    /// A group of policies with its place in the order.
    Tier = "Tier", "tiers", Cluster, Storage::Crd, true, [], [];
    /// An interface of a workload that policy applies to.
    WorkloadEndpoint = "WorkloadEndpoint", "workloadendpoints", Namespaced, Storage::Native, false,
        ["wep", "weps"], [];
}

impl Kind {
    /// The name as it stands in `kind:`.
    pub fn as_str(self) -> &'static str {
        self.info().name
    }

    /// The plural, as it stands in URLs and datastore keys.
    pub fn plural(self) -> &'static str {
        self.info().plural
    }

    /// Whether objects live in a namespace.
    pub fn is_namespaced(self) -> bool {
        self.info().scope == Scope::Namespaced
    }

    /// The scope of the kind.
    pub fn scope(self) -> Scope {
        self.info().scope
    }

    /// The words that the command line accepts besides name and plural.
    pub fn aliases(self) -> &'static [&'static str] {
        self.info().aliases
    }

    /// The short names that its CRD registers.
    pub fn short_names(self) -> &'static [&'static str] {
        self.info().short_names
    }

    /// Whether Kubernetes stores objects of this kind in a CRD, instead of deriving them from its own objects.
    pub fn has_crd(self) -> bool {
        self.info().storage != Storage::Native
    }

    /// Kind and plural of the CRD in the group `crd.projectcalico.org/v1`.
    pub fn v1_crd_names(self) -> (&'static str, &'static str) {
        match self.info().storage {
            Storage::CrdNamed(kind, plural) => (kind, plural),
            Storage::Crd | Storage::Native => (self.as_str(), self.plural()),
        }
    }

    /// Whether objects carry an observed state.
    pub fn has_status(self) -> bool {
        self.info().has_status
    }

    /// Whether this is one of the four policy kinds that belong to a tier.
    pub fn is_tiered_policy(self) -> bool {
        matches!(
            self,
            Self::NetworkPolicy
                | Self::GlobalNetworkPolicy
                | Self::StagedNetworkPolicy
                | Self::StagedGlobalNetworkPolicy
        )
    }

    /// The kind with exactly this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// The kind that a person means by a name, plural or short name, in any case.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        Self::ALL.iter().copied().find(|kind| {
            kind.as_str().eq_ignore_ascii_case(&word)
                || kind.plural() == word
                || kind.aliases().contains(&word.as_str())
        })
    }
}

impl Kind {
    /// The kind that a person may have meant by a word: one that it stands for, or else the one that is spelled most like
    /// it.
    pub fn nearest(word: &str) -> Option<Self> {
        if let Some(kind) = Self::from_word(word) {
            return Some(kind);
        }
        let lower = word.to_ascii_lowercase();
        let distance = |kind: &Self| {
            let names = [kind.as_str().to_ascii_lowercase(), kind.plural().to_owned()];
            let distances = names.iter().map(|name| edit_distance(name, &lower));
            distances.min().unwrap_or(usize::MAX)
        };
        let best = Self::ALL.iter().min_by_key(|kind| distance(kind))?;
        (distance(best) <= 1 + word.len() / 5).then_some(*best)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_word_means_one_kind() {
        let mut seen = BTreeMap::new();
        for kind in Kind::ALL {
            let name = kind.as_str().to_ascii_lowercase();
            let words = [name.as_str(), kind.plural()]
                .into_iter()
                .chain(kind.aliases().iter().copied());
            for word in words {
                let other = seen.insert(word.to_owned(), *kind);
                assert!(
                    other.is_none() || other == Some(*kind),
                    "{word}: {other:?} and {kind}"
                );
                assert_eq!(Kind::from_word(word), Some(*kind));
            }
        }
    }
}
