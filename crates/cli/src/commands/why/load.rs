//! Where the world comes from: files, or a datastore.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use tortie_api::Kind;
use tortie_client::Client;
use tortie_client::connect::{Backend, Connection};
use tortie_store::{List, Query};

use super::object::{self, HostPod, host_addresses};
use super::recording::Recording;
use super::sources::Source;
use super::world::{Builder, Listener, World};
use crate::args::{Global, Why};
use crate::commands::report;
use crate::commands::up::{API_SOCKET, client_through};
use crate::config;
use crate::input;

/// The kinds that have a part in policy.
const KINDS: [Kind; 14] = [
    Kind::FelixConfiguration,
    Kind::GlobalNetworkPolicy,
    Kind::GlobalNetworkSet,
    Kind::HostEndpoint,
    Kind::IpPool,
    Kind::NetworkPolicy,
    Kind::NetworkSet,
    Kind::Node,
    Kind::Profile,
    Kind::StagedGlobalNetworkPolicy,
    Kind::StagedKubernetesNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::Tier,
    Kind::WorkloadEndpoint,
];

/// How many objects a cluster is asked for at once.
const PAGE: u32 = 500;

/// Makes a world of files. Objects with problems are named on stderr; they are an error, or count as absent if that is
/// wanted.
pub(super) fn from_files(args: &Why, recording: Option<Recording>) -> Result<(World, usize)> {
    let mut builder = Builder::new(recording);
    let files = Files {
        paths: &args.filename,
        recursive: args.recursive,
        is_verbose: args.verbose,
        ignores_invalid: args.ignore_invalid,
    };
    let count = files.read(&mut builder)?;
    Ok((builder.build(true)?, count))
}

/// Files that objects come from.
pub(super) struct Files<'a> {
    pub(super) paths: &'a [PathBuf],
    pub(super) recursive: bool,
    /// Whether it is told what was filled in.
    pub(super) is_verbose: bool,
    /// Whether objects with problems count as absent.
    pub(super) ignores_invalid: bool,
}

impl Files<'_> {
    /// Takes the objects.
    pub(super) fn read(&self, builder: &mut Builder<impl Listener>) -> Result<usize> {
        let mut stderr = anstream::stderr();
        builder.expect_files();
        let word = if self.ignores_invalid {
            "warning"
        } else {
            "error"
        };
        let mut invalid = 0;
        let count = input::read_many(
            self.paths,
            self.recursive,
            |value| object::read(&value),
            |file, number, reading| {
                let place = format!("{word}: {file}: document {number}");
                let mut is_invalid = !reading.problems.is_empty();
                // Nothing is left to do if stderr does not take a warning.
                if is_invalid {
                    let place = format!("{place}: {}", reading.name);
                    let lines = report::problem_lines(&place, &reading.problems);
                    let _ = writeln!(stderr, "{lines}");
                }
                let source = Source {
                    file: file.into(),
                    number,
                };
                let problems = reading
                    .object
                    .map(|object| builder.object_of(object, source));
                for problem in problems.into_iter().flatten() {
                    is_invalid = true;
                    let _ = writeln!(stderr, "{place}: {problem}");
                }
                invalid += usize::from(is_invalid);
            },
        )?;
        if invalid > 0 && !self.ignores_invalid {
            bail!(
                "{invalid} of {count} objects cannot be used as they are written, so that an answer could be wrong; mend \
                 them, or leave them out with --ignore-invalid"
            );
        }
        builder.fill_in_profiles();
        builder.fill_in_slices();
        if let Some(unrelated) = builder.unrelated() {
            writeln!(stderr, "warning: {unrelated}")?;
        }
        if self.is_verbose {
            for line in builder.filled_in() {
                writeln!(stderr, "note: {line}")?;
            }
        }
        Ok(count)
    }
}

/// Makes a world of a datastore.
pub(super) async fn from_datastore(
    global: &Global,
    recording: Option<Recording>,
) -> Result<(World, usize)> {
    let connection = config::open(global).await?;
    let mut builder = Builder::new(recording);
    let mut count = resources(&connection.client, &mut builder).await?;
    if let Some(cluster) = &connection.cluster {
        count += services(cluster, &mut builder).await?;
        count += host_pods(cluster, &mut builder).await?;
    } else if let Some(server) = local_server(global, &connection) {
        count += services(&server, &mut builder).await?;
    }
    let mut world = builder.build(false)?;
    world.ask_local_agent().await;
    Ok((world, count))
}

/// The API server of this machine's `tortie up`, where services are that the embedded datastore keeps as they are.
pub(super) fn local_server(global: &Global, connection: &Connection) -> Option<kube::Client> {
    let is_embedded = matches!(connection.backend, Backend::Embedded);
    let socket = config::data_folder(global).join(API_SOCKET);
    (is_embedded && socket.exists()).then(|| client_through(&socket))
}

/// Makes a world of the resources of a datastore that is open already.
pub(super) async fn from_client(client: &Client) -> Result<World> {
    let mut builder = Builder::new(None);
    resources(client, &mut builder).await?;
    builder.build(false)
}

async fn resources(client: &Client, builder: &mut Builder) -> Result<usize> {
    let queries = KINDS.map(Query::all);
    let lists = join_all(queries.iter().map(|query| client.list(query))).await;
    take_lists(lists, builder)
}

/// Takes what a datastore gave; what cannot be read is named on stderr and counts as absent.
pub(super) fn take_lists(
    lists: Vec<tortie_store::Result<List>>,
    builder: &mut Builder<impl Listener>,
) -> Result<usize> {
    let mut stderr = anstream::stderr();
    let mut count = 0;
    for list in lists {
        let list = list?;
        for invalid in &list.invalid {
            let (key, reason) = (&invalid.key, &invalid.reason);
            writeln!(stderr, "warning: {key} is left out: {reason}")?;
        }
        count += list.items.len();
        for resource in &list.items {
            for problem in builder.resource(resource) {
                writeln!(stderr, "warning: {problem}")?;
            }
        }
    }
    Ok(count)
}

/// Services and what is behind them, for rules that name a service.
pub(super) async fn services(
    cluster: &kube::Client,
    builder: &mut Builder<impl Listener>,
) -> Result<usize> {
    let effect = "rules that name a service match nothing";
    let all = ListParams::default();
    let services: Vec<Service> = or_warning(list(cluster, &all).await, "services", effect)?;
    let slices: Vec<EndpointSlice> =
        or_warning(list(cluster, &all).await, "endpoint slices", effect)?;
    for service in &services {
        builder.service(service);
    }
    for slice in &slices {
        builder.endpoint_slice(slice);
    }
    Ok(services.len() + slices.len())
}

/// Pods in the network of their host, which are no endpoints.
async fn host_pods(cluster: &kube::Client, builder: &mut Builder) -> Result<usize> {
    let on_host = ListParams::default().fields("spec.hostNetwork=true");
    let pods = match list(cluster, &on_host).await {
        // Before Kubernetes 1.28 pods could not be picked so.
        Err(kube::Error::Api(status)) if status.code == 400 => {
            list(cluster, &ListParams::default()).await
        }
        listed => listed,
    };
    let effect = "pods in the network of their host are not known by name";
    let pods: Vec<Pod> = or_warning(pods, "pods", effect)?;
    let mut count = 0;
    for pod in pods {
        let spec = pod.spec.unwrap_or_default();
        let (Some(namespace), Some(name), Some(node), Some(true)) = (
            pod.metadata.namespace,
            pod.metadata.name,
            spec.node_name,
            spec.host_network,
        ) else {
            continue;
        };
        builder.host_pod(HostPod {
            name: format!("{namespace}/{name}"),
            addresses: host_addresses(pod.status.as_ref()),
            node,
        });
        count += 1;
    }
    Ok(count)
}

/// All objects of a kind.
async fn list<K>(cluster: &kube::Client, parameters: &ListParams) -> kube::Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(cluster.clone());
    let mut objects = Vec::new();
    let mut parameters = parameters.clone().limit(PAGE);
    loop {
        let page = api.list(&parameters).await?;
        objects.extend(page.items);
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters = parameters.continue_token(&token),
            _ => return Ok(objects),
        }
    }
}

/// What a cluster gave. If it did not give it, a warning says what follows from that.
fn or_warning<K>(listed: kube::Result<Vec<K>>, what: &str, effect: &str) -> Result<Vec<K>> {
    match listed {
        Ok(objects) => Ok(objects),
        // What the cluster does not know, it has none of.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => {
            let mut stderr = anstream::stderr();
            let warning = format!("{what} cannot be read, so that {effect}: {error}");
            writeln!(stderr, "warning: {warning}")?;
            Ok(Vec::new())
        }
    }
}
