//! Access on a machine of one's own: who somebody is. What others than administrators may do, their roles say.

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::header;
use axum::http::request::Parts;
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tortie_serve::{Authorities, Peer};

use super::tokens::{ISSUER, Tokens};
use super::{Access, Attributes, Authorize, Roles, User, unauthorized, user_of_certificate};
use crate::failure::Result;

/// Access for those who know one secret token, and for processes of root or of the user who runs the server that come
/// through its socket: they may do everything. Tokens of service accounts, and certificates of an authority, if there is one, name others, who may do
/// everything if they are in the group for that, else what their roles allow.
#[derive(Clone)]
pub struct TokenAccess {
    /// Its hash, so that comparing takes the same time whatever is given.
    token: [u8; 32],
    authorities: Option<Arc<Authorities>>,
    tokens: Option<Arc<Tokens>>,
    roles: Arc<Roles>,
    own_uid: u32,
}

impl TokenAccess {
    /// Lets in who knows this token. Others have rights by these roles.
    pub fn new(token: &str, roles: Arc<Roles>) -> Self {
        Self {
            token: Sha256::digest(token).into(),
            authorities: None,
            tokens: None,
            roles,
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// Lets in those as well for whose certificates these authorities vouch.
    #[must_use]
    pub fn with_authorities(mut self, authorities: Arc<Authorities>) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// Lets in service accounts as well.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<Tokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    fn user_of_peer(&self, peer: &Peer) -> Option<User> {
        if peer.uid.is_some_and(|uid| uid == 0 || uid == self.own_uid) {
            return Some(User::administrator());
        }
        let authorities = self.authorities.as_ref()?;
        let certificate = peer.certificate()?;
        if !peer.is_verified_by(authorities) {
            return None;
        }
        user_of_certificate(certificate).map(User::authenticated)
    }
}

#[async_trait]
impl Authorize for TokenAccess {
    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()> {
        self.roles.authorize(user, attributes).await
    }

    async fn authorize_path(&self, user: &User, verb: &str, path: &str) -> Result<()> {
        self.roles.authorize_path(user, verb, path).await
    }

    async fn authorize_grant(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
        before: Option<&Value>,
        after: &Value,
    ) -> Result<()> {
        let roles = &self.roles;
        roles.authorize_grant(user, attributes, before, after).await
    }

    async fn rules(&self, user: &User, namespace: &str) -> Result<Vec<PolicyRule>> {
        self.roles.rules(user, namespace).await
    }
}

#[async_trait]
impl Access for TokenAccess {
    async fn identify(&self, request: &Parts) -> Result<User> {
        if let Some(given) = bearer_token(request) {
            let found = self.user_of_token(given).await?;
            let is_for_us = |audience: &String| audience == ISSUER;
            return match found {
                Some((user, audiences)) if audiences.iter().any(is_for_us) => Ok(user),
                _ => Err(unauthorized()),
            };
        }
        let peer = request.extensions.get::<Peer>();
        peer.and_then(|peer| self.user_of_peer(peer))
            .ok_or_else(unauthorized)
    }

    async fn user_of_token(&self, token: &str) -> Result<Option<(User, Vec<String>)>> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        if hash == self.token {
            return Ok(Some((User::administrator(), vec![ISSUER.to_owned()])));
        }
        match &self.tokens {
            Some(tokens) => tokens.read(token, Timestamp::now().as_second()).await,
            None => Ok(None),
        }
    }
}

/// The token that a request carries.
pub(crate) fn bearer_token(request: &Parts) -> Option<&str> {
    let given = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = given.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}
