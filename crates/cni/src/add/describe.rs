//! The endpoint of a container, from all that is known of it.

use std::net::IpAddr;

use tortie_api::WorkloadEndpoint;
use tortie_api::workload_endpoint::IpNat;
use tortie_kernel::link::Mac;

use super::Known;
use crate::annotations::Wishes;
use crate::context::{Context, as_network};
use crate::endpoint::{self, of_pod};
use crate::error::{Error, Result};
use crate::labels;

/// The endpoint of the container.
pub(super) fn described(
    context: &Context<'_>,
    known: &Known,
    wishes: &Wishes,
    addresses: &[IpAddr],
    mac: Mac,
) -> Result<WorkloadEndpoint> {
    let (config, identity) = (context.config, &context.identity);
    let mut endpoint = endpoint::prepared(identity, known.existing.clone())?;
    endpoint.metadata.labels.clear();
    endpoint.spec.profiles = vec![config.name.clone()];
    let of_pod = known
        .pod
        .as_ref()
        .filter(|_| config.is_kubernetes_policy())
        .and_then(|pod| of_pod(pod, &context.prefix));
    if let Some(of_pod) = of_pod {
        endpoint.metadata.labels = of_pod.metadata.labels;
        endpoint.metadata.generate_name = of_pod.metadata.generate_name;
        let spec = &mut endpoint.spec;
        spec.profiles = of_pod.spec.profiles;
        spec.ports = of_pod.spec.ports;
        spec.service_account_name = of_pod.spec.service_account_name;
        spec.qos_controls = of_pod.spec.qos_controls;
    } else if identity.pod.is_none() {
        labels::of_mesos(config, &mut endpoint.metadata);
    }
    let spec = &mut endpoint.spec;
    spec.ip_networks = addresses
        .iter()
        .map(|address| as_network(*address))
        .collect();
    spec.mac = mac.to_string();
    spec.interface_name = context.host_interface();
    spec.allow_spoofed_source_prefixes
        .clone_from(&wishes.source_prefixes);
    spec.ip_nats = floating(&wishes.floating, addresses)?;
    Ok(endpoint)
}

/// Each floating address leads to the container's address of the same family.
fn floating(floating: &[IpAddr], addresses: &[IpAddr]) -> Result<Vec<IpNat>> {
    let nat = |external: &IpAddr| {
        let of_family = |address: &&IpAddr| address.is_ipv4() == external.is_ipv4();
        let internal = addresses.iter().find(of_family).ok_or_else(|| {
            Error::config(format!(
                "the floating address {external} leads nowhere: the pod has no address of its family"
            ))
        })?;
        Ok(IpNat {
            internal_ip: internal.to_string(),
            external_ip: external.to_string(),
        })
    };
    floating.iter().map(nat).collect()
}
