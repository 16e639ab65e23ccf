//! ADD: connects a container.
//!
//! ```text
//! is the datastore ready? ┐
//! has it an endpoint?     ├─ at once ─▶ addresses ─▶ interface ─▶ profile, endpoint ─▶ wait for its policy ─▶ result
//! pod, namespace          ┘
//! ```
//!
//! # Invariants
//! - On any failure the interface, the addresses and the endpoint that this container had or got are gone again.
//! - Done twice for the same container, it gives the same addresses.
//! - A virtual machine has the same addresses in each of its pods, and keeps them also where an ADD failed.

mod describe;

use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Pod;
use tortie_api::WorkloadEndpoint;
use tortie_error::Causes;

use crate::annotations::Wishes;
use crate::cluster::{self, NamespaceFacts};
use crate::config;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::ipam::{self, Wanted};
use crate::network::{self, Plan, default_routes};
use crate::result::{Address, CniResult, Interface};
use crate::{agent, gates, machine, profile, wait};

/// What is to be undone if the rest fails.
#[derive(Debug, Default)]
struct Undo {
    addresses: bool,
    interface: bool,
    endpoint: bool,
}

/// What was read before anything is done.
struct Known {
    existing: Option<WorkloadEndpoint>,
    pod: Option<Pod>,
    namespace: Option<NamespaceFacts>,
    /// The profile that the endpoint will have is there, or is Kubernetes' own.
    has_profile: bool,
}

/// The container's addresses.
struct Found {
    result: CniResult,
    /// What the container sends to the node.
    routes: Vec<IpNet>,
    /// Whether the node sends to the container, and not still to another one with the same addresses.
    is_routed: bool,
}

/// Connects the container.
pub async fn add(context: &Context<'_>) -> Result<CniResult> {
    let mut undo = Undo::default();
    match connect(context, &mut undo).await {
        Ok(result) => Ok(result),
        Err(error) => {
            undone(context, &undo).await;
            Err(error)
        }
    }
}

async fn connect(context: &Context<'_>, undo: &mut Undo) -> Result<CniResult> {
    let Context {
        config,
        request,
        identity,
        ..
    } = context;
    // What costs nothing to find out comes first.
    agent::check(config)?;
    let container = network::open_namespace(&request.namespace)?;
    let mtu = config::mtu(config)?;
    warn_of_netkit(&config.device_type);
    let is_pod = identity.pod.is_some();
    if !is_pod && config.feature_control.ip_addrs_no_ipam {
        let message = "requested feature is not supported for this runtime: feature_control.ip_addrs_no_ipam is for pods";
        return Err(Error::config(message));
    }
    if !is_pod && context.datastore.cluster.is_some() {
        let message = "Kubernetes is the datastore, which can keep the endpoints of pods only, and CNI_ARGS names no pod";
        return Err(Error::new(Code::InvalidEnvironment, message));
    }

    let known = known(context).await?;
    gates::wait(&config.readiness_gates).await?;
    if let (false, Some(existing)) = (is_pod, &known.existing)
        && existing.spec.container_id == identity.container_id
        && !existing.spec.profiles.contains(&config.name)
    {
        return join_network(context, existing.clone(), known.has_profile).await;
    }
    let wishes = wishes(context, &known)?;
    // Whoever is connected already and cannot be connected again is disconnected as a whole.
    let is_again = known.existing.as_ref().is_some_and(|existing| {
        existing.spec.container_id == identity.container_id && !existing.spec.ip_networks.is_empty()
    });
    (undo.interface, undo.endpoint) = (is_again, is_again);
    let Found {
        mut result,
        routes,
        is_routed,
    } = addresses(context, &known, &wishes, undo).await?;
    // Whatever networks they are of: nobody else is on the link.
    let addresses: Vec<IpAddr> = result.ips.iter().map(|ip| ip.address.addr()).collect();
    for ip in &mut result.ips {
        ip.address = ip.address.addr().into();
        ip.interface = Some(1);
        ip.gateway = None;
    }

    let host_name = context.host_interface();
    let plan = Plan {
        host_name: &host_name,
        inside_name: &request.interface,
        mtu,
        queues: u32::try_from(config.num_queues).unwrap_or(1).max(1),
        addresses: &addresses,
        routes: &routes,
        is_routed,
        mac: wishes.mac,
        allow_forwarding: config.container_settings.allow_ip_forwarding,
    };
    undo.interface = true;
    let mac = network::set_up(&plan, &container)?;

    let endpoint = describe::described(context, &known, &wishes, &addresses, mac)?;
    let name = endpoint.spec.endpoint.clone();
    if !known.has_profile {
        profile::create(&context.datastore.client, &config.name, is_pod).await?;
    }
    // It is removed only if it has become that of this container.
    undo.endpoint = true;
    context
        .endpoints()
        .write(endpoint, known.pod.as_ref())
        .await?;
    wait::for_policy(config, identity, &name).await;

    result.interfaces = interfaces(context, &host_name, &mac.to_string(), mtu);
    Ok(result)
}

/// Reads all that there is to know, at once.
async fn known(context: &Context<'_>) -> Result<Known> {
    let (config, identity) = (context.config, &context.identity);
    let needs_pod = context.datastore.cluster.is_some() || config.is_kubernetes_policy();
    let from_cluster = async {
        let Some(name) = identity.pod.as_ref().filter(|_| needs_pod) else {
            return Ok((None, namespace(context).await?));
        };
        let client = context
            .datastore
            .cluster(config, context.environment)
            .await?;
        let (pod, namespace) = tokio::try_join!(
            cluster::find_pod(&client, &identity.namespace, name),
            cluster::namespace(&client, &identity.namespace)
        )?;
        let pod = pod.ok_or_else(|| {
            let message = format!("there is no pod {}/{name}", identity.namespace);
            Error::new(Code::Datastore, message)
        })?;
        Ok((Some(pod), Some(namespace)))
    };
    let stored = async {
        match &context.datastore.cluster {
            Some(_) => Ok(None),
            None => {
                context
                    .endpoints()
                    .find(identity, None, &context.prefix)
                    .await
            }
        }
    };
    let profile = async {
        if config.is_kubernetes_policy() {
            return Ok(true);
        }
        profile::is_there(&context.datastore.client, &config.name).await
    };
    let ready = context.datastore.check_ready();
    let ((), (pod, namespace), stored, has_profile) =
        tokio::try_join!(ready, from_cluster, stored, profile)?;
    let existing = match &context.datastore.cluster {
        None => stored,
        Some(_) => {
            context
                .endpoints()
                .find(identity, pod.as_ref(), &context.prefix)
                .await?
        }
    };
    Ok(Known {
        existing,
        pod,
        namespace,
        has_profile,
    })
}

/// The pod's namespace, where Kubernetes can be asked about it.
pub(crate) async fn namespace(context: &Context<'_>) -> Result<Option<NamespaceFacts>> {
    if !context.knows_namespace() {
        return Ok(None);
    }
    let (datastore, environment) = (&context.datastore, context.environment);
    let client = datastore.cluster(context.config, environment).await?;
    let found = cluster::namespace(&client, &context.identity.namespace).await?;
    Ok(Some(found))
}

fn wishes(context: &Context<'_>, known: &Known) -> Result<Wishes> {
    if !context.config.is_kubernetes_policy() {
        return Ok(Wishes::default());
    }
    let pod = known.pod.as_ref();
    let pod = pod.and_then(|pod| pod.metadata.annotations.clone());
    let namespace = known.namespace.as_ref();
    let namespace = namespace.map(|namespace| namespace.annotations.clone());
    Wishes::read(
        &pod.unwrap_or_default(),
        &namespace.unwrap_or_default(),
        context.config,
    )
}

impl Found {
    fn new(result: CniResult, routes: Vec<IpNet>) -> Self {
        Self {
            result,
            routes,
            is_routed: true,
        }
    }
}

/// Finds the container's addresses.
async fn addresses(
    context: &Context<'_>,
    known: &Known,
    wishes: &Wishes,
    undo: &mut Undo,
) -> Result<Found> {
    if !context.config.is_calico_ipam() {
        let (result, routes) = ipam::delegate(context).await?;
        undo.addresses = true;
        return Ok(Found::new(result, routes));
    }
    let mut wanted = Wanted {
        namespace_labels: known.namespace.as_ref().map(|found| found.labels.clone()),
        ..Wanted::of(context)?
    };
    if let Some(pools) = &wishes.ipv4_pools {
        wanted.ipv4_pools.clone_from(pools);
    }
    if let Some(pools) = &wishes.ipv6_pools {
        wanted.ipv6_pools.clone_from(pools);
    }
    if let Some((ipv4, ipv6)) = wishes.families {
        (wanted.ipv4, wanted.ipv6) = (ipv4, ipv6);
    }
    if let Some(wished) = &wishes.addresses {
        if !wished.with_ipam {
            let result = unmanaged(&wished.addresses);
            return Ok(Found::new(result, default_routes()));
        }
        wanted.addresses.clone_from(&wished.addresses);
    }
    wanted.machine = machine::arriving(context, known.pod.as_ref()).await?;
    if let (None, Some(_), Some(existing)) = (&wanted.machine, &wishes.addresses, &known.existing) {
        // They may still be those of the pod's container before this one.
        ipam::release_addresses(context, &existing.spec.ip_networks).await?;
    }
    undo.addresses = true;
    let result = ipam::assign(context, &wanted).await?;
    Ok(Found {
        is_routed: !result.routes.is_empty(),
        ..Found::new(result, default_routes())
    })
}

/// Addresses of which nobody keeps account.
fn unmanaged(addresses: &[IpAddr]) -> CniResult {
    let ips = addresses.iter().map(|address| Address {
        interface: None,
        address: (*address).into(),
        gateway: None,
    });
    CniResult {
        ips: ips.collect(),
        ..CniResult::default()
    }
}

/// A container that is in one network already joins another: it only gets the other's profile.
async fn join_network(
    context: &Context<'_>,
    mut endpoint: WorkloadEndpoint,
    has_profile: bool,
) -> Result<CniResult> {
    let config = context.config;
    endpoint.spec.profiles.push(config.name.clone());
    let spec = endpoint.spec.clone();
    if !has_profile {
        profile::create(&context.datastore.client, &config.name, false).await?;
    }
    context.endpoints().write(endpoint, None).await?;
    let read = |network: &String| {
        let cidr = tortie_api::net::parse_cidr_or_ip(network)?;
        Some(Address {
            interface: Some(1),
            address: cidr.network(),
            gateway: None,
        })
    };
    Ok(CniResult {
        ips: spec.ip_networks.iter().filter_map(read).collect(),
        interfaces: interfaces(
            context,
            &spec.interface_name,
            &spec.mac,
            config::mtu(config)?,
        ),
        ..CniResult::default()
    })
}

fn interfaces(
    context: &Context<'_>,
    host_name: &str,
    mac: &str,
    mtu: Option<u32>,
) -> Vec<Interface> {
    let host = Interface {
        name: host_name.to_owned(),
        ..Interface::default()
    };
    let inside = Interface {
        name: context.request.interface.clone(),
        mac: mac.to_owned(),
        mtu,
        sandbox: context.request.namespace.display().to_string(),
    };
    vec![host, inside]
}

fn warn_of_netkit(device_type: &str) {
    if device_type == "netkit" {
        tracing::warn!("`device_type` netkit is not supported: a veth pair is used");
    }
}

/// Undoes what was done. What fails of it is told in the log only: the runtime will call DEL.
async fn undone(context: &Context<'_>, undo: &Undo) {
    let log = |what: &str, outcome: Result<()>| {
        if let Err(error) = outcome {
            tracing::warn!(
                what,
                error = %Causes(&error),
                "After a failed ADD not everything could be undone"
            );
        }
    };
    if undo.endpoint {
        let endpoints = context.endpoints();
        let removed = match endpoints.look(&context.identity).await {
            Ok(found) => endpoints.remove(&context.identity, found).await,
            Err(error) => Err(error),
        };
        log("endpoint", removed.map(drop));
    }
    if undo.interface {
        log(
            "interface",
            network::tear_down_host(&context.host_interface()),
        );
    }
    if undo.addresses {
        log("addresses", ipam::release(context).await);
    }
}
