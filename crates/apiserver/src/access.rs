//! Who may do what.

pub mod delegated;
mod identity;
mod local;
mod rights;
pub mod roles;
pub mod tiers;
pub mod tokens;

use std::collections::BTreeMap;

use async_trait::async_trait;
use axum::http::request::Parts;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

pub use self::identity::user_of_certificate;
pub use self::local::TokenAccess;
pub(crate) use self::local::bearer_token;
pub use self::rights::Rights;
pub use self::roles::Roles;
pub use self::tokens::Tokens;

use crate::failure::{Failure, Reason, Result};

/// The group of those who may do everything.
pub const ADMINISTRATORS: &str = "system:masters";

/// The group of all who have shown who they are.
pub const AUTHENTICATED: &str = "system:authenticated";

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// What tells it from others of the same name, at other times; perhaps empty.
    pub uid: String,
    /// The groups that it is in.
    pub groups: Vec<String>,
    /// What else is known of it.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What somebody wants to do with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Such as `get` or `deletecollection`.
    pub verb: &'a str,
    /// The group of the resource.
    pub group: &'a str,
    /// The version of the resource.
    pub version: &'a str,
    /// The plural of the resource.
    pub resource: &'a str,
    /// The part of the object, such as `status`; empty for the whole.
    pub subresource: &'a str,
    /// The namespace, if one is named.
    pub namespace: Option<&'a str>,
    /// The object, if one is named.
    pub name: Option<&'a str>,
}

/// Decides what somebody may do. A refusal is a failure with the reason [`Reason::Forbidden`].
#[async_trait]
pub trait Authorize: Send + Sync {
    /// Whether somebody may do something with objects.
    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()>;

    /// Whether somebody may `get` a document about the API, or about the state of the server, or do something else with it.
    async fn authorize_path(&self, user: &User, verb: &str, path: &str) -> Result<()>;

    /// Whether somebody may give away the rights that a role or a binding gives which is made, or changed from what it was.
    /// The attributes are those of the request.
    async fn authorize_grant(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
        _before: Option<&Value>,
        _after: &Value,
    ) -> Result<()> {
        Err(denied(user, attributes, "no roles are kept here"))
    }

    /// The rules that say what somebody may do in a namespace.
    async fn rules(&self, _user: &User, _namespace: &str) -> Result<Vec<PolicyRule>> {
        Err(Failure::new(
            Reason::MethodNotAllowed,
            "no roles are kept here",
        ))
    }
}

/// Decides who somebody is and what that one may do.
#[async_trait]
pub trait Access: Authorize {
    /// Who sends a request.
    async fn identify(&self, request: &Parts) -> Result<User>;

    /// Whose a token is, and for whom it is; nothing if it is none that is known here.
    async fn user_of_token(&self, _token: &str) -> Result<Option<(User, Vec<String>)>> {
        Ok(None)
    }

    /// Whether everybody may know whether the server is ready. Whether it is alive, everybody may know.
    fn tells_readiness(&self) -> bool {
        true
    }
}

impl User {
    /// Who may do everything.
    pub fn administrator() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            groups: vec![ADMINISTRATORS.to_owned(), AUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Who has not shown anything.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
        }
    }

    /// What is known of it, as Kubernetes writes it.
    pub fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// Whether this one may do everything.
    pub fn is_administrator(&self) -> bool {
        self.is_in(ADMINISTRATORS)
    }

    /// Whether this one has shown who it is.
    pub fn is_authenticated(&self) -> bool {
        self.is_administrator() || self.is_in(AUTHENTICATED)
    }

    /// Whether this one is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The same, in the group of all who have shown who they are.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// It is not known who asks.
pub fn unauthorized() -> Failure {
    Failure::new(Reason::Unauthorized, "Unauthorized")
}

/// A refusal that is about an object of a resource, or about the resource if there is no name.
pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Failure {
    let mut failure = Failure::about(Reason::Forbidden, group, resource, name, "");
    let about = match (resource, group, name) {
        ("", _, _) => String::new(),
        (_, "", "") => format!("{resource} is "),
        (_, _, "") => format!("{resource}.{group} is "),
        _ => format!("{}is ", failure.message),
    };
    failure.message = format!("{about}forbidden: {why}");
    failure
}

/// The refusal of what the attributes say, in Kubernetes' words.
pub fn denied(user: &User, attributes: &Attributes<'_>, reason: &str) -> Failure {
    let Attributes {
        verb,
        group,
        resource,
        subresource,
        namespace,
        name,
        ..
    } = *attributes;
    let slash = if subresource.is_empty() { "" } else { "/" };
    let scope = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let colon = if reason.is_empty() { "" } else { ": " };
    let why = format!(
        "User {:?} cannot {verb} resource \"{resource}{slash}{subresource}\" in API group {group:?} {scope}{colon}{reason}",
        user.name
    );
    forbidden(group, resource, name.unwrap_or_default(), &why)
}

/// The refusal of a document, in Kubernetes' words.
pub fn denied_path(user: &User, verb: &str, path: &str, reason: &str) -> Failure {
    let colon = if reason.is_empty() { "" } else { ": " };
    let why = format!(
        "User {:?} cannot {verb} path {path:?}{colon}{reason}",
        user.name
    );
    forbidden("", "", "", &why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_those_of_kubernetes() {
        let user = User {
            name: "ann".to_owned(),
            ..User::default()
        };
        let attributes = Attributes {
            verb: "get",
            group: "projectcalico.org",
            version: "v3",
            resource: "networkpolicies",
            subresource: "",
            namespace: Some("shop"),
            name: Some("web"),
        };
        assert_eq!(
            denied(&user, &attributes, "").message,
            "networkpolicies.projectcalico.org \"web\" is forbidden: User \"ann\" cannot get resource \
             \"networkpolicies\" in API group \"projectcalico.org\" in the namespace \"shop\""
        );
        let attributes = Attributes {
            verb: "list",
            resource: "tiers",
            subresource: "status",
            namespace: None,
            name: None,
            ..attributes
        };
        assert_eq!(
            denied(&user, &attributes, "because").message,
            "tiers.projectcalico.org is forbidden: User \"ann\" cannot list resource \"tiers/status\" in API group \
             \"projectcalico.org\" at the cluster scope: because"
        );
        let attributes = Attributes {
            group: "",
            resource: "pods",
            subresource: "",
            namespace: Some("shop"),
            ..attributes
        };
        assert_eq!(
            denied(&user, &attributes, "").message,
            "pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" in the namespace \"shop\""
        );
        assert_eq!(
            denied_path(&user, "get", "/readyz", "").message,
            "forbidden: User \"ann\" cannot get path \"/readyz\""
        );
    }
}
