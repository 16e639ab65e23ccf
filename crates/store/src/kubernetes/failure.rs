//! What an API server's refusals mean to the user of a datastore.

use kube::core::Status;
use tortie_api::{Path, Problems};
use tortie_sync::kubernetes::Error as Failure;

use crate::cause::plainly;
use crate::error::Error;
use crate::key::Key;

/// What the API server says where the UID is not the one in the request.
const OTHER_UID: &str = "UID in precondition";

/// What a refusal means to the user of a datastore.
pub(super) trait Refusal {
    /// Whether there is such an object already.
    fn is_already_exists(&self) -> bool;

    /// Whether the object of this name is another one than that which is meant.
    fn is_other_object(&self) -> bool;

    /// Whether credentials or permissions are missing.
    fn is_unauthorized(&self) -> bool;

    /// The error to report for an operation on an object.
    fn into_error(self, key: &Key) -> Error;
}

impl Refusal for Failure {
    fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "AlreadyExists")
    }

    fn is_other_object(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 409 && status.message.contains(OTHER_UID))
    }

    fn is_unauthorized(&self) -> bool {
        self.status()
            .is_some_and(|status| matches!(status.code, 401 | 403))
            || matches!(self, Self::Kube(error) if matches!(**error, kube::Error::Auth(_)))
    }

    fn into_error(self, key: &Key) -> Error {
        let unavailable = |message| Error::Unavailable {
            message,
            source: None,
        };
        if self.is_unauthorized() {
            return Error::Unauthorized(self.to_string());
        }
        if self.is_gone() {
            return Error::Gone(self.to_string());
        }
        let is_unavailable = self.is_unavailable();
        match self {
            Self::NoSuchName => Error::NotFound(key.clone()),
            Self::TimedOut(_) => unavailable(self.to_string()),
            Self::Kube(error) => match *error {
                kube::Error::Api(status) if is_unavailable => {
                    unavailable(format!("{key}: Kubernetes answered: {}", status.message))
                }
                kube::Error::Api(status) => of_status(*status, key),
                error if is_unavailable => unreachable("", &error),
                error => Error::other(format!("{key}: the request to Kubernetes failed"), error),
            },
        }
    }
}

/// The error for a server that does not answer, at an address if that is known.
pub(super) fn unreachable(address: &str, error: &kube::Error) -> Error {
    let at = if address.is_empty() { "" } else { " at " };
    let cause = plainly(error);
    Error::Unavailable {
        message: format!("the Kubernetes API server{at}{address} cannot be reached: {cause}"),
        source: None,
    }
}

fn of_status(status: Status, key: &Key) -> Error {
    match (status.code, status.reason.as_str()) {
        (_, "AlreadyExists") => Error::AlreadyExists(key.clone()),
        (404, _) => Error::NotFound(key.clone()),
        // The object was deleted and made anew: the one that is meant is gone.
        (409, _) if status.message.contains(OTHER_UID) => Error::NotFound(key.clone()),
        (409, _) => Error::Conflict(key.clone()),
        (422, _) => of_invalid(status, key),
        _ => Error::other(
            format!("{key}: Kubernetes refused the request: {}", status.message),
            kube::Error::Api(status.boxed()),
        ),
    }
}

/// A refused object; a wrong UID or revision in it means that it was not based on what is stored.
fn of_invalid(status: Status, key: &Key) -> Error {
    let causes = status
        .details
        .map(|details| details.causes)
        .unwrap_or_default();
    let is_about = |field: &str| causes.iter().any(|cause| cause.field == field);
    let only = ["metadata.uid", "metadata.resourceVersion"];
    if !causes.is_empty()
        && causes
            .iter()
            .all(|cause| only.contains(&cause.field.as_str()))
    {
        let is_other_object = is_about("metadata.uid");
        return if is_other_object {
            Error::NotFound(key.clone())
        } else {
            Error::Conflict(key.clone())
        };
    }
    let mut problems = Problems::default();
    for cause in &causes {
        problems.add_missing(&Path::ROOT, format!("{}: {}", cause.field, cause.message));
    }
    if problems.is_empty() {
        problems.add_missing(&Path::ROOT, status.message);
    }
    Error::Invalid {
        key: key.clone(),
        problems,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tortie_api::Kind;

    use super::*;

    #[track_caller]
    fn check(status: Value, is_expected: impl Fn(&Error) -> bool) {
        let status: Status = serde_json::from_value(status).unwrap();
        let failure = Failure::from(kube::Error::Api(status.boxed()));
        let error = failure.into_error(&Key::global(Kind::Tier, "a"));
        assert!(is_expected(&error), "{error:?}");
    }

    fn invalid(fields: &[&str]) -> Value {
        let causes: Vec<_> = fields
            .iter()
            .map(|field| json!({"reason": "FieldValueInvalid", "field": field, "message": "m"}))
            .collect();
        json!({"code": 422, "reason": "Invalid", "details": {"causes": causes}})
    }

    #[test]
    fn lost_races_are_told_apart_from_objects_that_are_gone() {
        check(json!({"code": 409, "reason": "AlreadyExists"}), |e| {
            matches!(e, Error::AlreadyExists(_))
        });
        check(json!({"code": 409, "reason": "Conflict"}), |e| {
            matches!(e, Error::Conflict(_))
        });
        let uid = "Precondition failed: UID in precondition: a, UID in object meta: b";
        check(json!({"code": 409, "message": uid}), |e| {
            matches!(e, Error::NotFound(_))
        });
        check(json!({"code": 404, "reason": "NotFound"}), |e| {
            matches!(e, Error::NotFound(_))
        });
        check(invalid(&["metadata.resourceVersion"]), |e| {
            matches!(e, Error::Conflict(_))
        });
        check(
            invalid(&["metadata.uid", "metadata.resourceVersion"]),
            |e| matches!(e, Error::NotFound(_)),
        );
        check(invalid(&["metadata.uid", "spec.a"]), |e| {
            matches!(e, Error::Invalid { .. })
        });
    }

    #[test]
    fn an_expired_revision_is_gone() {
        check(json!({"code": 410, "reason": "Expired"}), |e| {
            matches!(e, Error::Gone(_))
        });
        check(json!({"code": 410, "reason": "Gone"}), |e| {
            matches!(e, Error::Gone(_))
        });
    }

    #[test]
    fn only_failures_of_the_server_are_worth_a_retry() {
        for code in [429, 500, 503, 504] {
            check(json!({"code": code}), Error::is_retryable);
        }
        check(json!({"code": 400}), |e| !e.is_retryable());
        check(json!({"code": 401}), |e| {
            matches!(e, Error::Unauthorized(_))
        });
        check(json!({"code": 403}), |e| {
            matches!(e, Error::Unauthorized(_))
        });
    }
}
