//! Roles and bindings, in the form in which requests look them up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tortie_api::validate::ROLE_GROUP;

use crate::access::User;
use crate::registry::Native;
use crate::selector::LabelSelector;

/// The namespace, empty for what is for the whole cluster, and the name.
pub(super) type Id = (String, String);

/// All roles, all bindings, and who holds which.
#[derive(Debug, Default)]
pub(super) struct Index {
    roles: BTreeMap<Id, Rules>,
    bindings: BTreeMap<Id, Binding>,
    /// By namespace.
    held: HashMap<String, Held>,
}

/// What a role allows.
#[derive(Debug)]
struct Rules {
    own: Vec<PolicyRule>,
    /// The labels, as objects have them.
    head: Value,
    aggregation: Option<Aggregation>,
}

/// A role that allows what others do, and nothing of its own.
#[derive(Debug)]
struct Aggregation {
    selectors: Vec<LabelSelector>,
    /// The names of the roles that they select.
    members: BTreeSet<String>,
}

#[derive(Debug)]
struct Binding {
    role: Id,
    holders: Vec<Holder>,
}

/// Who holds a role. A service account is a user of a certain name.
#[derive(Debug)]
enum Holder {
    User(String),
    Group(String),
}

/// The names of the bindings of one namespace, by who they are for.
#[derive(Debug, Default)]
struct Held {
    users: HashMap<String, BTreeSet<String>>,
    groups: HashMap<String, BTreeSet<String>>,
}

impl Index {
    /// Takes in an object instead of what it was. One that cannot be read is as one that is not there.
    pub(super) fn put(&mut self, native: Native, object: &Value) {
        let text = |field: &str| {
            let text = object["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let id = (text("namespace"), text("name"));
        self.remove(native, &id);
        if let Err(error) = self.add(native, &id, object) {
            let (namespace, name) = id;
            tracing::error!(kind = ?native, namespace, name, error, "A role or binding cannot be read, so it grants nothing");
        }
    }

    fn add(&mut self, native: Native, id: &Id, object: &Value) -> Result<(), String> {
        let unreadable = |error: serde_json::Error| error.to_string();
        match native {
            Native::Role => {
                let role = Role::deserialize(object).map_err(unreadable)?;
                self.add_role(id, role.rules, object, None);
            }
            Native::ClusterRole => {
                let role = ClusterRole::deserialize(object).map_err(unreadable)?;
                let selectors = role.aggregation_rule.map(|rule| {
                    let selectors = rule.cluster_role_selectors.unwrap_or_default();
                    selectors.iter().map(LabelSelector::from_object).collect()
                });
                self.add_role(id, role.rules, object, selectors.transpose()?);
            }
            Native::RoleBinding => {
                let binding = RoleBinding::deserialize(object).map_err(unreadable)?;
                self.add_binding(id, &binding.role_ref, binding.subjects)?;
            }
            Native::ClusterRoleBinding => {
                let binding = ClusterRoleBinding::deserialize(object).map_err(unreadable)?;
                self.add_binding(id, &binding.role_ref, binding.subjects)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_role(
        &mut self,
        id: &Id,
        rules: Option<Vec<PolicyRule>>,
        object: &Value,
        selectors: Option<Vec<LabelSelector>>,
    ) {
        let head = json!({"metadata": {"labels": object["metadata"]["labels"]}});
        let aggregation = selectors.map(|selectors| {
            let others = self
                .roles
                .iter()
                .filter(|((namespace, _), _)| namespace.is_empty());
            let members = others.filter(|(_, role)| selects(&selectors, &role.head));
            let members = members.map(|((_, name), _)| name.clone()).collect();
            Aggregation { selectors, members }
        });
        let (namespace, name) = id;
        if namespace.is_empty() {
            for aggregation in self.aggregations() {
                if selects(&aggregation.selectors, &head) {
                    aggregation.members.insert(name.clone());
                }
            }
        }
        let role = Rules {
            own: rules.unwrap_or_default(),
            head,
            aggregation,
        };
        self.roles.insert(id.clone(), role);
    }

    fn aggregations(&mut self) -> impl Iterator<Item = &mut Aggregation> {
        let roles = self.roles.values_mut();
        roles.filter_map(|role| role.aggregation.as_mut())
    }

    fn add_binding(
        &mut self,
        id: &Id,
        reference: &RoleRef,
        subjects: Option<Vec<Subject>>,
    ) -> Result<(), String> {
        let (namespace, name) = id;
        let role = role_of(reference, namespace)?;
        let subjects = subjects.unwrap_or_default().into_iter();
        let holders: Vec<Holder> = subjects
            .filter_map(|subject| Holder::of(subject, namespace))
            .collect();
        let held = self.held.entry(namespace.clone()).or_default();
        for holder in &holders {
            let (names, holder) = held.of(holder);
            let names = names.entry(holder.clone()).or_default();
            names.insert(name.clone());
        }
        self.bindings.insert(id.clone(), Binding { role, holders });
        Ok(())
    }

    /// Forgets an object.
    pub(super) fn remove(&mut self, native: Native, id: &Id) {
        match native {
            Native::Role | Native::ClusterRole => {
                self.roles.remove(id);
                if id.0.is_empty() {
                    for aggregation in self.aggregations() {
                        aggregation.members.remove(&id.1);
                    }
                }
            }
            _ => self.remove_binding(id),
        }
    }

    fn remove_binding(&mut self, id: &Id) {
        let (namespace, name) = id;
        let (Some(binding), Some(held)) = (self.bindings.remove(id), self.held.get_mut(namespace))
        else {
            return;
        };
        for holder in &binding.holders {
            let (names, holder) = held.of(holder);
            if let Some(bindings) = names.get_mut(holder) {
                bindings.remove(name);
                if bindings.is_empty() {
                    names.remove(holder);
                }
            }
        }
        if held.users.is_empty() && held.groups.is_empty() {
            self.held.remove(namespace);
        }
    }

    /// The rules that somebody has in a namespace, beside those for the whole cluster.
    pub(super) fn rules_for<'a>(
        &'a self,
        user: &'a User,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a PolicyRule> {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let scopes = std::iter::once("").chain(namespace);
        let bindings = scopes.flat_map(move |namespace| self.bindings_of(user, namespace));
        bindings.flat_map(move |binding| self.rules_of(&binding.role).unwrap_or_default())
    }

    /// The bindings of a namespace that are for somebody, each once.
    fn bindings_of(&self, user: &User, namespace: &str) -> Vec<&Binding> {
        let Some(held) = self.held.get(namespace) else {
            return Vec::new();
        };
        let own = held.users.get(&user.name).into_iter();
        let groups = user.groups.iter();
        let names = own.chain(groups.filter_map(|group| held.groups.get(group)));
        let names: BTreeSet<&String> = names.flatten().collect();
        let binding = |name: &String| self.bindings.get(&(namespace.to_owned(), name.clone()));
        names.into_iter().filter_map(binding).collect()
    }

    /// The rules of a role; nothing if there is no such role.
    pub(super) fn rules_of(&self, role: &Id) -> Option<Vec<&PolicyRule>> {
        let mut rules = Vec::new();
        let mut seen = BTreeSet::new();
        self.collect(role, &mut seen, &mut rules).then_some(rules)
    }

    /// Adds the rules of a role, if it is there. Roles may select each other, so each is taken once.
    fn collect<'a>(
        &'a self,
        id: &Id,
        seen: &mut BTreeSet<&'a str>,
        rules: &mut Vec<&'a PolicyRule>,
    ) -> bool {
        let Some(((_, name), role)) = self.roles.get_key_value(id) else {
            return false;
        };
        let Some(aggregation) = &role.aggregation else {
            rules.extend(&role.own);
            return true;
        };
        if seen.insert(name) {
            for member in &aggregation.members {
                self.collect(&(String::new(), member.clone()), seen, rules);
            }
        }
        true
    }
}

impl Held {
    fn of<'a>(
        &mut self,
        holder: &'a Holder,
    ) -> (&mut HashMap<String, BTreeSet<String>>, &'a String) {
        match holder {
            Holder::User(name) => (&mut self.users, name),
            Holder::Group(name) => (&mut self.groups, name),
        }
    }
}

impl Holder {
    /// Whom a subject of a binding in a namespace means, if it is somebody.
    fn of(subject: Subject, namespace: &str) -> Option<Self> {
        match subject.kind.as_str() {
            "User" => Some(Self::User(subject.name)),
            "Group" => Some(Self::Group(subject.name)),
            "ServiceAccount" => {
                let own = subject.namespace.unwrap_or_default();
                let namespace = if own.is_empty() { namespace } else { &own };
                let name = format!("system:serviceaccount:{namespace}:{}", subject.name);
                (!namespace.is_empty()).then_some(Self::User(name))
            }
            _ => None,
        }
    }
}

/// The role that a binding in a namespace is of.
pub(super) fn role_of(reference: &RoleRef, namespace: &str) -> Result<Id, String> {
    let RoleRef {
        api_group,
        kind,
        name,
    } = reference;
    match (api_group.as_deref(), kind.as_str()) {
        (Some(ROLE_GROUP), "ClusterRole") => Ok((String::new(), name.clone())),
        (Some(ROLE_GROUP), "Role") if !namespace.is_empty() => {
            Ok((namespace.to_owned(), name.clone()))
        }
        _ => Err(format!(
            "roleRef: {kind:?} of {api_group:?} is no role here"
        )),
    }
}

fn selects(selectors: &[LabelSelector], head: &Value) -> bool {
    selectors.iter().any(|selector| selector.selects(head))
}
