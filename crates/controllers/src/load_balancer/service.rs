//! Services and namespaces, trimmed to what decides about addresses.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tortie_api::kube_controllers_configuration::AssignIps;
use tortie_operator::trimmed;

/// The class of services that are ours whoever else gives addresses.
const CLASS: &str = "calico";

/// Names of handles are names of objects in Kubernetes.
const MAX_HANDLE: usize = 253;

pub(super) const POOLS_V4: &str = "projectcalico.org/ipv4pools";
pub(super) const POOLS_V6: &str = "projectcalico.org/ipv6pools";
pub(super) const ADDRESSES: &str = "projectcalico.org/loadBalancerIPs";

#[derive(Debug, Clone, Default, Deserialize)]
pub struct CachedService {
    /// What it is called, and its annotations.
    pub metadata: ObjectMeta,
    /// What it asks for.
    #[serde(default)]
    pub spec: ServiceSpec,
    /// What it has.
    #[serde(default)]
    pub status: ServiceStatus,
}

/// What a service asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// `LoadBalancer`, or something else.
    pub r#type: String,
    /// Who should give it an address.
    pub load_balancer_class: Option<String>,
    /// The address that it should have.
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: String,
    /// The IP versions that it has.
    pub ip_families: Vec<String>,
    /// Its address within the cluster.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
}

/// What a service has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// How it is reached from outside.
    pub load_balancer: LoadBalancer,
}

/// How a service is reached from outside.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// One entry per address or name.
    pub ingress: Vec<Ingress>,
}

/// One way to reach a service from outside. What others wrote beside the address is kept as it is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Ingress {
    /// The address, if it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// All else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

trimmed! {
    /// A namespace, with its labels.
    pub struct CachedNamespace: core::Namespace {}
}

impl CachedService {
    /// Drops what is not needed.
    pub(super) fn trim(&mut self) {
        let kept = self.metadata.annotations.take().map(|mut annotations| {
            annotations.retain(|name, _| [POOLS_V4, POOLS_V6, ADDRESSES].contains(&name.as_str()));
            annotations
        });
        self.metadata = ObjectMeta {
            name: self.metadata.name.take(),
            namespace: self.metadata.namespace.take(),
            uid: self.metadata.uid.take(),
            resource_version: self.metadata.resource_version.take(),
            annotations: kept,
            ..ObjectMeta::default()
        };
    }

    /// Whether it is for us to give it an address.
    pub(super) fn is_managed(&self, assign: AssignIps) -> bool {
        if self.spec.r#type != "LoadBalancer" {
            return false;
        }
        let class = self.spec.load_balancer_class.as_deref();
        match (assign, class) {
            (_, Some(class)) => class == CLASS,
            (AssignIps::AllServices, None) => true,
            (AssignIps::RequestedServicesOnly, None) => {
                let annotations = [POOLS_V4, POOLS_V6, ADDRESSES];
                !self.spec.load_balancer_ip.is_empty()
                    || annotations
                        .into_iter()
                        .any(|name| self.annotation(name).is_some())
            }
        }
    }

    /// An annotation, if it says anything.
    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref()?;
        let value = annotations.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// The handle of its addresses: another service of the same name has another.
    pub(super) fn handle(&self) -> String {
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        let metadata = &self.metadata;
        let identity = format!(
            "{}-{}-{}",
            text(metadata.name.as_ref()),
            text(metadata.namespace.as_ref()),
            text(metadata.uid.as_ref())
        );
        let digest = Sha256::digest(identity.to_lowercase());
        let mut handle = format!(
            "lb-{}",
            URL_SAFE_NO_PAD.encode(digest).replace(['-', '_', '.'], "")
        );
        handle.truncate(MAX_HANDLE);
        handle
    }

    /// Which IP versions it has. API servers that know only one do not tell.
    pub(super) fn families(&self) -> (bool, bool) {
        let families = &self.spec.ip_families;
        if families.is_empty() {
            let is_v6 = self.spec.cluster_ip.contains(':');
            return (!is_v6, is_v6);
        }
        let has = |name: &str| families.iter().any(|family| family == name);
        (has("IPv4"), has("IPv6"))
    }
}

impl kube::Resource for CachedService {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "Service".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "services".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
