//! Access on a machine of one's own: administrators, and nobody else.

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::header;
use axum::http::request::Parts;
use sha2::{Digest as _, Sha256};
use tortie_operator::tls::{Authorities, Peer};

use super::{
    Access, Attributes, Authorize, MONITORING, User, denied, denied_path, unauthorized,
    user_of_certificate,
};
use crate::failure::Result;

/// Access for those who know one secret token, and for processes of root or of the user who runs the server that come
/// through its socket: they may do everything. Certificates of an authority, if there is one, name others, who may do
/// everything if they are in the group for that, else only read documents about the API.
#[derive(Clone)]
pub struct TokenAccess {
    /// Its hash, so that comparing takes the same time whatever is given.
    token: [u8; 32],
    authorities: Option<Arc<Authorities>>,
    own_uid: u32,
}

impl TokenAccess {
    /// Lets in who knows this token.
    pub fn new(token: &str) -> Self {
        Self {
            token: Sha256::digest(token).into(),
            authorities: None,
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// Lets in those as well for whose certificates these authorities vouch.
    #[must_use]
    pub fn with_authorities(mut self, authorities: Arc<Authorities>) -> Self {
        self.authorities = Some(authorities);
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
        if user.is_administrator() {
            return Ok(());
        }
        Err(denied(user, attributes, ""))
    }

    /// Documents about the API are for all who are known; figures tell what others do.
    async fn authorize_path(&self, user: &User, path: &str) -> Result<()> {
        if path == "/metrics" && !user.is_administrator() && !user.is_in(MONITORING) {
            return Err(denied_path(user, path, ""));
        }
        Ok(())
    }
}

#[async_trait]
impl Access for TokenAccess {
    async fn identify(&self, request: &Parts) -> Result<User> {
        if let Some(given) = bearer_token(request) {
            let hash: [u8; 32] = Sha256::digest(given).into();
            return if hash == self.token {
                Ok(User::administrator())
            } else {
                Err(unauthorized())
            };
        }
        let peer = request.extensions.get::<Peer>();
        peer.and_then(|peer| self.user_of_peer(peer))
            .ok_or_else(unauthorized)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::ADMINISTRATORS;

    #[tokio::test]
    async fn figures_are_for_administrators_and_monitoring() {
        let access = TokenAccess::new("secret");
        let user = |group: &str| User {
            name: "ann".to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        };
        let refused = access.authorize_path(&user("developers"), "/metrics").await;
        assert_eq!(
            refused.unwrap_err().message,
            "forbidden: User \"ann\" cannot get path \"/metrics\""
        );
        for (group, path) in [
            (ADMINISTRATORS, "/metrics"),
            (MONITORING, "/metrics"),
            ("developers", "/apis"),
        ] {
            assert!(access.authorize_path(&user(group), path).await.is_ok());
        }
    }
}
