//! Namespaces as profiles named `kns.<namespace>`, service accounts as profiles named `ksa.<namespace>.<account>`.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use tortie_api::k8s::{self, Converted, ProfileOwner};
use tortie_operator::ObjectKey;
use tortie_store::{Kind, Resource};

use crate::mirror::Mirrored;

/// Profiles of namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Namespaces;

/// Profiles of service accounts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceAccounts;

impl Mirrored for Namespaces {
    type Kube = Namespace;

    const KIND: Kind = Kind::Profile;

    const CONTROLLER: &'static str = "Namespace";

    fn convert(namespace: &Namespace) -> Converted<Resource> {
        resource(k8s::namespace(namespace))
    }

    fn copy_of(namespace: &ObjectKey) -> ObjectKey {
        let name = namespace.name.to_string();
        ObjectKey::cluster(ProfileOwner::Namespace { name }.profile_name())
    }

    fn owner_of(copy: &ObjectKey) -> Option<ObjectKey> {
        match ProfileOwner::of_profile(&copy.name)? {
            ProfileOwner::Namespace { name } => Some(ObjectKey::cluster(name)),
            _ => None,
        }
    }
}

impl Mirrored for ServiceAccounts {
    type Kube = ServiceAccount;

    const KIND: Kind = Kind::Profile;

    const CONTROLLER: &'static str = "ServiceAccount";

    fn convert(account: &ServiceAccount) -> Converted<Resource> {
        resource(k8s::service_account(account))
    }

    fn copy_of(account: &ObjectKey) -> ObjectKey {
        let owner = ProfileOwner::ServiceAccount {
            namespace: account.namespace.as_deref().unwrap_or_default().to_owned(),
            name: account.name.to_string(),
        };
        ObjectKey::cluster(owner.profile_name())
    }

    fn owner_of(copy: &ObjectKey) -> Option<ObjectKey> {
        match ProfileOwner::of_profile(&copy.name)? {
            ProfileOwner::ServiceAccount { namespace, name } => {
                Some(ObjectKey::new(namespace, name))
            }
            _ => None,
        }
    }
}

fn resource(converted: Converted<tortie_api::Profile>) -> Converted<Resource> {
    Converted {
        resource: converted.resource.map(Resource::from),
        problems: converted.problems,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_kinds_of_profiles_are_told_apart() {
        let namespace = ObjectKey::cluster("shop");
        let account = ObjectKey::new("shop", "robot.v2");
        let (of_namespace, of_account) = (
            Namespaces::copy_of(&namespace),
            ServiceAccounts::copy_of(&account),
        );
        assert_eq!(of_namespace.to_string(), "kns.shop");
        assert_eq!(of_account.to_string(), "ksa.shop.robot.v2");
        assert_eq!(Namespaces::owner_of(&of_namespace), Some(namespace));
        assert_eq!(Namespaces::owner_of(&of_account), None);
        assert_eq!(ServiceAccounts::owner_of(&of_account), Some(account));
        assert_eq!(ServiceAccounts::owner_of(&of_namespace), None);
        for own in ["mine", "projectcalico-default-allow"] {
            assert_eq!(Namespaces::owner_of(&ObjectKey::cluster(own)), None);
            assert_eq!(ServiceAccounts::owner_of(&ObjectKey::cluster(own)), None);
        }
    }
}
