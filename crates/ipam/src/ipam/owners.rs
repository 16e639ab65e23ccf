//! Who uses the addresses of a handle that keeps them while its users come and go: a virtual machine, and its pods.
//!
//! ```text
//! pod starts ─▶ active ◀──the active one goes── alternate ◀─ pod starts that the machine is to move to
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::ipam_block::AllocationAttribute;
use tortie_selector::ids::length_limited_id;

use super::copies::BlockCopy;
use super::{Ipam, MAX_TRIES, is_lost_race};
use crate::block::{Block, handle_of, sanitize};
use crate::error::{Error, Result};
use crate::handle;
use crate::request::attribute;

/// The longest handle of a virtual machine.
const MAX_HANDLE: usize = 128;

/// Longer beginnings leave no room for all of a hash behind them.
const MAX_PREFIX: usize = MAX_HANDLE - 44;

/// What the handles of machines have between network and machine.
pub(crate) const MACHINE_MARK: &str = ".vmi.";

/// The network of machines of which none is told.
const DEFAULT_NETWORK: &str = "k8s-pod-network";

/// The pods that use an address: facts about each, such as [`attribute::POD`], and none where there is no pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressOwners {
    /// The one that packets go to.
    pub active: BTreeMap<String, String>,
    /// The one that packets will go to, or went to before, while a virtual machine moves.
    pub alternate: BTreeMap<String, String>,
}

/// The handle of a virtual machine's addresses in a network.
pub fn machine_handle(network: &str, namespace: &str, machine: &str) -> String {
    let network = match network {
        "" => DEFAULT_NETWORK,
        network => network,
    };
    let (prefix, suffix) = (
        format!("{network}{MACHINE_MARK}"),
        format!("{namespace}.{machine}"),
    );
    if prefix.len() > MAX_PREFIX {
        return length_limited_id("", &format!("{prefix}{suffix}"), MAX_HANDLE);
    }
    length_limited_id(&prefix, &suffix, MAX_HANDLE)
}

/// The namespace and the name of the machine whose handle this is. None if it is another's, or was shortened.
pub fn machine_of_handle(handle: &str) -> Option<(&str, &str)> {
    let (_, machine) = handle.split_once(MACHINE_MARK)?;
    let (namespace, name) = machine.split_once('.')?;
    (!namespace.is_empty() && !namespace.starts_with('_')).then_some((namespace, name))
}

impl AddressOwners {
    /// A pod comes: in place of the active one, or beside it if the machine is to move to this pod and has not yet.
    pub fn admit(&mut self, facts: &BTreeMap<String, String>, is_target: bool) {
        if is_target && !is_same_pod(&self.active, facts) {
            self.alternate.clone_from(facts);
            return;
        }
        self.active.clone_from(facts);
        if is_same_pod(&self.alternate, facts) {
            self.alternate.clear();
        }
    }

    /// A pod goes. If only the other one is left, that is the active one.
    pub fn dismiss(&mut self, namespace: &str, pod: &str) {
        for facts in [&mut self.active, &mut self.alternate] {
            if is_pod(facts, namespace, pod) {
                facts.clear();
            }
        }
        if self.active.is_empty() {
            std::mem::swap(&mut self.active, &mut self.alternate);
        }
    }

    /// Whether packets go to this pod.
    pub fn is_active(&self, namespace: &str, pod: &str) -> bool {
        is_pod(&self.active, namespace, pod)
    }

    /// Whether no pod uses the address.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.alternate.is_empty()
    }

    fn of(attribute: &AllocationAttribute) -> Self {
        Self {
            active: attribute.active_owner_attrs.clone(),
            alternate: attribute.alternate_owner_attrs.clone(),
        }
    }
}

impl Ipam {
    /// Changes who uses the addresses of a handle. Gives each of them with its users after that.
    ///
    /// The change may be asked for more than once, where others write at the same time; all addresses of the handle that
    /// are in one block are changed together.
    pub async fn change_owners(
        &self,
        id: &str,
        change: impl Fn(&mut AddressOwners) + Sync,
    ) -> Result<Vec<(IpAddr, AddressOwners)>> {
        let id = sanitize(id);
        let handle = self.read_handle(id).await?;
        let handle = handle.ok_or_else(|| Error::NoHandle(id.to_owned()))?;
        let mut found = Vec::new();
        for net in handle::blocks(&handle) {
            found.extend(self.change_in_block(net, id, &change).await?);
        }
        Ok(found)
    }

    async fn change_in_block(
        &self,
        net: IpNet,
        id: &str,
        change: &(impl Fn(&mut AddressOwners) + Sync),
    ) -> Result<Vec<(IpAddr, AddressOwners)>> {
        let slot = self.slot(net);
        let mut copy = slot.copy.lock().await;
        *copy = None;
        for _ in 0..MAX_TRIES {
            let Some(base) = self.read_block(net).await? else {
                return Ok(Vec::new());
            };
            let mut spec = base.block.spec().clone();
            let mut is_changed = false;
            for attribute in spec.attributes.iter_mut().filter(|held| is_of(held, id)) {
                let before = AddressOwners::of(attribute);
                let mut after = before.clone();
                change(&mut after);
                is_changed |= after != before;
                attribute.active_owner_attrs = after.active;
                attribute.alternate_owner_attrs = after.alternate;
            }
            let mut block = Block::of_whole(spec, net);
            let held = block.allocations().filter(|(_, held)| is_of(held, id));
            let found = held
                .map(|(address, held)| (address, AddressOwners::of(held)))
                .collect();
            if !is_changed {
                return Ok(found);
            }
            block.bump();
            let tick = self.tick();
            match self.store().update(base.resource_with(block)).await {
                Ok(answer) => {
                    *copy = BlockCopy::written(answer, net, tick);
                    return Ok(found);
                }
                Err(error) if is_lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::TooMuchContention)
    }
}

fn is_of(attribute: &AllocationAttribute, handle: &str) -> bool {
    attribute.released_at.is_none() && handle_of(attribute) == Some(handle)
}

fn is_pod(facts: &BTreeMap<String, String>, namespace: &str, pod: &str) -> bool {
    let is = |name, value: &str| facts.get(name).is_some_and(|found| found == value);
    is(attribute::NAMESPACE, namespace) && is(attribute::POD, pod)
}

fn is_same_pod(facts: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> bool {
    match (other.get(attribute::NAMESPACE), other.get(attribute::POD)) {
        (Some(namespace), Some(pod)) => is_pod(facts, namespace, pod),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pod: &str) -> BTreeMap<String, String> {
        let names = [attribute::NAMESPACE, attribute::POD];
        names
            .map(str::to_owned)
            .into_iter()
            .zip(["ns".to_owned(), pod.to_owned()])
            .collect()
    }

    /// Lets pods come (`+a`), come as targets (`>a`) and go (`-a`); tells who is there then.
    #[track_caller]
    fn check(steps: &str, expected: &str) {
        let mut owners = AddressOwners::default();
        for step in steps.split_whitespace() {
            let (verb, pod) = step.split_at(1);
            match verb {
                "+" => owners.admit(&facts(pod), false),
                ">" => owners.admit(&facts(pod), true),
                _ => owners.dismiss("ns", pod),
            }
        }
        let name = |facts: &BTreeMap<String, String>| facts.get("pod").cloned().unwrap_or_default();
        let found = format!("{}|{}", name(&owners.active), name(&owners.alternate));
        assert_eq!(found, expected, "{steps}");
        assert_eq!(owners.is_empty(), expected == "|");
    }

    #[test]
    fn a_successor_takes_the_place_of_a_pod_that_is_stuck() {
        check("+a +b", "b|");
        check("+a +b -a", "b|");
        check("+a -a +b", "b|");
        check("+a -a", "|");
    }

    #[test]
    fn the_target_of_a_move_waits_until_the_source_is_gone() {
        check("+a >b", "a|b");
        check("+a >b -a", "b|");
        check("+a >b -b", "a|");
        check("+a >b >c", "a|c");
        check("+a >b -a >b", "b|");
        check("+a >b -a >c -b", "c|");
        check("+a >b -c", "a|b");
    }

    #[test]
    fn a_pod_of_the_same_name_elsewhere_is_another() {
        let mut owners = AddressOwners::default();
        owners.admit(&facts("a"), false);
        owners.dismiss("other", "a");
        assert!(owners.is_active("ns", "a") && !owners.is_active("other", "a"));
    }

    #[test]
    fn a_handle_is_named_after_the_machine_and_never_too_long() {
        let handle = machine_handle("", "ns1", "vm1");
        assert_eq!(handle, "k8s-pod-network.vmi.ns1.vm1");
        assert_eq!(machine_handle("net", "ns", "vm.1"), "net.vmi.ns.vm.1");
        assert_eq!(machine_of_handle(&handle), Some(("ns1", "vm1")));
        assert_eq!(machine_of_handle("net.vmi.ns.vm.1"), Some(("ns", "vm.1")));
        assert_eq!(machine_of_handle("net.0123abcd"), None);
        let long = "x".repeat(200);
        let hashed = machine_handle("net", "ns", &long);
        assert!(
            hashed.starts_with("net.vmi._") && hashed.len() <= 128,
            "{hashed}"
        );
        assert_eq!(machine_of_handle(&hashed), None);
        assert_ne!(hashed, machine_handle("net", "ns2", &long));
        for length in [80, 84, 120, 128, 500] {
            let network = "n".repeat(length);
            assert!(machine_handle(&network, "ns", &long).len() <= 128);
        }
    }
}
