//! The endpoints behind services, from their slices. Whether an endpoint is ready does not matter: a rule that names a
//! service is about all of its endpoints.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use ipnet::IpNet;

use super::SetIdx;
use crate::id_set::IdSet;
use crate::input::{EndpointSlice, ObjectName};
use crate::message::{Member, PortProtocol};

/// All slices, and the sets that need them.
#[derive(Default)]
pub(crate) struct Services {
    slices: HashMap<ObjectName, EndpointSlice>,
    services: HashMap<String, Service>,
}

#[derive(Default)]
struct Service {
    slices: BTreeSet<ObjectName>,
    with_ports: IdSet,
    without_ports: IdSet,
}

impl Services {
    /// The members of a set for a service.
    pub(crate) fn members(&self, service: &str, with_ports: bool) -> Vec<Member> {
        let mut members = Vec::new();
        for name in self
            .services
            .get(service)
            .into_iter()
            .flat_map(|service| &service.slices)
        {
            if let Some(slice) = self.slices.get(name) {
                for_each_member(slice, with_ports, |member| members.push(member));
            }
        }
        members
    }

    /// A set is for a service.
    pub(crate) fn use_in(&mut self, service: &str, set: SetIdx, with_ports: bool) {
        self.services
            .entry_ref(service)
            .or_default()
            .sets(with_ports)
            .insert(set);
    }

    pub(crate) fn unuse_in(&mut self, service: &str, set: SetIdx) {
        if let Some(entry) = self.services.get_mut(service) {
            entry.with_ports.remove(set);
            entry.without_ports.remove(set);
            self.tidy(service);
        }
    }

    /// A slice changed; calls with set, member, and whether the member came or went.
    pub(crate) fn update(
        &mut self,
        name: &ObjectName,
        slice: Option<&EndpointSlice>,
        mut change: impl FnMut(SetIdx, Member, bool),
    ) {
        if self.slices.get(name) == slice {
            return;
        }
        let service_of = |slice: &EndpointSlice| format!("{}/{}", name.namespace, slice.service);
        if let Some(slice) = slice {
            let service = self.services.entry_ref(&*service_of(slice)).or_default();
            service.slices.insert(name.clone());
            service.for_each_change(slice, |set, member| change(set, member, true));
        }
        let old = match slice {
            Some(slice) => self.slices.insert(name.clone(), slice.clone()),
            None => self.slices.remove(name),
        };
        if let Some(old) = old {
            let old_service = service_of(&old);
            if let Some(service) = self.services.get_mut(&*old_service) {
                service.for_each_change(&old, |set, member| change(set, member, false));
                if slice.is_none_or(|slice| slice.service != old.service) {
                    service.slices.remove(name);
                }
            }
            self.tidy(&old_service);
        }
    }

    fn tidy(&mut self, service: &str) {
        let is_idle = |service: &Service| {
            service.slices.is_empty()
                && service.with_ports.is_empty()
                && service.without_ports.is_empty()
        };
        if self.services.get(service).is_some_and(is_idle) {
            self.services.remove(service);
        }
    }
}

impl Service {
    fn sets(&mut self, with_ports: bool) -> &mut IdSet {
        if with_ports {
            &mut self.with_ports
        } else {
            &mut self.without_ports
        }
    }

    fn for_each_change(&self, slice: &EndpointSlice, mut call: impl FnMut(SetIdx, Member)) {
        for (sets, with_ports) in [(&self.with_ports, true), (&self.without_ports, false)] {
            for set in sets.iter() {
                for_each_member(slice, with_ports, |member| call(set, member));
            }
        }
    }
}

fn for_each_member(slice: &EndpointSlice, with_ports: bool, mut call: impl FnMut(Member)) {
    for &address in &slice.addresses {
        if !with_ports {
            call(Member::Net(IpNet::from(address)));
            continue;
        }
        for port in &slice.ports {
            let protocol = PortProtocol::of_port(&port.protocol);
            call(Member::Port(address, protocol, port.port));
        }
    }
}
