//! Requests for tokens of service accounts, and questions whose a token is.

use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenReviewSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use tortie_api::{Path, Problems};

use super::body::Sent;
use super::objects::Asked;
use super::{Api, not_found, reply};
use crate::access::tokens::{Account, Claims, ISSUER, Reference, user_name};
use crate::failure::{Failure, Result};
use crate::registry::Native;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// How long a token is good, in seconds: if nothing is said, at least, and at most, as in Kubernetes.
const USUAL: i64 = 3600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// What is asked for; Kubernetes' own type does not let audiences be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wish {
    audiences: Vec<String>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundObjectReference>,
}

impl Api {
    /// A new token of an account.
    pub(super) async fn issue_token(
        &self,
        asked: Asked<'_>,
        namespace: &str,
        name: &str,
        sent: &Sent,
    ) -> Result<Response> {
        let tokens = self.tokens.as_ref().ok_or_else(not_found)?;
        let options = asked.query.write_options()?;
        let mut object = sent.object()?;
        let expected = [("kind", KIND), ("apiVersion", "authentication.k8s.io/v1")];
        for (field, expected) in expected {
            let given = object[field].as_str();
            if given.is_some_and(|given| given != expected) {
                let message = format!("{field}: must be {expected:?} here");
                return Err(Failure::bad_request(message));
            }
            object[field] = json!(expected);
        }
        let wish = match &object["spec"] {
            Value::Null => Wish::default(),
            spec => Wish::deserialize(spec)
                .map_err(|error| Failure::bad_request(format!("spec: {error}")))?,
        };
        let seconds = wish.expiration_seconds.unwrap_or(USUAL);
        check_duration(seconds)
            .map_err(|problems| Failure::invalid(GROUP, KIND, name, &problems))?;
        let found = self.service.get(asked.of, Some(namespace), name).await?;
        let mut account = Account {
            namespace: namespace.to_owned(),
            serviceaccount: reference(&found),
            pod: None,
            secret: None,
        };
        if let Some(bound) = &wish.bound_object_ref {
            self.bind(&mut account, bound).await?;
        }
        let audiences = match wish.audiences {
            none if none.is_empty() => vec![ISSUER.to_owned()],
            given => given,
        };
        let now = Timestamp::now().as_second();
        let claims = Claims {
            iss: ISSUER.to_owned(),
            sub: user_name(namespace, name),
            aud: audiences.clone(),
            exp: now.saturating_add(seconds),
            nbf: now,
            iat: now,
            jti: uuid::Uuid::new_v4().to_string(),
            account,
        };
        let end = Timestamp::from_second(claims.exp).unwrap_or(Timestamp::MAX);
        let token = if options.is_dry_run {
            String::new()
        } else {
            tokens.sign(&claims)
        };
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["creationTimestamp"] = json!(Timestamp::from_second(now).ok());
        object["spec"]["audiences"] = json!(audiences);
        object["spec"]["expirationSeconds"] = json!(seconds);
        object["status"] = json!({"token": token, "expirationTimestamp": end});
        Ok(reply::json(StatusCode::CREATED, &object))
    }

    /// Notes what a token is to end with.
    async fn bind(&self, account: &mut Account, bound: &BoundObjectReference) -> Result<()> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (kind, name) = (text(&bound.kind), text(&bound.name));
        let native = match (text(&bound.api_version).as_str(), kind.as_str()) {
            ("v1", "Pod") => Native::Pod,
            ("v1", "Secret") => Native::Secret,
            (version, _) => {
                let mut problems = Problems::default();
                let root = Path::ROOT;
                let at = root.field("spec");
                let rule = "must be a Pod or a Secret of v1: tokens cannot be bound to others here";
                let value = format!("{version} {kind}");
                problems.add(&at.field("boundObjectRef"), value, rule);
                return Err(Failure::invalid(GROUP, KIND, &name, &problems));
            }
        };
        let of = self.service.native(native).ok_or_else(not_found)?;
        let object = self
            .service
            .get(of, Some(&account.namespace), &name)
            .await?;
        let own = reference(&object);
        if bound.uid.as_ref().is_some_and(|uid| *uid != own.uid) {
            let why = format!("the UID in the bound object reference is not that of {name:?}");
            return Err(Failure::conflict(of, &name, why));
        }
        if native == Native::Secret {
            account.secret = Some(own);
            return Ok(());
        }
        let runs_as = object["spec"]["serviceAccountName"].as_str();
        if runs_as != Some(account.serviceaccount.name.as_str()) {
            let message = format!(
                "cannot bind token for serviceaccount {:?} to pod {name:?} running with different serviceaccount name",
                account.serviceaccount.name
            );
            return Err(Failure::bad_request(message));
        }
        account.pod = Some(own);
        Ok(())
    }

    /// Whose token it is that somebody asks about, as a status says it.
    pub(super) async fn review_token(&self, spec: &Value) -> Result<Value> {
        let spec = TokenReviewSpec::deserialize(spec)
            .map_err(|error| Failure::bad_request(format!("spec: {error}")))?;
        if spec.token.is_empty() {
            let message = "token is required for TokenReview in authentication";
            return Err(Failure::bad_request(message));
        }
        let wanted = spec.audiences.filter(|wanted| !wanted.is_empty());
        let wanted = wanted.unwrap_or_else(|| vec![ISSUER.to_owned()]);
        let Some((user, audiences)) = self.access.user_of_token(&spec.token).await? else {
            return Ok(json!({"authenticated": false}));
        };
        let shared: Vec<String> = wanted
            .into_iter()
            .filter(|wanted| audiences.contains(wanted))
            .collect();
        if shared.is_empty() {
            return Ok(json!({"authenticated": false}));
        }
        Ok(json!({"authenticated": true, "user": user.info(), "audiences": shared}))
    }
}

fn check_duration(seconds: i64) -> Result<(), Problems> {
    let rule = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let mut problems = Problems::default();
    let root = Path::ROOT;
    let at = root.field("spec");
    problems.add(&at.field("expirationSeconds"), seconds, rule);
    Err(problems)
}

fn reference(object: &Value) -> Reference {
    let text = |field: &str| {
        let text = object["metadata"][field].as_str();
        text.unwrap_or_default().to_owned()
    };
    Reference {
        name: text("name"),
        uid: text("uid"),
    }
}
