//! What a node does with packets to and from itself, without all else that is configured.

use super::FailsafeConfig;
use crate::choice::EndpointToHostAction;
use crate::resolve::{Values, settings};
use crate::source::{Origin, Sources};

const ENDPOINT_TO_HOST: &str = "DefaultEndpointToHostAction";

/// What a node does with packets to and from itself. It is what [`Config`](super::Config) says, for those who ask about
/// many nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Ports that stay open whatever policy says.
    pub failsafe: FailsafeConfig,
    /// What happens to packets from workloads to their host that policy allows.
    pub endpoint_to_host: EndpointToHostAction,
    /// Where that comes from.
    pub endpoint_to_host_origin: Origin,
}

// === impl HostConfig ===

impl HostConfig {
    /// What the sources of a node say. What in them cannot be used counts as absent.
    pub fn resolve(sources: &Sources) -> Self {
        let is_wanted = |name: &str| {
            let wanted = FailsafeConfig::PARAMETERS
                .into_iter()
                .chain([ENDPOINT_TO_HOST]);
            wanted
                .into_iter()
                .any(|wanted| wanted.eq_ignore_ascii_case(name))
        };
        let settings = settings(sources, &is_wanted, &mut Vec::new());
        let values = Values::new(&settings);
        let named = |name: &str| settings.iter().find(|each| each.parameter.name == name);
        Self {
            failsafe: FailsafeConfig::from_values(&values),
            endpoint_to_host: values.get(ENDPOINT_TO_HOST),
            endpoint_to_host_origin: named(ENDPOINT_TO_HOST)
                .map_or(Origin::Default, |setting| setting.origin),
        }
    }
}
