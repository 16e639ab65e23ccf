//! What one request may touch, beyond what its verb allows.

use async_trait::async_trait;
use serde_json::Value;

use super::tiers::{TierAccess, has_tiers};
use super::{Attributes, Authorize, User};
use crate::failure::Result;
use crate::registry::ResourceType;
use crate::service::Guard;

/// The rights of one request.
#[derive(Clone, Copy)]
pub struct Rights<'a> {
    request: TierAccess<'a>,
    has_tiers: bool,
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
}
