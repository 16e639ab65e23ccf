//! Tokens of service accounts: who holds one is that account until the token ends or the account is deleted.
//!
//! A token is a JSON Web Token that this server signs and reads itself (HMAC with SHA-256): nobody else could tell whether the
//! account is still there.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::User;
use crate::failure::Result;

/// Whom tokens are from and, unless others are named, for.
pub const ISSUER: &str = "https://kubernetes.default.svc";

/// The groups of service accounts: all of them, and before the name of a namespace those in it.
const ACCOUNTS: &str = "system:serviceaccounts";

/// How far clocks may differ.
const LEEWAY: i64 = 10;

/// Signs and reads tokens.
pub struct Tokens {
    key: hmac::Key,
    objects: Arc<dyn Existence>,
}

/// Tells whether objects are there that tokens are bound to.
#[async_trait]
pub trait Existence: Send + Sync {
    /// Whether an object of the core group with this UID is there and not about to go.
    async fn is_there(&self, kind: &str, namespace: &str, reference: &Reference) -> Result<bool>;
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who made it.
    pub iss: String,
    /// The account's name as a user.
    pub sub: String,
    /// For whom it is.
    pub aud: Vec<String>,
    /// When it ends, in seconds.
    pub exp: i64,
    /// From when it is good.
    pub nbf: i64,
    /// When it was made.
    pub iat: i64,
    /// What tells it from others.
    pub jti: String,
    /// Whose it is.
    #[serde(rename = "kubernetes.io")]
    pub account: Account,
}

/// An account, and what else must be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The namespace of all of them.
    pub namespace: String,
    /// The account itself.
    pub serviceaccount: Reference,
    /// The pod that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The secret with which it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
}

/// One very object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub name: String,
    /// Which one of that name.
    pub uid: String,
}

impl Tokens {
    /// Signs with a secret.
    pub fn new(secret: &[u8], objects: Arc<dyn Existence>) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            objects,
        }
    }

    /// The token that says this.
    pub fn sign(&self, claims: &Claims) -> String {
        let header = json!({"alg": "HS256", "typ": "JWT"}).to_string();
        let claims = json!(claims).to_string();
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = hmac::sign(&self.key, signed.as_bytes());
        format!("{signed}.{}", encode(signature))
    }

    /// Whose token it is, and for whom it is; nothing if it is none of ours, has ended, or its account is gone.
    pub async fn read(&self, token: &str, now: i64) -> Result<Option<(User, Vec<String>)>> {
        let Some(claims) = self.claims(token) else {
            return Ok(None);
        };
        if claims.iss != ISSUER || claims.exp <= now || claims.nbf > now + LEEWAY {
            return Ok(None);
        }
        let Account {
            namespace,
            serviceaccount,
            pod,
            secret,
        } = &claims.account;
        let bound = [
            ("ServiceAccount", Some(serviceaccount)),
            ("Pod", pod.as_ref()),
            ("Secret", secret.as_ref()),
        ];
        for (kind, reference) in bound {
            if let Some(reference) = reference
                && !self.objects.is_there(kind, namespace, reference).await?
            {
                return Ok(None);
            }
        }
        let mut user = user(namespace, serviceaccount);
        let mut extra = |name: &str, value: String| {
            let name = format!("authentication.kubernetes.io/{name}");
            user.extra.insert(name, vec![value]);
        };
        extra("credential-id", format!("JTI={}", claims.jti));
        if let Some(pod) = pod {
            extra("pod-name", pod.name.clone());
            extra("pod-uid", pod.uid.clone());
        }
        Ok(Some((user, claims.aud)))
    }

    /// What a token says, if it is one that was signed here.
    fn claims(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (_, claims) = signed.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Before anything of it is read, in a time that tells nothing; the header is part of what is signed.
        hmac::verify(&self.key, signed.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

/// A service account as a user.
pub fn user(namespace: &str, account: &Reference) -> User {
    let user = User {
        name: user_name(namespace, &account.name),
        uid: account.uid.clone(),
        groups: vec![ACCOUNTS.to_owned(), format!("{ACCOUNTS}:{namespace}")],
        ..User::default()
    };
    user.authenticated()
}

/// The name of a service account as a user.
pub fn user_name(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct All(bool);

    #[async_trait]
    impl Existence for All {
        async fn is_there(&self, _: &str, _: &str, _: &Reference) -> Result<bool> {
            Ok(self.0)
        }
    }

    fn claims() -> Claims {
        Claims {
            iss: ISSUER.to_owned(),
            sub: user_name("shop", "web"),
            aud: vec![ISSUER.to_owned()],
            exp: 100,
            nbf: 10,
            iat: 10,
            jti: "one".to_owned(),
            account: Account {
                namespace: "shop".to_owned(),
                serviceaccount: Reference {
                    name: "web".to_owned(),
                    uid: "u".to_owned(),
                },
                pod: None,
                secret: None,
            },
        }
    }

    #[tokio::test]
    async fn a_token_is_its_account_until_it_ends() {
        let tokens = Tokens::new(b"secret", Arc::new(All(true)));
        let token = tokens.sign(&claims());
        let (user, audiences) = tokens.read(&token, 50).await.unwrap().unwrap();
        assert_eq!(user.name, "system:serviceaccount:shop:web");
        assert!(user.is_in("system:serviceaccounts:shop") && user.is_authenticated());
        assert_eq!(audiences, [ISSUER]);
        for now in [-1, 100, 101] {
            assert_eq!(tokens.read(&token, now).await.unwrap(), None, "{now}");
        }
        let gone = Tokens::new(b"secret", Arc::new(All(false)));
        assert_eq!(gone.read(&token, 50).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_not_signed_here_is_no_token() {
        let tokens = Tokens::new(b"secret", Arc::new(All(true)));
        let token = tokens.sign(&claims());
        let others = Tokens::new(b"other", Arc::new(All(true))).sign(&claims());
        let parts: Vec<&str> = token.split('.').collect();
        let none = encode(r#"{"alg":"none"}"#);
        let later = Claims {
            exp: i64::MAX,
            ..claims()
        };
        let later = encode(json!(later).to_string());
        for wrong in [
            others,
            String::new(),
            "..".to_owned(),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{none}.{}.", parts[1]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{}.{later}.{}", parts[0], parts[2]),
        ] {
            assert_eq!(tokens.read(&wrong, 50).await.unwrap(), None, "{wrong}");
        }
    }
}
