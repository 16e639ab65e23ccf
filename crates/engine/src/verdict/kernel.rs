//! Where a kernel decides otherwise than the rules of policies say.

use std::fmt;

use serde::Serialize;
use tortie_api::names::PolicyId;
use tortie_config::Sources;

use super::EndpointKey;
use crate::message::{Policy, Profile};

/// What is known of the kernels that enforce policy.
pub trait Kernel {
    /// Why a policy denies all that it should decide about, if it does.
    fn denial_of_policy(&self, place: &Place<'_>, id: &PolicyId, policy: &Policy)
    -> Option<Denial>;

    /// Why a profile denies all that it should decide about, if it does.
    fn denial_of_profile(&self, place: &Place<'_>, name: &str, profile: &Profile)
    -> Option<Denial>;

    /// Why all packets of an endpoint are denied, if they are.
    fn denial_of_endpoint(
        &self,
        place: &Place<'_>,
        endpoint: &EndpointKey,
        interface: &str,
    ) -> Option<Denial>;

    /// What the agent of a node was started with, if that is known. What the datastore says is not looked for there.
    fn started_with(&self, node: &str) -> Option<Sources> {
        let _ = node;
        None
    }

    /// Whether rules cannot be compared with what comes behind an authentication header of IPv6, on a node.
    fn hides_behind_header(&self, node: &str) -> bool;
}

/// Where, and for which packets, something decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub node: &'a str,
    /// Whether the packet is IPv4, and not IPv6.
    pub is_ipv4: bool,
    /// Whether the packet gets into the endpoint, and not out of it.
    pub is_ingress: bool,
    /// Whether the packet has an authentication header that hides what comes behind it.
    pub is_opaque: bool,
}

/// Why all packets are denied, whatever rules say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Denial {
    /// There would be too many rules.
    TooManyRules {
        /// So many would be needed in one chain.
        rules: usize,
        /// So many there may be.
        limit: usize,
        /// The data plane that needs them.
        dataplane: String,
    },
    /// The kernel of the node did not take it.
    Refused {
        node: String,
        /// What was refused: the object itself, or a set that its rules look into.
        object: String,
        /// What the kernel said.
        reason: String,
    },
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyRules {
                rules,
                limit,
                dataplane,
            } => write!(
                f,
                "it needs {rules} rules in one chain of {dataplane}, and {limit} is the most"
            ),
            Self::Refused {
                node,
                object,
                reason,
            } => write!(f, "on node {node} the kernel refused {object}: {reason}"),
        }
    }
}
