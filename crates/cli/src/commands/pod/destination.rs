//! Whom a connection goes to.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::ListParams;

use super::object::Objects;
use crate::args::{PodName, PodProtocol};

/// What services start with.
const SERVICE: &str = "svc/";

/// Whom a connection goes to.
pub(super) struct Destination {
    /// As `tortie why` knows it.
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

/// Finds whom `TO:PORT` means.
pub(super) async fn find(
    objects: &Objects<'_>,
    asked: &str,
    namespace: &str,
    protocol: PodProtocol,
) -> Result<Destination> {
    let wrong = || format!("`{asked}` has no port: write TO:PORT, such as web:80");
    let (who, port) = asked.rsplit_once(':').with_context(wrong)?;
    let port: u16 = port.parse().ok().with_context(wrong)?;
    let bare = who.strip_prefix('[').and_then(|who| who.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(who).parse::<IpAddr>() {
        return Ok(Destination {
            name: address.to_string(),
            address: SocketAddr::new(address, port),
        });
    }
    let parse = |text: &str| -> Result<(String, String)> {
        let name: PodName = text.parse().map_err(anyhow::Error::msg)?;
        let namespace = name.namespace.unwrap_or_else(|| namespace.to_owned());
        Ok((namespace, name.name))
    };
    if let Some(service) = who.strip_prefix(SERVICE) {
        let (namespace, name) = parse(service)?;
        return of_service(objects, &namespace, &name, port, protocol).await;
    }
    let (namespace, name) = parse(who)?;
    let pod = objects.pods(&namespace).get_opt(&name).await?;
    let pod = pod.with_context(|| {
        format!("there is no pod {namespace}/{name}; services are named `{SERVICE}{namespace}/{name}:{port}`")
    })?;
    of_pod(&pod, port)
}

fn of_pod(pod: &Pod, port: u16) -> Result<Destination> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let address = address(pod).with_context(|| format!("pod {namespace}/{name} has no address"))?;
    Ok(Destination {
        name: format!("{namespace}/{name}"),
        address: SocketAddr::new(address, port),
    })
}

fn address(pod: &Pod) -> Option<IpAddr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

/// A pod that a service selects: nothing here translates the addresses of services.
async fn of_service(
    objects: &Objects<'_>,
    namespace: &str,
    name: &str,
    port: u16,
    protocol: PodProtocol,
) -> Result<Destination> {
    let services: Api<Service> = Api::namespaced(objects.0.clone(), namespace);
    let service = services.get_opt(name).await?;
    let service = service.with_context(|| format!("there is no service {namespace}/{name}"))?;
    let spec = service.spec.unwrap_or_default();
    let selector: Vec<String> = spec
        .selector
        .iter()
        .flatten()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if selector.is_empty() {
        bail!("service {namespace}/{name} selects no pods");
    }
    let ports = spec.ports.unwrap_or_default();
    let is_meant = |found: &&ServicePort| {
        let spoken = found.protocol.as_deref().unwrap_or("TCP");
        found.port == i32::from(port) && spoken == protocol.upper()
    };
    let found = ports.iter().find(is_meant).with_context(|| {
        let upper = protocol.upper();
        format!("service {namespace}/{name} has no port {port} for {upper}")
    })?;
    let selector = ListParams::default().labels(&selector.join(","));
    let pods = objects.pods(namespace).list(&selector).await?;
    let pod = pods.items.iter().find(|pod| address(pod).is_some());
    let pod = pod.with_context(|| {
        format!("service {namespace}/{name} selects no pod that has an address")
    })?;
    of_pod(pod, target(found, pod)?)
}

/// The pod's port behind a service's.
fn target(service: &ServicePort, pod: &Pod) -> Result<u16> {
    let number = match &service.target_port {
        None => service.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let found = ports.find(|port| port.name.as_ref() == Some(name));
            found.map_or(0, |port| port.container_port)
        }
    };
    match u16::try_from(number) {
        Ok(number @ 1..) => Ok(number),
        _ => bail!("the service's target port leads to no port of its pod"),
    }
}
