//! One request, as `audit.k8s.io/v1` describes it.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tortie_serve::Peer;

use super::{Level, Log};
use crate::access::User;
use crate::path::{Objects, Target};

/// What stands for a secret.
const REDACTED: &str = "redacted";

/// Endings of names of fields and parameters whose texts are secrets.
const SECRETS: &[&str] = &["password", "token", "secret", "privatekey", "kubeconfig"];

/// The annotation in which clients keep a copy of what they applied, secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is known of a request. When it is dropped before it has an answer, that is written down.
pub struct Record {
    log: Arc<Log>,
    /// None once it is written down.
    event: Option<Value>,
    is_watch: bool,
    /// Whether the answer is one object.
    is_about_one: bool,
    /// Whether what is sent and answered is never written down.
    is_secret: bool,
}

impl Record {
    /// A request that has just come. Its verb is one of Kubernetes', or its method for documents.
    pub(crate) fn new(log: Arc<Log>, parts: &Parts, target: &Target, verb: &str) -> Self {
        let user_agent = parts.headers.get(header::USER_AGENT);
        let peer = parts.extensions.get::<Peer>();
        let address = peer.and_then(|peer| peer.address);
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": log.level().as_str(),
            "auditID": uuid::Uuid::new_v4().to_string(),
            "requestURI": uri(parts),
            "verb": verb,
            "user": {},
            "userAgent": user_agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
            "sourceIPs": address.map(|address| address.ip().to_string()).into_iter().collect::<Vec<_>>(),
            "requestReceivedTimestamp": now(),
        });
        if let Target::Objects(objects) = target {
            let mut reference = Map::new();
            for (field, text) in [
                ("resource", Some(&objects.resource)),
                ("namespace", objects.namespace.as_ref()),
                ("name", objects.name.as_ref()),
                ("apiGroup", Some(&objects.group)),
                ("apiVersion", Some(&objects.version)),
                ("subresource", objects.subresource.as_ref()),
            ] {
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    reference.insert(field.to_owned(), json!(text));
                }
            }
            event["objectRef"] = Value::Object(reference);
        }
        Self {
            log,
            event: Some(event),
            is_watch: verb == "watch",
            is_secret: matches!(target, Target::Objects(objects) if holds_secrets(objects)),
            is_about_one: matches!(target, Target::Objects(_))
                && !matches!(verb, "list" | "watch" | "deletecollection"),
        }
    }

    /// Notes who sent it.
    pub(crate) fn set_user(&mut self, user: &User) {
        self.set("user", user.info());
    }

    /// Notes what was sent, if that is wanted. What is no JSON is left out.
    pub(crate) fn set_request(&mut self, body: &[u8]) {
        if self.log.level() >= Level::Request && !body.is_empty() && !self.is_secret {
            self.set_object("requestObject", body);
        }
    }

    /// Whether what is answered is wanted.
    pub(crate) fn wants_response(&self) -> bool {
        self.is_about_one && !self.is_secret && self.log.level() >= Level::RequestResponse
    }

    /// Notes what is answered.
    pub(crate) fn set_response(&mut self, body: &[u8]) {
        self.set_object("responseObject", body);
    }

    /// Writes it down with its result.
    pub(crate) fn finish(mut self, code: StatusCode) {
        self.write(code.as_u16(), "");
    }

    fn set(&mut self, field: &str, value: Value) {
        if let Some(event) = &mut self.event {
            event[field] = value;
        }
    }

    fn set_object(&mut self, field: &str, json: &[u8]) {
        if let Ok(mut object) = serde_json::from_slice(json) {
            redact(&mut object);
            self.set(field, object);
        }
    }

    fn write(&mut self, code: u16, message: &str) {
        let Some(mut event) = self.event.take() else {
            return;
        };
        // A watch has begun to answer; when it ends is not written down.
        let stage = if self.is_watch && code < 300 {
            "ResponseStarted"
        } else {
            "ResponseComplete"
        };
        event["stage"] = json!(stage);
        event["stageTimestamp"] = json!(now());
        event["responseStatus"] = json!({"metadata": {}, "code": code});
        if !message.is_empty() {
            event["responseStatus"]["message"] = json!(message);
        }
        let decision = match code {
            401 | 403 => "forbid",
            _ => "allow",
        };
        event["annotations"] = json!({"authorization.k8s.io/decision": decision});
        self.log.add(event.to_string().into_bytes());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.write(
            StatusCode::GATEWAY_TIMEOUT.as_u16(),
            "no answer: the client left or the request took too long",
        );
    }
}

/// Whether objects are secrets or tokens as a whole.
fn holds_secrets(objects: &Objects) -> bool {
    matches!(&*objects.resource, "secrets" | "tokenreviews")
        || objects.subresource.as_deref() == Some("token")
}

/// The path and the query, without secrets.
fn uri(parts: &Parts) -> String {
    let path = parts.uri.path();
    let Some(query) = parts.uri.query() else {
        return path.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    });
    let pairs: Vec<String> = pairs.collect();
    format!("{path}?{}", pairs.join("&"))
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|secret| name.ends_with(secret))
}

/// Replaces texts that are secrets.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_copy = name == LAST_APPLIED;
                if value.is_string() && (is_copy || is_secret(name)) {
                    *value = json!(REDACTED);
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// In the microseconds that Kubernetes has here.
fn now() -> String {
    let now = Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
