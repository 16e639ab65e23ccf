//! What one request may touch, beyond what its verb allows.

use async_trait::async_trait;
use serde_json::Value;

use super::tiers::{TierAccess, has_tiers};
use super::{Attributes, Authorize, User};
use crate::failure::Result;
use crate::registry::{Content, ResourceType};
use crate::service::Guard;

/// The rights of one request.
#[derive(Clone, Copy)]
pub struct Rights<'a> {
    request: TierAccess<'a>,
    has_tiers: bool,
    is_role_or_binding: bool,
}

impl<'a> Rights<'a> {
    /// The rights of a request for objects of a type, which its sender has for the verb itself.
    pub fn new(
        authorizer: &'a dyn Authorize,
        user: &'a User,
        attributes: Attributes<'a>,
        of: &ResourceType,
    ) -> Self {
        Self {
            request: TierAccess {
                authorizer,
                user,
                attributes,
            },
            has_tiers: has_tiers(of),
            is_role_or_binding: matches!(of.content, Content::Native(native) if native.is_role_or_binding()),
        }
    }

    /// The rights by tiers, if the objects are in tiers.
    pub fn tiers(&self) -> Option<TierAccess<'a>> {
        self.has_tiers.then_some(self.request)
    }
}

#[async_trait]
impl Guard for Rights<'_> {
    async fn check(&self, object: &Value) -> Result<()> {
        match self.tiers() {
            Some(tiers) => tiers.check_policy(object).await,
            None => Ok(()),
        }
    }

    /// As Kubernetes does it: who may change an object that is there may not therefore make one that is not.
    async fn check_creation(&self, object: &Value) -> Result<()> {
        let TierAccess {
            authorizer, user, ..
        } = self.request;
        let attributes = Attributes {
            verb: "create",
            ..self.request.attributes
        };
        authorizer.authorize(user, &attributes).await?;
        let creation = Self {
            request: TierAccess {
                attributes,
                ..self.request
            },
            ..*self
        };
        creation.check(object).await
    }

    async fn check_content(&self, before: Option<&Value>, after: &Value) -> Result<()> {
        let TierAccess {
            authorizer,
            user,
            attributes,
        } = self.request;
        let is_same = || before.is_some_and(|before| grants(before) == grants(after));
        if !self.is_role_or_binding || is_same() {
            return Ok(());
        }
        authorizer
            .authorize_grant(user, &attributes, before, after)
            .await
    }
}

/// A role or binding without what only says who holds it back from being deleted, and what the server keeps of it. As in
/// Kubernetes, changing that gives away no rights.
fn grants(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "finalizers",
            "ownerReferences",
            "managedFields",
            "generation",
            "resourceVersion",
        ] {
            metadata.remove(field);
        }
    }
    object
}
