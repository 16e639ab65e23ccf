//! Kubernetes' network policies, as policies named `knp.default.<name>` in the same namespace.

use k8s_openapi::api::networking::v1::NetworkPolicy as KubePolicy;
use tortie_api::k8s::{self, Converted};
use tortie_operator::ObjectKey;
use tortie_store::{Kind, Resource};

use crate::mirror::Mirrored;

/// Keeps them apart from policies that people wrote.
const PREFIX: &str = "knp.default.";

/// Copies of network policies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policies;

impl Mirrored for Policies {
    type Kube = KubePolicy;

    const KIND: Kind = Kind::NetworkPolicy;

    const CONTROLLER: &'static str = "NetworkPolicy";

    fn convert(policy: &KubePolicy) -> Converted<Resource> {
        let converted = k8s::network_policy(policy);
        Converted {
            resource: converted.resource.map(Resource::from),
            problems: converted.problems,
        }
    }

    fn copy_of(policy: &ObjectKey) -> ObjectKey {
        ObjectKey {
            namespace: policy.namespace.clone(),
            name: format!("{PREFIX}{}", policy.name).into(),
        }
    }

    fn owner_of(copy: &ObjectKey) -> Option<ObjectKey> {
        Some(ObjectKey {
            namespace: copy.namespace.clone(),
            name: copy.name.strip_prefix(PREFIX)?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_told_from_other_policies_by_its_name() {
        let policy = ObjectKey::new("shop", "web");
        let copy = Policies::copy_of(&policy);
        assert_eq!(copy.to_string(), "shop/knp.default.web");
        assert_eq!(Policies::owner_of(&copy), Some(policy));
        assert_eq!(
            Policies::owner_of(&ObjectKey::new("shop", "default.web")),
            None
        );
    }
}
