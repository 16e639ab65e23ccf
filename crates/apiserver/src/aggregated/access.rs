//! Who may do what, as the API server of Kubernetes decides it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::request::Parts;
use tortie_serve::Peer;

use super::configuration::Configuration;
use super::read_only;
use crate::access::delegated::{SubjectAccess, Tokens};
use crate::access::{
    Access, Attributes, Authorize, User, bearer_token, unauthorized, user_of_certificate,
};
use crate::failure::Result;

/// How long answers are remembered.
const MEMORY: Duration = Duration::from_secs(10);

/// Takes the word of the front proxy for who asks, of an authority for who shows a certificate, and of the API server for
/// who has a token and for who may do what.
pub(super) struct DelegatedAccess {
    configuration: Arc<Configuration>,
    tokens: Tokens,
    subjects: SubjectAccess,
}

impl DelegatedAccess {
    pub(super) fn new(client: kube::Client, configuration: Arc<Configuration>) -> Self {
        Self {
            configuration,
            tokens: Tokens::new(client.clone(), MEMORY),
            subjects: SubjectAccess::new(client, MEMORY),
        }
    }

    /// Who sent a request, by the certificate of its connection.
    fn user_of_peer(&self, peer: &Peer, request: &Parts) -> Option<User> {
        let named = user_of_certificate(peer.certificate()?)?;
        let proxy = self.configuration.front_proxy();
        // What the headers say counts only where the front proxy's own authorities vouch for who sent them.
        if proxy.may_be(&named.name)
            && peer.is_verified_by(&self.configuration.front_proxies)
            && let Some(user) = proxy.user(&request.headers)
        {
            return Some(user);
        }
        peer.is_verified_by(&self.configuration.clients)
            .then_some(named)
    }
}

#[async_trait]
impl Access for DelegatedAccess {
    async fn identify(&self, request: &Parts) -> Result<User> {
        let peer = request.extensions.get::<Peer>();
        if let Some(user) = peer.and_then(|peer| self.user_of_peer(peer, request)) {
            return Ok(user.authenticated());
        }
        if let Some(token) = bearer_token(request) {
            let user = self.tokens.user_of(token).await?;
            return user.map(User::authenticated).ok_or_else(unauthorized);
        }
        // A certificate that is worth nothing is not the same as none.
        if peer.is_some_and(|peer| peer.certificate().is_some()) {
            return Err(unauthorized());
        }
        Ok(User::anonymous())
    }

    fn tells_readiness(&self) -> bool {
        false
    }
}

#[async_trait]
impl Authorize for DelegatedAccess {
    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()> {
        self.subjects.authorize(user, attributes).await?;
        read_only::check(attributes)
    }

    async fn authorize_path(&self, user: &User, verb: &str, path: &str) -> Result<()> {
        self.subjects.authorize_path(user, verb, path).await
    }
}
