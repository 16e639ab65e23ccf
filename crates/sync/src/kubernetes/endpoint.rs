//! Where the API server has objects of one kind, and requests for them.
//!
//! # Invariants
//! - Every request ends within [`REQUEST_TIMEOUT`].
//! - Only names that are plain path segments become part of a path.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use kube::Resource;
use kube::core::Request;

use super::failure::Error;

/// Longest time for one request and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the API server has objects of one kind.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `/api/v1`, or `/apis/` with group and version.
    base: String,
    /// The plural of the kind.
    plural: Cow<'static, str>,
    /// Whether objects have a namespace.
    is_namespaced: bool,
    /// Whether only the metadata of objects is asked for.
    pub(super) has_metadata_only: bool,
}

/// Which objects of an endpoint are meant; empty fields select all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub namespace: String,
    pub name: String,
    /// A label selector of Kubernetes.
    pub labels: String,
    /// A field selector of Kubernetes.
    pub fields: String,
}

impl Endpoint {
    /// The objects of a version, as in `/api/v1` or `/apis/apps/v1`, with the plural of their kind.
    pub fn new(
        base: impl Into<String>,
        plural: impl Into<Cow<'static, str>>,
        is_namespaced: bool,
    ) -> Self {
        Self {
            base: base.into(),
            plural: plural.into(),
            is_namespaced,
            has_metadata_only: false,
        }
    }

    /// The objects of a type, in all namespaces or in one; those of the cluster are asked for in all.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        let (group, version) = (K::group(&()), K::version(&()));
        let base = match &*group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        Self {
            has_metadata_only: K::metadata_api(),
            ..Self::new(base, K::plural(&()).into_owned(), true)
        }
    }

    /// All objects, without those of a namespace where one is given.
    pub fn collection(&self, namespace: &str) -> Result<Request, Error> {
        let Self { base, plural, .. } = self;
        Ok(Request::new(
            if self.is_namespaced && !namespace.is_empty() {
                format!("{base}/namespaces/{}/{plural}", path_segment(namespace)?)
            } else {
                self.path()
            },
        ))
    }

    /// Like [`Endpoint::collection`], for a request that needs the namespace.
    pub fn named(&self, at: &Selection) -> Result<Request, Error> {
        if self.is_namespaced && at.namespace.is_empty() {
            return Err(Error::NoSuchName);
        }
        self.collection(&at.namespace)
    }

    /// Where all objects are.
    pub fn path(&self) -> String {
        format!("{}/{}", self.base, self.plural)
    }
}

impl Selection {
    pub(super) fn label_selector(&self) -> Option<String> {
        (!self.labels.is_empty()).then(|| self.labels.clone())
    }

    pub(super) fn field_selector(&self) -> Option<String> {
        let name = (!self.name.is_empty()).then(|| format!("metadata.name={}", self.name));
        let fields = (!self.fields.is_empty()).then(|| self.fields.clone());
        let selectors: Vec<String> = name.into_iter().chain(fields).collect();
        (!selectors.is_empty()).then(|| selectors.join(","))
    }
}

/// The answer to a request; a failure if there is none for too long.
pub async fn in_time<T>(
    what: &'static str,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(Error::from),
        Err(_) => Err(Error::TimedOut(what)),
    }
}

pub fn built<T>(request: Result<T, kube::core::request::Error>) -> Result<T, Error> {
    request.map_err(|error| kube::Error::BuildRequest(error).into())
}

/// The name, if it cannot change the meaning of a path that it is part of.
pub fn path_segment(name: &str) -> Result<&str, Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if name.is_empty() || name == "." || name == ".." || !name.bytes().all(is_plain) {
        return Err(Error::NoSuchName);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        for name in ["", ".", "..", "a/b", "a?b", "a%2fb", "a b", "ä"] {
            assert!(path_segment(name).is_err(), "{name}");
        }
        assert!(path_segment("knp.default.a-b").is_ok());
    }

    #[test]
    fn a_name_is_a_field_beside_others() {
        let check = |name: &str, fields: &str, expected: Option<&str>| {
            let selection = Selection {
                name: name.to_owned(),
                fields: fields.to_owned(),
                ..Selection::default()
            };
            assert_eq!(selection.field_selector().as_deref(), expected);
        };
        check("", "", None);
        check("a", "", Some("metadata.name=a"));
        check("", "spec.nodeName=n", Some("spec.nodeName=n"));
        check(
            "a",
            "spec.nodeName=n",
            Some("metadata.name=a,spec.nodeName=n"),
        );
    }
}
