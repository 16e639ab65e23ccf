//! What the API server asks, and what it is answered.

use std::collections::BTreeMap;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response as HttpResponse};
use json_patch::Patch;
use k8s_openapi::ByteString as Base64;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question of the API server about an object of type `K`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Review<K> {
    /// The kind of the object, as it stands in it.
    pub kind: String,
    /// What is to be done.
    pub operation: Operation,
    /// The object's name. Empty if the API server is to choose it.
    pub name: String,
    /// Its namespace, if its kind has them.
    pub namespace: Option<String>,
    /// The part of the object that is written, such as `status`, unless it is the whole.
    pub subresource: Option<String>,
    /// Who asks for it.
    pub user: User,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The object as it is to be. Not for deletions.
    pub object: Option<K>,
    /// The object as it is. Not for new ones.
    pub old: Option<K>,
}

/// What is to be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Somebody connects to it.
    Connect,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name.
    pub username: String,
    /// What tells it from others of the same name, at other times.
    pub uid: String,
    pub groups: Vec<String>,
    /// What else is known of it.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Why a request is refused: what the person at the other end reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    text: String,
    code: u16,
    reason: Option<&'static str>,
}

impl Refusal {
    /// The object is against the rules.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: 403,
            reason: None,
        }
    }

    /// With another code and the word for programs that goes with it, such as 405 and `MethodNotAllowed`.
    #[must_use]
    pub fn with_reason(mut self, code: u16, reason: &'static str) -> Self {
        self.code = code;
        self.reason = Some(reason);
        self
    }

    /// Fields are wrong: each with its path and what is wrong with it.
    pub fn invalid(fields: impl IntoIterator<Item = (String, String)>) -> Self {
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(path, problem)| format!("{path}: {problem}"))
            .collect();
        Self {
            text: fields.join("; "),
            code: 422,
            reason: None,
        }
    }

    pub(super) fn internal(error: impl std::fmt::Display) -> Self {
        Self {
            text: format!("the webhook failed: {error}"),
            code: 500,
            reason: None,
        }
    }
}

/// What a handler accepts.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) warnings: Vec<String>,
    pub(super) patch: Option<Patch>,
}

/// What comes over the wire.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) request: Option<Request>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) uid: String,
    #[serde(default)]
    kind: RequestKind,
    operation: Operation,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    user_info: User,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    pub(super) object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RequestKind {
    kind: String,
}

impl Request {
    /// The question with typed objects, or why they cannot be read.
    pub(super) fn review<K: DeserializeOwned>(self) -> Result<Review<K>, Refusal> {
        let typed = |object: Option<Value>, which: &str| {
            let typed = object.map(K::deserialize).transpose();
            typed.map_err(|error| Refusal {
                text: format!("{which} cannot be read: {error}"),
                code: 422,
                reason: None,
            })
        };
        Ok(Review {
            kind: self.kind.kind,
            operation: self.operation,
            name: self.name,
            namespace: self.namespace,
            subresource: self.sub_resource,
            user: self.user_info,
            dry_run: self.dry_run.unwrap_or_default(),
            object: typed(self.object, "the object")?,
            // What is stored may be from before the type was as it is: that must not keep anyone from repairing it.
            old: typed(self.old_object, "the old object").unwrap_or_default(),
        })
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Base64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Status {
    code: u16,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

impl Reply {
    pub(super) fn new(uid: String, outcome: Result<Answer, Refusal>) -> Self {
        let outcome = outcome.and_then(|answer| {
            let patch = answer
                .patch
                .map(|patch| serde_json::to_vec(&patch))
                .transpose();
            let patch = patch.map_err(Refusal::internal)?.map(Base64);
            Ok((answer.warnings, patch))
        });
        let response = match outcome {
            Ok((warnings, patch)) => Response {
                uid,
                allowed: true,
                status: None,
                patch_type: patch.is_some().then_some("JSONPatch"),
                patch,
                warnings,
            },
            Err(refusal) => Response {
                uid,
                allowed: false,
                status: Some(Status {
                    code: refusal.code,
                    message: refusal.text,
                    reason: refusal.reason,
                }),
                patch_type: None,
                patch: None,
                warnings: Vec::new(),
            },
        };
        Self {
            api_version: API_VERSION,
            kind: KIND,
            response,
        }
    }

    /// The code that is counted: that of a refusal, else 200.
    pub(super) fn code(&self) -> u16 {
        self.response
            .status
            .as_ref()
            .map_or(200, |status| status.code)
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> HttpResponse {
        match serde_json::to_vec(&self) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}
