//! The nodes' ends of the VXLAN tunnels, which the data plane gets while VXLAN is in use.

use std::collections::BTreeMap;

use super::outbox::Outbox;
use crate::message::{Message, Vtep};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Vteps {
    by_node: BTreeMap<String, Vtep>,
    active: bool,
    out: Outbox<String, Vtep>,
}

// === impl Vteps ===

impl Vteps {
    pub(super) fn set(&mut self, node: &str, vtep: Option<Vtep>) {
        if self.active {
            self.out.want(node.to_owned(), vtep.clone());
        }
        match vtep {
            Some(vtep) => self.by_node.insert(node.to_owned(), vtep),
            None => self.by_node.remove(node),
        };
    }

    /// Finds out what to send, given whether any are needed.
    pub(super) fn resolve(&mut self, active: bool) {
        if active && !self.active {
            for (node, vtep) in &self.by_node {
                self.out.want(node.clone(), Some(vtep.clone()));
            }
        }
        if !active && self.active {
            self.out.want_nothing();
        }
        self.active = active;
    }

    /// Sends the changes; the data plane knows a changed end only as another one.
    pub(super) fn flush(&mut self, sink: &mut dyn FnMut(Message)) {
        self.out
            .flush_removals_before_updates(sink, Message::VtepRemove);
        self.out
            .flush_updates(sink, |_, vtep| Message::VtepUpdate(vtep));
    }
}
