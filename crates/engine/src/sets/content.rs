//! What is in a set, and what an item gives to it.

use crate::items::Item;
use crate::message::{Member, PortProtocol, SetType};
use crate::selectors::SelectorIdx;

/// What is in a set.
pub(super) enum Content {
    /// The networks of what a selector matches.
    Nets(SelectorIdx),
    /// The ports of one name of what a selector matches.
    Ports {
        selector: SelectorIdx,
        protocol: Option<PortProtocol>,
        name: Box<str>,
    },
    /// The endpoints of a service, with or without their ports.
    Service { service: Box<str>, with_ports: bool },
}

impl Content {
    pub(super) fn selector(&self) -> Option<SelectorIdx> {
        match self {
            Self::Nets(selector) | Self::Ports { selector, .. } => Some(*selector),
            Self::Service { .. } => None,
        }
    }

    pub(super) fn set_type(&self) -> SetType {
        match self {
            Self::Nets(_)
            | Self::Service {
                with_ports: false, ..
            } => SetType::Net,
            Self::Ports { .. } | Self::Service { .. } => SetType::IpAndPort,
        }
    }

    /// Calls with the members that an item which matches the selector gives.
    pub(super) fn for_each_member(&self, item: &Item, mut call: impl FnMut(Member)) {
        match self {
            Self::Nets(_) => {
                item.nets().for_each(|net| call(Member::Net(net)));
            }
            Self::Ports { protocol, name, .. } => {
                for port in item.ports() {
                    if port.name == *name && protocol.is_none_or(|p| p == port.protocol) {
                        for net in item.nets() {
                            call(Member::Port(net.addr(), port.protocol, port.port));
                        }
                    }
                }
            }
            Self::Service { .. } => {}
        }
    }
}
