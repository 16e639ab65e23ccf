//! What is answered when a request fails: a `Status`, as Kubernetes writes it.

use serde_json::{Value, json};
use tortie_api::Problems;

use crate::registry::ResourceType;

/// [`std::result::Result`] with a [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is, which gives the status code.
    pub reason: Reason,
    /// What happened, for people.
    pub message: String,
    /// Which object it is about, and what is wrong with it. Boxed, because results are passed around far more often than
    /// they fail.
    pub details: Box<Details>,
}

/// Kinds of failure, with the words and codes of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request cannot be understood.
    BadRequest,
    /// It is not known who asks.
    Unauthorized,
    /// Who asks may not do this.
    Forbidden,
    /// There is no such object, resource or path.
    NotFound,
    /// The resource does not offer this.
    MethodNotAllowed,
    /// None of the formats that the client accepts can be served.
    NotAcceptable,
    /// An object of that name is there.
    AlreadyExists,
    /// The object has changed meanwhile, or a field belongs to somebody else.
    Conflict,
    /// The revision that was asked for is forgotten.
    Expired,
    /// The body is larger than is taken.
    TooLarge,
    /// The body is in a format that is not taken.
    UnsupportedMediaType,
    /// The object breaks rules.
    Invalid,
    /// The client asks more often than it may.
    TooManyRequests,
    /// Something went wrong here.
    Internal,
    /// The datastore does not answer.
    Unavailable,
    /// It took longer than it may.
    Timeout,
}

/// What a failure is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The name of the object.
    pub name: String,
    /// The group of the resource.
    pub group: String,
    /// The resource, or the kind where an object breaks rules.
    pub kind: String,
    /// One entry for each field that breaks a rule.
    pub causes: Vec<Cause>,
    /// Whether another write came first, so that the same request may succeed at once. Clients are not told.
    pub is_race: bool,
    /// After how many seconds another attempt makes sense.
    pub retry_after: Option<u32>,
}

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// A word for programs, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// Which field.
    pub field: String,
}

impl Reason {
    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
            Self::Timeout => 504,
        }
    }

    /// The word that clients look at.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::TooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::Internal => "InternalError",
            Self::Unavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
        }
    }
}

impl Failure {
    /// A failure that is about no object.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: Box::default(),
        }
    }

    /// A request that cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// A failure about one object of a resource.
    pub fn about(
        reason: Reason,
        group: &str,
        resource: &str,
        name: &str,
        what: impl std::fmt::Display,
    ) -> Self {
        let full = if group.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{group}")
        };
        let mut failure = Self::new(reason, format!("{full} \"{name}\" {what}"));
        name.clone_into(&mut failure.details.name);
        group.clone_into(&mut failure.details.group);
        resource.clone_into(&mut failure.details.kind);
        failure
    }

    /// There is no such object.
    pub fn not_found(of: &ResourceType, name: &str) -> Self {
        Self::about(Reason::NotFound, of.group, of.plural, name, "not found")
    }

    /// There is such an object.
    pub fn already_exists(of: &ResourceType, name: &str) -> Self {
        Self::about(
            Reason::AlreadyExists,
            of.group,
            of.plural,
            name,
            "already exists",
        )
    }

    /// An object is not as the client thinks.
    pub fn conflict(of: &ResourceType, name: &str, why: impl std::fmt::Display) -> Self {
        let mut failure = Self::about(Reason::Conflict, of.group, of.plural, name, "");
        let object = failure.message.trim_end();
        failure.message = format!("Operation cannot be fulfilled on {object}: {why}");
        failure
    }

    /// Somebody else has changed an object in between.
    pub fn modified(of: &ResourceType, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        let mut failure = Self::conflict(of, name, why);
        failure.details.is_race = true;
        failure
    }

    /// An object that breaks rules.
    pub fn invalid(group: &str, kind: &str, name: &str, problems: &Problems) -> Self {
        let causes: Vec<Cause> = problems
            .iter()
            .map(|problem| Cause {
                reason: "FieldValueInvalid",
                message: problem.to_string(),
                field: problem.field.clone(),
            })
            .collect();
        let texts: Vec<&str> = causes.iter().map(|cause| cause.message.as_str()).collect();
        let text = match texts.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("[{}]", several.join(", ")),
        };
        let what = format!("is invalid: {text}");
        let mut failure = Self::about(Reason::Invalid, group, kind, name, what);
        failure.details.causes = causes;
        failure
    }

    /// The body of the answer.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason.as_str(),
            "code": self.reason.code(),
        });
        let details = self.details.to_value();
        if details.as_object().is_some_and(|fields| !fields.is_empty()) {
            status["details"] = details;
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut value = json!({});
        for (key, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
        ] {
            if !text.is_empty() {
                value[key] = json!(text);
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_value);
            value["causes"] = causes.collect();
        }
        if let Some(seconds) = self.retry_after {
            value["retryAfterSeconds"] = json!(seconds);
        }
        value
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_object_is_described_as_kubernetes_does() {
        let failure = Failure::about(
            Reason::NotFound,
            "projectcalico.org",
            "tiers",
            "gold",
            "not found",
        );
        assert_eq!(
            failure.to_status(),
            json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "tiers.projectcalico.org \"gold\" not found",
                "reason": "NotFound",
                "details": {"name": "gold", "group": "projectcalico.org", "kind": "tiers"},
                "code": 404,
            })
        );
    }

    #[test]
    fn every_broken_rule_is_a_cause() {
        let mut problems = Problems::default();
        let spec = tortie_api::Path::ROOT;
        let spec = spec.field("spec");
        problems.add(&spec.field("order"), "x", "must be a number");
        problems.add(&spec.field("tier"), "", "must not be empty");
        let failure = Failure::invalid("projectcalico.org", "Tier", "gold", &problems);
        let status = failure.to_status();
        assert_eq!(status["code"], 422);
        assert_eq!(status["details"]["causes"][1]["field"], "spec.tier");
        assert_eq!(failure.details.causes.len(), 2);
        assert!(failure.message.contains("must be a number"));
    }
}
