//! Whose the chains and sets in the kernel are.

use std::sync::Arc;

use hashbrown::HashSet;
use tortie_engine::message::{Rule, SetId};
use tortie_rules::{IpVersion, Table, ip_set_name, networks_set_name};

use super::DesiredState;
use crate::change::{Object, Owner};

/// So many users of a set are named.
const NAMED: usize = 3;

impl DesiredState {
    /// Whose an object is, as people call it; none if it is nobody's, such as the chains that are always there.
    pub(crate) fn owner_of(&self, version: IpVersion, object: &Object) -> Option<Owner> {
        match object {
            Object::Chain(key) => self.owner_of_chain(version, &(key.table, Arc::clone(&key.name))),
            Object::Set(name) => self.owner_of_set(version, name),
        }
    }

    fn owner_of_chain(&self, version: IpVersion, key: &(Table, Arc<str>)) -> Option<Owner> {
        let mut families = self.families.iter();
        let family = families.find(|family| family.ip_version() == version)?;
        if let Some(id) = family.policy_of(key) {
            return Some(Owner::policy(id));
        }
        if let Some(name) = family.profile_of(key) {
            return Some(Owner::profile(name));
        }
        let interface = family.endpoint_of(key)?;
        if let Some(id) = self.workloads.id_of_interface(interface) {
            let (workload, endpoint) = (&id.workload_id, &id.endpoint_id);
            return Some(Owner {
                kind: "WorkloadEndpoint".to_owned(),
                name: format!("{workload} {endpoint}"),
                remark: format!("({interface})"),
            });
        }
        let id = self.hosts_by_interface.by_interface.get(interface)?;
        Some(Owner {
            kind: "HostEndpoint".to_owned(),
            name: id.endpoint_id.clone(),
            remark: format!("({interface})"),
        })
    }

    fn owner_of_set(&self, version: IpVersion, name: &str) -> Option<Owner> {
        let mut families = self.families.iter();
        let family = families.find(|family| family.ip_version() == version)?;
        let is_it = |id: &&SetId| {
            let own = ip_set_name(id.as_str(), version, family.dataplane());
            own == name || networks_set_name(&own) == name
        };
        let id = self.sets.ids().find(is_it)?;
        let looks_into = |rules: &[Rule]| {
            let sets: HashSet<&SetId> = rules.iter().flat_map(Rule::sets).collect();
            sets.contains(id)
        };
        let policies = self.policies.iter();
        let policies =
            policies.filter(|(_, p)| looks_into(&p.inbound_rules) || looks_into(&p.outbound_rules));
        let mut users: Vec<String> = policies.map(|(id, _)| id.full_name()).collect();
        users.sort_unstable();
        let others = users.len().saturating_sub(NAMED);
        users.truncate(NAMED);
        let users = users.join(", ");
        Some(Owner {
            kind: Owner::SET.to_owned(),
            name: id.to_string(),
            remark: match others {
                0 => format!("of {users}"),
                others => format!("of {users} and {others} more"),
            },
        })
    }
}
