//! What decided.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tortie_api::names::PolicyId;
use tortie_api::rule::Action;
use tortie_config::EndpointToHostAction;

use super::{Denial, Point};
use crate::is_default;

/// What decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum By {
    /// A rule of a policy.
    Rule {
        /// The tier of the policy.
        tier: Arc<str>,
        policy: Arc<PolicyId>,
        /// The place of the rule in the policy, from 0.
        rule: usize,
        /// What the rule does.
        action: Action,
        /// At which point of a host the policy applies.
        #[serde(skip_serializing_if = "is_default")]
        point: Point,
    },
    /// The end of a tier with policies that apply and do not decide.
    EndOfTier {
        tier: Arc<str>,
        /// What it does.
        action: Action,
        /// At which point of a host.
        #[serde(skip_serializing_if = "is_default")]
        point: Point,
    },
    /// A rule of a profile, where no policy decides.
    Profile {
        profile: Arc<str>,
        /// The place of the rule in the profile, from 0.
        rule: usize,
        /// What the rule does.
        action: Action,
    },
    /// No policy and no profile decides.
    NoProfile {
        /// A drop.
        action: Action,
    },
    /// Something that denies whatever rules say, because the kernel does not have it as it should be.
    Denial {
        /// The policy, profile or endpoint.
        object: String,
        /// The policy, if it is one.
        #[serde(skip_serializing_if = "is_default")]
        policy: Option<Arc<PolicyId>>,
        /// The tier of the policy.
        #[serde(skip_serializing_if = "is_default")]
        tier: Option<Arc<str>>,
        /// It denies.
        action: Action,
        /// At which point of a host the policy applies.
        #[serde(skip_serializing_if = "is_default")]
        point: Point,
        /// Why.
        because: Denial,
    },
    /// A port of hosts that is never closed, so that nobody is locked out.
    Failsafe {
        /// The port, as parameters have it.
        port: String,
        /// It lets the packet pass.
        action: Action,
    },
    /// Policy applies to nothing there.
    NoEndpoint {
        /// It lets the packet pass.
        action: Action,
    },
    /// A node always reaches its own workloads.
    OwnNode {
        node: String,
        /// It lets the packet pass.
        action: Action,
    },
    /// What a workload sends to its own node, once its policies let it out.
    EndpointToHost {
        node: String,
        /// `defaultEndpointToHostAction` of the node.
        setting: EndpointToHostAction,
        /// Whether it is known to be set; otherwise it is the default, and the agent's environment may differ.
        is_set: bool,
        /// What follows.
        action: Action,
    },
}

impl By {
    /// What became of the packet.
    pub fn action(&self) -> Action {
        match self {
            Self::Rule { action, .. }
            | Self::EndOfTier { action, .. }
            | Self::Profile { action, .. }
            | Self::NoProfile { action }
            | Self::Denial { action, .. }
            | Self::Failsafe { action, .. }
            | Self::NoEndpoint { action }
            | Self::OwnNode { action, .. }
            | Self::EndpointToHost { action, .. } => *action,
        }
    }

    /// At which point of a host it was decided.
    pub fn point(&self) -> Point {
        match self {
            Self::Rule { point, .. }
            | Self::EndOfTier { point, .. }
            | Self::Denial { point, .. } => *point,
            _ => Point::Normal,
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule {
                tier,
                policy,
                rule,
                action,
                ..
            } => {
                let policy = policy.full_name();
                write!(f, "{action:?} by rule {rule} of {policy} in tier {tier}")
            }
            Self::EndOfTier { tier, action, .. } => write!(
                f,
                "{action:?} at the end of tier {tier}: policies apply and no rule matches"
            ),
            Self::Profile {
                profile,
                rule,
                action,
            } => {
                write!(
                    f,
                    "{action:?} by rule {rule} of profile {profile}: no policy decides"
                )
            }
            Self::NoProfile { action } => {
                write!(f, "{action:?}: no policy and no profile decides")
            }
            Self::Denial {
                object,
                tier,
                action,
                because,
                ..
            } => {
                write!(f, "{action:?} by {object}")?;
                if let Some(tier) = tier {
                    write!(f, " in tier {tier}")?;
                }
                write!(f, ", whatever its rules say: {because}")
            }
            Self::Failsafe { port, action } => {
                write!(f, "{action:?}: {port} is a failsafe port of hosts")
            }
            Self::NoEndpoint { action } => write!(f, "{action:?}: no policy applies there"),
            Self::OwnNode { node, action } => {
                write!(f, "{action:?}: node {node} always reaches its own pods")
            }
            Self::EndpointToHost {
                node,
                setting,
                is_set,
                action,
            } => {
                write!(
                    f,
                    "{action:?}: defaultEndpointToHostAction of node {node} is {setting}"
                )?;
                if !is_set {
                    write!(
                        f,
                        ", its default, unless FELIX_DEFAULTENDPOINTTOHOSTACTION of its agent says otherwise"
                    )?;
                }
                Ok(())
            }
        }
    }
}
