//! The specs of all kinds, one file each, and the object types made of them.

use crate::kind::Kind;
use crate::object::{NoStatus, Object, Spec};

macro_rules! kinds {
    ($($module:ident: $kind:ident, $spec:ident, $status:ty $(, $writes_empty_status:literal)?;)*) => {
        $(
            pub mod $module;

            #[doc = concat!("A ", stringify!($kind), " object.")]
            pub type $kind = Object<$module::$spec>;

            impl Spec for $module::$spec {
                const KIND: Kind = Kind::$kind;
                type Status = $status;
                $(const WRITES_EMPTY_STATUS: bool = $writes_empty_status;)?
            }
        )*
    };
}

pub mod rule;

kinds! {
    bgp_configuration: BgpConfiguration, BgpConfigurationSpec, NoStatus;
    bgp_filter: BgpFilter, BgpFilterSpec, NoStatus;
    bgp_peer: BgpPeer, BgpPeerSpec, NoStatus;
    block_affinity: BlockAffinity, BlockAffinitySpec, NoStatus;
    calico_node_status: CalicoNodeStatus, CalicoNodeStatusSpec, calico_node_status::CalicoNodeStatusStatus, true;
    cluster_information: ClusterInformation, ClusterInformationSpec, NoStatus;
    felix_configuration: FelixConfiguration, FelixConfigurationSpec, NoStatus;
    global_network_policy: GlobalNetworkPolicy, GlobalNetworkPolicySpec, NoStatus;
    global_network_set: GlobalNetworkSet, GlobalNetworkSetSpec, NoStatus;
    host_endpoint: HostEndpoint, HostEndpointSpec, NoStatus;
    ipam_block: IpamBlock, IpamBlockSpec, NoStatus;
    ipam_configuration: IpamConfiguration, IpamConfigurationSpec, NoStatus;
    ipam_handle: IpamHandle, IpamHandleSpec, NoStatus;
    ip_pool: IpPool, IpPoolSpec, ip_pool::IpPoolStatus;
    ip_reservation: IpReservation, IpReservationSpec, NoStatus;
    kube_controllers_configuration: KubeControllersConfiguration, KubeControllersConfigurationSpec,
        kube_controllers_configuration::KubeControllersConfigurationStatus;
    live_migration: LiveMigration, LiveMigrationSpec, NoStatus;
    network_policy: NetworkPolicy, NetworkPolicySpec, NoStatus;
    network_set: NetworkSet, NetworkSetSpec, NoStatus;
    node: Node, NodeSpec, node::NodeStatus;
    profile: Profile, ProfileSpec, NoStatus;
    staged_global_network_policy: StagedGlobalNetworkPolicy, StagedGlobalNetworkPolicySpec, NoStatus;
    staged_kubernetes_network_policy: StagedKubernetesNetworkPolicy, StagedKubernetesNetworkPolicySpec, NoStatus;
    staged_network_policy: StagedNetworkPolicy, StagedNetworkPolicySpec, NoStatus;
    tier: Tier, TierSpec, tier::TierStatus;
    workload_endpoint: WorkloadEndpoint, WorkloadEndpointSpec, NoStatus;
}
