//! Rights by roles, as Kubernetes has them.
//!
//! # Invariants
//! - What a role or a binding says counts when its write is answered: `storage/roles.rs` sees to that.
//! - What cannot be read grants nothing.
//! - Nobody gives away rights that they do not have, unless they are allowed to.

mod covers;
pub(crate) mod defaults;
mod index;
mod rule;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role, RoleRef};
use serde::Deserialize as _;
use serde_json::Value;
use tortie_api::validate::ROLE_GROUP;

use self::covers::{Missing, missing, words};
use self::index::{Id, Index, role_of};
use self::rule::{ALL, Action, allows};
use super::{Attributes, Authorize, User, denied, denied_path, forbidden};
use crate::failure::{Failure, Reason, Result};
use crate::registry::Native;

/// Allows what the roles allow that somebody holds, and everything to administrators.
#[derive(Debug, Default)]
pub struct Roles {
    index: RwLock<Index>,
}

impl Roles {
    /// Takes in a role or binding instead of what it was.
    pub(crate) fn put(&self, native: Native, object: &Value) {
        self.write().put(native, object);
    }

    /// Forgets a role or binding.
    pub(crate) fn remove(&self, native: Native, namespace: &str, name: &str) {
        let id = (namespace.to_owned(), name.to_owned());
        self.write().remove(native, &id);
    }

    fn allow(&self, user: &User, action: Action<'_>) -> bool {
        let index = self.read();
        let mut rules = index.rules_for(user, action.namespace());
        user.is_administrator() || rules.any(|rule| allows(rule, action))
    }

    /// Fails if somebody does not have all rights that rules give.
    fn check_covered<'a>(
        &self,
        user: &User,
        namespace: Option<&str>,
        given: impl IntoIterator<Item = &'a PolicyRule>,
    ) -> Result<(), String> {
        // Copied, so that nobody waits for the index while they are compared.
        let owned: Vec<PolicyRule> = self.read().rules_for(user, namespace).cloned().collect();
        match missing(&owned, given) {
            Missing::Nothing => Ok(()),
            Missing::Rules(lines) => Err(format!(
                "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{lines}",
                user.name,
                words(&user.groups)
            )),
            Missing::TooMany => Err(format!(
                "user {:?} is attempting to grant more RBAC permissions than can be compared: name fewer, or `*`",
                user.name
            )),
        }
    }

    fn check_role(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
        before: Option<&Value>,
        after: &Value,
    ) -> Result<(), String> {
        let escalate = Attributes {
            verb: "escalate",
            ..*attributes
        };
        if self.allow(user, Action::Objects(&escalate)) {
            return Ok(());
        }
        let unreadable = |error: serde_json::Error| format!("rules: {error}");
        let rules = match attributes.resource {
            "roles" => Role::deserialize(after).map_err(unreadable)?.rules,
            _ => ClusterRole::deserialize(after).map_err(unreadable)?.rules,
        };
        self.check_covered(user, attributes.namespace, rules.iter().flatten())?;
        let aggregates = |role: &Value| {
            role.get("aggregationRule")
                .is_some_and(|rule| !rule.is_null())
        };
        // It may come to gather anything.
        if aggregates(after) || before.is_some_and(aggregates) {
            let all = everything();
            let covered = self.check_covered(user, attributes.namespace, &all);
            covered.map_err(|_| "must have cluster-admin privileges to use the aggregationRule")?;
        }
        Ok(())
    }

    fn check_binding(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
        binding: &Value,
    ) -> Result<()> {
        let name = binding["metadata"]["name"].as_str().unwrap_or_default();
        let refused = |why: &str| forbidden(attributes.group, attributes.resource, name, why);
        let reference = RoleRef::deserialize(&binding["roleRef"]);
        let reference = reference.map_err(|error| refused(&format!("roleRef: {error}")))?;
        let namespace = attributes.namespace.unwrap_or_default();
        let role = role_of(&reference, namespace).map_err(|why| refused(&why))?;
        let resource = if role.0.is_empty() {
            "clusterroles"
        } else {
            "roles"
        };
        let bind = Attributes {
            verb: "bind",
            group: ROLE_GROUP,
            resource,
            name: Some(&role.1),
            ..*attributes
        };
        if self.allow(user, Action::Objects(&bind)) {
            return Ok(());
        }
        let rules = self.rules_of(&role).ok_or_else(|| {
            Failure::about(Reason::NotFound, ROLE_GROUP, resource, &role.1, "not found")
        })?;
        let covered = self.check_covered(user, attributes.namespace, &rules);
        covered.map_err(|why| refused(&why))
    }

    fn rules_of(&self, role: &Id) -> Option<Vec<PolicyRule>> {
        let index = self.read();
        let rules = index.rules_of(role)?;
        Some(rules.into_iter().cloned().collect())
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Authorize for Roles {
    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()> {
        if self.allow(user, Action::Objects(attributes)) {
            return Ok(());
        }
        Err(denied(user, attributes, ""))
    }

    async fn authorize_path(&self, user: &User, verb: &str, path: &str) -> Result<()> {
        if self.allow(user, Action::Path { verb, path }) {
            return Ok(());
        }
        Err(denied_path(user, verb, path, ""))
    }

    async fn authorize_grant(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
        before: Option<&Value>,
        after: &Value,
    ) -> Result<()> {
        if user.is_administrator() {
            return Ok(());
        }
        if matches!(attributes.resource, "rolebindings" | "clusterrolebindings") {
            return self.check_binding(user, attributes, after);
        }
        let checked = self.check_role(user, attributes, before, after);
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        checked.map_err(|why| forbidden(attributes.group, attributes.resource, name, &why))
    }

    async fn rules(&self, user: &User, namespace: &str) -> Result<Vec<PolicyRule>> {
        if user.is_administrator() {
            return Ok(everything());
        }
        let index = self.read();
        let rules = index.rules_for(user, Some(namespace));
        Ok(rules.cloned().collect())
    }
}

/// The rules that allow everything.
fn everything() -> Vec<PolicyRule> {
    let all = || vec![ALL.to_owned()];
    let objects = PolicyRule {
        api_groups: Some(all()),
        resources: Some(all()),
        verbs: all(),
        ..PolicyRule::default()
    };
    let paths = PolicyRule {
        non_resource_urls: Some(all()),
        verbs: all(),
        ..PolicyRule::default()
    };
    vec![objects, paths]
}

#[cfg(test)]
mod tests;
