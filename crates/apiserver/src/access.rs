//! Who may do what.

use async_trait::async_trait;
use axum::extract::Request;
use axum::http::header;
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Reason, Result};
use crate::registry::ResourceType;

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups that it is in.
    pub groups: Vec<String>,
}

/// What somebody wants to do with objects.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Such as `get` or `deletecollection`.
    pub verb: &'static str,
    /// The type.
    pub of: &'a ResourceType,
    /// The namespace, if one is named.
    pub namespace: Option<&'a str>,
    /// The object, if one is named.
    pub name: Option<&'a str>,
    /// Whether the observed state is meant.
    pub is_status: bool,
}

/// Decides who somebody is and what that one may do.
#[async_trait]
pub trait Access: Send + Sync {
    /// Who sends a request.
    fn identify(&self, request: &Request) -> Result<User>;

    /// Whether somebody may do something with objects.
    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()>;

    /// Whether somebody may read a document about the API.
    async fn authorize_path(&self, user: &User, path: &str) -> Result<()>;
}

/// Access for those who know one secret token, who may do everything: a machine of one's own.
#[derive(Clone)]
pub struct TokenAccess {
    /// Its hash, so that comparing takes the same time whatever is given.
    token: [u8; 32],
}

/// The group of those who may do everything.
pub const ADMINISTRATORS: &str = "system:masters";

impl TokenAccess {
    /// Lets in who knows this token.
    pub fn new(token: &str) -> Self {
        Self {
            token: Sha256::digest(token).into(),
        }
    }
}

#[async_trait]
impl Access for TokenAccess {
    fn identify(&self, request: &Request) -> Result<User> {
        let given = request.headers().get(header::AUTHORIZATION);
        let given = given.and_then(|given| given.to_str().ok()?.strip_prefix("Bearer "));
        let hash: Option<[u8; 32]> = given.map(|given| Sha256::digest(given.trim()).into());
        if hash != Some(self.token) {
            return Err(Failure::new(Reason::Unauthorized, "Unauthorized"));
        }
        Ok(User {
            name: "kubernetes-admin".to_owned(),
            groups: vec![ADMINISTRATORS.to_owned()],
        })
    }

    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()> {
        if user.groups.iter().any(|group| group == ADMINISTRATORS) {
            return Ok(());
        }
        let Attributes { verb, of, name, .. } = attributes;
        let what = format!(
            "is forbidden: User {:?} cannot {verb} resource {:?} in API group {:?}",
            user.name, of.plural, of.group
        );
        Err(Failure::about(
            Reason::Forbidden,
            of.group,
            of.plural,
            name.unwrap_or_default(),
            what,
        ))
    }

    async fn authorize_path(&self, _: &User, _: &str) -> Result<()> {
        Ok(())
    }
}
