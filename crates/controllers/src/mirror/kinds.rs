//! The types of Kubernetes objects that are copied, each by the view that all datastores see it through.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use tortie_api::k8s::{self, Converted, View};
use tortie_store::Resource;

use super::Mirrored;

/// Copies of network policies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policies;

/// Profiles of namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Namespaces;

/// Profiles of service accounts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceAccounts;

impl Mirrored for Policies {
    type Kube = NetworkPolicy;

    const VIEW: View = View::NetworkPolicy;

    const CONTROLLER: &'static str = "NetworkPolicy";

    fn convert(policy: &NetworkPolicy) -> Converted<Resource> {
        k8s::network_policy(policy).into_resource()
    }
}

impl Mirrored for Namespaces {
    type Kube = Namespace;

    const VIEW: View = View::Namespace;

    const CONTROLLER: &'static str = "Namespace";

    fn convert(namespace: &Namespace) -> Converted<Resource> {
        k8s::namespace(namespace).into_resource()
    }
}

impl Mirrored for ServiceAccounts {
    type Kube = ServiceAccount;

    const VIEW: View = View::ServiceAccount;

    const CONTROLLER: &'static str = "ServiceAccount";

    fn convert(account: &ServiceAccount) -> Converted<Resource> {
        k8s::service_account(account).into_resource()
    }
}
