//! What it means that the API server did not do as asked.

use kube::core::Status;

use crate::source::Failure;

/// Why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused it, or could not be reached.
    #[error("{}", summary(.0))]
    Kube(#[source] Box<kube::Error>),
    /// There was no answer in time.
    #[error("no answer from the Kubernetes API server to {0} in time")]
    TimedOut(&'static str),
    /// A name that cannot be part of a path, so that there is no such object.
    #[error("no object can have this name")]
    NoSuchName,
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Kube(Box::new(error))
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        kube::Error::SerdeError(error).into()
    }
}

impl Error {
    /// What the API server answered, if it did.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Kube(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::TimedOut(_) | Self::NoSuchName => None,
        }
    }

    /// Whether the object, or its whole kind, is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NoSuchName) || self.status().is_some_and(|status| status.code == 404)
    }

    /// Whether the revision or the continuation asked for is no longer kept.
    pub fn is_gone(&self) -> bool {
        let is_gone = |status: &Status| {
            status.code == 410 || matches!(status.reason.as_str(), "Expired" | "Gone")
        };
        self.status().is_some_and(is_gone)
    }

    /// Whether the API server does not answer, or says that it cannot now.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Kube(error) => match &**error {
                kube::Error::Api(status) => matches!(status.code, 429 | 500..=599),
                kube::Error::HyperError(_)
                | kube::Error::Service(_)
                | kube::Error::ReadEvents(_) => true,
                _ => false,
            },
            Self::TimedOut(_) => true,
            Self::NoSuchName => false,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_gone() {
            Self::Gone
        } else if error.is_not_found() {
            Self::MissingKind
        } else if error.is_unavailable() {
            Self::Unreachable(error.into())
        } else {
            Self::Other(error.into())
        }
    }
}

/// One line without the debug form that kube adds.
fn summary(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(status: Value, is_expected: impl Fn(&Failure) -> bool) {
        let status: Status = serde_json::from_value(status).unwrap();
        let failure = Failure::from(Error::from(kube::Error::Api(status.boxed())));
        assert!(is_expected(&failure), "{failure:?}");
    }

    #[test]
    fn a_status_says_what_is_to_be_done() {
        for status in [
            json!({"code": 410}),
            json!({"reason": "Expired"}),
            json!({"reason": "Gone"}),
        ] {
            check(status, |failure| matches!(failure, Failure::Gone));
        }
        check(json!({"code": 404}), |failure| {
            matches!(failure, Failure::MissingKind)
        });
        for code in [429, 500, 503, 504] {
            check(json!({"code": code}), |failure| {
                matches!(failure, Failure::Unreachable(_))
            });
        }
        for code in [400, 401, 403, 422] {
            check(json!({"code": code}), |failure| {
                matches!(failure, Failure::Other(_))
            });
        }
    }
}
