//! Which kinds of resources the engine works with.

use tortie_api::Kind;

/// The kinds that have a part in whether a connection is allowed.
pub const POLICY_KINDS: [Kind; 14] = [
    Kind::FelixConfiguration,
    Kind::GlobalNetworkPolicy,
    Kind::GlobalNetworkSet,
    Kind::HostEndpoint,
    Kind::IpPool,
    Kind::NetworkPolicy,
    Kind::NetworkSet,
    Kind::Node,
    Kind::Profile,
    Kind::StagedGlobalNetworkPolicy,
    Kind::StagedKubernetesNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::Tier,
    Kind::WorkloadEndpoint,
];

/// The kinds that a node works with besides: routes, peers, workloads that move, and whether it may act at all.
pub const NODE_KINDS: [Kind; 5] = [
    Kind::BgpConfiguration,
    Kind::BgpPeer,
    Kind::ClusterInformation,
    Kind::IpamBlock,
    Kind::LiveMigration,
];
