//! What a set stands for, and the identifier that follows from it.

use std::borrow::Cow;

use tortie_selector::{Selector, ids::make_unique_id};

use crate::message::{PortProtocol, SetId};

/// Stands for a set whose selector does not parse.
pub(crate) const BROKEN: u32 = u32::MAX;

/// How many kinds of definition there are.
pub(crate) const KINDS: usize = 4;

/// What a set stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Definition<'a> {
    /// What a selector matches.
    Selector(Cow<'a, str>),
    /// The ports of one name of what a selector matches; of any protocol if none is given.
    Port {
        selector: Cow<'a, str>,
        protocol: Option<PortProtocol>,
        name: &'a str,
    },
    /// The endpoints of a service, as `namespace/name`, with or without their ports.
    Service { service: String, with_ports: bool },
}

impl Definition<'_> {
    /// Text that tells it from all other definitions of its kind.
    pub(crate) fn spelling(&self) -> (usize, Cow<'_, str>) {
        match self {
            Self::Selector(selector) => (0, Cow::Borrowed(selector)),
            // Names of protocols and ports contain no zero byte, whatever is in the selector.
            Self::Port { selector, name, .. } => (
                1,
                format!("{}\0{name}\0{selector}", self.protocol_name()).into(),
            ),
            Self::Service {
                service,
                with_ports,
            } => (if *with_ports { 2 } else { 3 }, Cow::Borrowed(service)),
        }
    }

    pub(crate) fn selector(&self) -> Option<&str> {
        match self {
            Self::Selector(selector) | Self::Port { selector, .. } => Some(selector),
            Self::Service { .. } => None,
        }
    }

    pub(crate) fn service(&self) -> &str {
        match self {
            Self::Service { service, .. } => service,
            Self::Selector(_) | Self::Port { .. } => "",
        }
    }

    pub(crate) fn has_ports(&self) -> bool {
        matches!(
            self,
            Self::Port { .. }
                | Self::Service {
                    with_ports: true,
                    ..
                }
        )
    }

    /// The identifier; `selector` is the parsed form of [`Self::selector`].
    pub(crate) fn id(&self, selector: Option<&Selector>) -> SetId {
        let selector_id = || selector.map(Selector::unique_id).unwrap_or_default();
        match self {
            Self::Selector(_) => selector_id(),
            Self::Port { name, .. } => make_unique_id(
                "n",
                &format!("{},{},{name}", selector_id(), self.protocol_name()),
            ),
            Self::Service {
                service,
                with_ports: true,
            } => make_unique_id("svc", service),
            Self::Service {
                service,
                with_ports: false,
            } => make_unique_id("svcnoport", service),
        }
        .into()
    }

    fn protocol_name(&self) -> String {
        match self {
            Self::Port {
                protocol: Some(protocol),
                ..
            } => protocol.to_string(),
            _ => "any".to_owned(),
        }
    }
}
