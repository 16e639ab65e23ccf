//! Names that are computed: of workload endpoints and of interfaces.

mod workload_endpoint;

pub use workload_endpoint::{EndpointIds, NameError, workload_endpoint_name};
