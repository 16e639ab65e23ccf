//! Who is to be connected: the pod or container, and the names that follow from it.

use tortie_api::names::{DEFAULT_VETH_PREFIX, EndpointIds, veth_name};
use tortie_store::{Key, Kind};

use crate::error::{Code, Error, Result};
use crate::request::Request;

/// The namespace of containers that are not pods.
const DEFAULT_NAMESPACE: &str = "default";

/// Letters of the container's name in the name of its interface.
const CONTAINER_LETTERS: usize = 11;

/// The interface by which Kubernetes' pods are known.
const USUAL_INTERFACE: &str = "eth0";

/// Who is to be connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub node: String,
    pub namespace: String,
    /// The pod, if it is one.
    pub pod: Option<String>,
    pub container_id: String,
    /// The interface in the container.
    pub interface: String,
}

impl Identity {
    /// Who a request is about.
    pub fn of(request: &Request, node: &str) -> Self {
        let arguments = &request.arguments;
        let pod = arguments.get("K8S_POD_NAME");
        let namespace = arguments.get("K8S_POD_NAMESPACE");
        let (namespace, pod) = if let (Some(namespace), Some(pod)) = (namespace, pod) {
            (namespace, Some(pod.to_owned()))
        } else {
            let namespace = arguments.get("CNI_TEST_NAMESPACE");
            (namespace.unwrap_or(DEFAULT_NAMESPACE), None)
        };
        Self {
            node: node.to_owned(),
            namespace: namespace.to_owned(),
            pod,
            container_id: request.container_id.clone(),
            interface: request.interface.clone(),
        }
    }

    /// What started the container.
    pub fn orchestrator(&self) -> &'static str {
        if self.pod.is_some() { "k8s" } else { "cni" }
    }

    /// The name of the interface on the node's side. Names of pods' interfaces start with `prefix`.
    pub fn host_interface(&self, prefix: &str) -> String {
        if let Some(pod) = &self.pod {
            return veth_name(&self.namespace, pod, prefix);
        }
        let letters: String = self.container_id.chars().take(CONTAINER_LETTERS).collect();
        format!("{DEFAULT_VETH_PREFIX}{letters}")
    }

    pub fn endpoint_key(&self) -> Result<Key> {
        self.key_with(&self.interface)
    }

    /// The keys under which the endpoint may be already: a container has one endpoint only, whatever its interface was
    /// called when it was made.
    pub fn possible_keys(&self) -> Result<Vec<Key>> {
        let mut keys = vec![self.endpoint_key()?];
        if self.interface != USUAL_INTERFACE {
            keys.push(self.key_with(USUAL_INTERFACE)?);
        }
        Ok(keys)
    }

    fn key_with(&self, interface: &str) -> Result<Key> {
        let ids = EndpointIds {
            node: self.node.clone(),
            orchestrator: self.orchestrator().to_owned(),
            pod: self.pod.clone().unwrap_or_default(),
            container_id: self.container_id.clone(),
            endpoint: interface.to_owned(),
            ..EndpointIds::default()
        };
        let name = ids.name().map_err(Error::of(
            Code::InvalidEnvironment,
            "the endpoint cannot be named",
        ))?;
        Ok(Key::namespaced(
            Kind::WorkloadEndpoint,
            &self.namespace,
            name,
        ))
    }

    /// The workload, as agents know it.
    pub fn workload(&self) -> String {
        let third = self.pod.as_ref().unwrap_or(&self.container_id);
        format!("{}/{third}", self.namespace)
    }

    /// The handle of the container's addresses.
    pub fn handle(&self, network: &str) -> String {
        format!("{network}.{}", self.container_id)
    }

    /// The handle that early versions used.
    pub fn old_handle(&self) -> String {
        match &self.pod {
            Some(pod) => format!("{}.{pod}", self.namespace),
            None => self.container_id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Arguments, Command};

    fn identity(arguments: &str) -> Identity {
        let request = Request {
            command: Command::Add,
            container_id: "0123456789abcdef".to_owned(),
            namespace: "/n".into(),
            interface: "eth0".to_owned(),
            arguments: Arguments::parse(arguments).expect("arguments"),
            path: Vec::new(),
        };
        Identity::of(&request, "node-1")
    }

    #[test]
    fn pods_are_named_by_namespace_and_name() {
        let pod = identity("K8S_POD_NAME=web-1;K8S_POD_NAMESPACE=shop");
        let key = pod.endpoint_key().expect("a key");
        assert_eq!(key.name, "node--1-k8s-web--1-eth0");
        assert_eq!(key.namespace, "shop");
        assert_eq!(
            pod.host_interface("cali"),
            veth_name("shop", "web-1", "cali")
        );
        assert_eq!(pod.workload(), "shop/web-1");
        assert_eq!(pod.handle("net"), "net.0123456789abcdef");
        assert_eq!(pod.old_handle(), "shop.web-1");
    }

    #[test]
    fn others_are_named_by_container() {
        let container = identity("K8S_POD_NAME=web-1");
        let key = container.endpoint_key().expect("a key");
        assert_eq!(key.name, "node--1-cni-0123456789abcdef-eth0");
        assert_eq!(key.namespace, "default");
        assert_eq!(container.host_interface("tap"), "cali0123456789a");
        assert_eq!(identity("CNI_TEST_NAMESPACE=x").namespace, "x");
    }
}
