//! Rules for packets with an authentication header (AH) in IPv6, where what comes behind it cannot be compared.
//!
//! A rule that asks for another protocol, for ports or for a type of ICMP cannot tell there whether it applies. So that
//! nobody gets past it with such a header, it counts as one for all protocols if it denies, denies if it passes on, and is
//! left out if it allows or logs. A rule that names protocol 51, or no protocol, is as ever.

use std::borrow::Cow;

use tortie_api::rule::Action;
use tortie_api::scalar::Protocol;

use super::{Rule, RuleSide};

/// The protocol number of AH.
pub const AUTHENTICATION_HEADER: u8 = 51;

impl Rule {
    /// Whether it must know what comes behind the header.
    pub fn looks_behind_header(&self) -> bool {
        let is_other = |protocol: &Option<Protocol>| {
            let number = protocol.as_ref().map(Protocol::number);
            number.is_some_and(|number| number != Some(AUTHENTICATION_HEADER))
        };
        let has_ports = |side: &RuleSide| {
            let sets = [
                &side.named_port_sets,
                &side.not_named_port_sets,
                &side.port_sets,
            ];
            let lists = [&side.ports, &side.not_ports];
            sets.iter().any(|sets| !sets.is_empty()) || lists.iter().any(|list| !list.is_empty())
        };
        is_other(&self.protocol)
            || is_other(&self.not_protocol)
            || self.icmp.is_some()
            || self.not_icmp.is_some()
            || has_ports(&self.src)
            || has_ports(&self.dst)
    }

    /// What takes its place for packets with the header; none if it is left out.
    pub fn behind_header(&self) -> Option<Cow<'_, Self>> {
        if !self.looks_behind_header() {
            return Some(Cow::Borrowed(self));
        }
        let denies = matches!(self.action, Action::Deny | Action::Pass);
        denies.then(|| Cow::Owned(self.denying_all_protocols()))
    }

    fn denying_all_protocols(&self) -> Self {
        let side = |side: &RuleSide| RuleSide {
            nets: side.nets.clone(),
            not_nets: side.not_nets.clone(),
            sets: side.sets.clone(),
            not_sets: side.not_sets.clone(),
            original: side.original.clone(),
            ..RuleSide::default()
        };
        Self {
            action: Action::Deny,
            ip_version: self.ip_version,
            src: side(&self.src),
            dst: side(&self.dst),
            metadata: self.metadata.clone(),
            ..Self::default()
        }
    }
}
