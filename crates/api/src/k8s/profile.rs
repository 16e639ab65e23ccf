//! Namespaces and service accounts as profiles, and the profile that always exists.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Converted, derived_metadata, derived_uid};
use crate::kinds::Profile;
use crate::kinds::profile::ProfileSpec;
use crate::kinds::rule::{Action, Rule};
use crate::meta::Metadata;
use crate::problem::Problems;

/// The name of the profile that allows everything and is there without being stored.
pub const DEFAULT_ALLOW_PROFILE: &str = "projectcalico-default-allow";

const NAMESPACE_PROFILE: &str = "kns.";
const SERVICE_ACCOUNT_PROFILE: &str = "ksa.";
/// What the labels that an endpoint has from its namespace start with.
pub const NAMESPACE_LABEL: &str = "pcns.";
/// What the labels that an endpoint has from its service account start with.
pub const SERVICE_ACCOUNT_LABEL: &str = "pcsa.";
const NAME_LABEL: &str = "projectcalico.org/name";

/// The object that a profile is derived from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileOwner {
    /// Nothing: the profile that always exists.
    DefaultAllow,
    /// A namespace.
    Namespace {
        /// Its name.
        name: String,
    },
    /// A service account.
    ServiceAccount {
        /// The namespace it is in.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// The profile that passes on the labels of a namespace and allows everything that no policy covers.
pub fn namespace(namespace: &Namespace) -> Converted<Profile> {
    Converted::from_fn(|problems| {
        let meta = &namespace.metadata;
        let name = meta.name.clone().unwrap_or_default();
        let mut profile = with_labels(
            meta,
            NAMESPACE_LABEL,
            &ProfileOwner::Namespace { name },
            problems,
        )?;
        allow_all(&mut profile.spec);
        Some(profile)
    })
}

/// The profile that passes on the labels of a service account; it has no rules.
pub fn service_account(account: &ServiceAccount) -> Converted<Profile> {
    Converted::from_fn(|problems| {
        let meta = &account.metadata;
        let owner = ProfileOwner::ServiceAccount {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        };
        with_labels(meta, SERVICE_ACCOUNT_LABEL, &owner, problems)
    })
}

/// The profile [`DEFAULT_ALLOW_PROFILE`].
pub fn default_allow_profile() -> Profile {
    let metadata = Metadata {
        name: DEFAULT_ALLOW_PROFILE.into(),
        ..Metadata::default()
    };
    let mut profile = Profile {
        metadata,
        ..Profile::default()
    };
    allow_all(&mut profile.spec);
    profile
}

fn allow_all(spec: &mut ProfileSpec) {
    let allow = Rule {
        action: Action::Allow,
        ..Rule::default()
    };
    spec.ingress = vec![allow.clone()];
    spec.egress = vec![allow];
}

fn with_labels(
    meta: &ObjectMeta,
    prefix: &str,
    owner: &ProfileOwner,
    problems: &mut Problems,
) -> Option<Profile> {
    // Unlike other objects, these are never without a UID.
    derived_uid(meta.uid.as_deref().unwrap_or_default(), problems)?;
    let metadata = derived_metadata(meta, owner.profile_name(), problems)?;
    let labels = meta.labels.iter().flatten();
    let mut labels_to_apply: std::collections::BTreeMap<_, _> = labels
        .map(|(key, value)| (format!("{prefix}{key}"), value.clone()))
        .collect();
    labels_to_apply.insert(
        format!("{prefix}{NAME_LABEL}"),
        meta.name.clone().unwrap_or_default(),
    );
    let spec = ProfileSpec {
        labels_to_apply,
        ..ProfileSpec::default()
    };
    Some(Profile {
        metadata,
        spec,
        ..Profile::default()
    })
}

impl ProfileOwner {
    /// The name of the profile.
    pub fn profile_name(&self) -> String {
        match self {
            Self::DefaultAllow => DEFAULT_ALLOW_PROFILE.to_owned(),
            Self::Namespace { name } => format!("{NAMESPACE_PROFILE}{name}"),
            Self::ServiceAccount { namespace, name } => {
                let namespace = if namespace.is_empty() {
                    "default"
                } else {
                    namespace
                };
                format!("{SERVICE_ACCOUNT_PROFILE}{namespace}.{name}")
            }
        }
    }

    /// Whose profile has this name; `None` if no profile of Kubernetes can have it.
    pub fn of_profile(name: &str) -> Option<Self> {
        if name == DEFAULT_ALLOW_PROFILE {
            return Some(Self::DefaultAllow);
        }
        if let Some(name) = name.strip_prefix(NAMESPACE_PROFILE) {
            return Some(Self::Namespace {
                name: name.to_owned(),
            });
        }
        // The name of an account may have dots, that of a namespace may not.
        let (namespace, name) = name
            .strip_prefix(SERVICE_ACCOUNT_PROFILE)?
            .split_once('.')?;
        Some(Self::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_can_be_read_back_from_the_name_of_a_profile() {
        let account = ProfileOwner::ServiceAccount {
            namespace: "ns".into(),
            name: "sa.x".into(),
        };
        for owner in [
            ProfileOwner::DefaultAllow,
            ProfileOwner::Namespace { name: "a".into() },
            account,
        ] {
            assert_eq!(ProfileOwner::of_profile(&owner.profile_name()), Some(owner));
        }
        assert_eq!(ProfileOwner::of_profile("ksa.x"), None);
        assert_eq!(ProfileOwner::of_profile("other"), None);
    }
}
