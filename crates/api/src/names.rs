//! Names that are computed: of workload endpoints and of interfaces.

mod interface;
mod workload_endpoint;

pub use interface::{DEFAULT_VETH_PREFIX, IpVersion, veth_name, vtep_mac};
pub use workload_endpoint::{EndpointIds, NameError, agent_key, workload_endpoint_name};
