//! Names that are computed or composed: of workload endpoints, of interfaces, and of policies among all their kinds.

mod interface;
mod policy;
mod workload_endpoint;

pub use interface::{DEFAULT_VETH_PREFIX, IpVersion, veth_name, vtep_mac};
pub use policy::{
    KUBERNETES_CLUSTER_POLICY, KUBERNETES_POLICY, PolicyId, PolicyKind, UnknownPolicyKind,
};
pub use workload_endpoint::{EndpointIds, NameError, agent_key, workload_endpoint_name};
