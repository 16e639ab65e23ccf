//! Where the world comes from: files, or a datastore.

use std::path::PathBuf;

use anyhow::{Result, bail};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use tortie_agent::RecordingFile;
use tortie_api::Problems;
use tortie_client::Client;
use tortie_client::connect::Connection;
use tortie_convert::POLICY_KINDS;
use tortie_error::Causes;
use tortie_store::{List, Query};

use crate::object::{self, HostPod, host_addresses};
use crate::sources::Source;
use crate::world::{Builder, Listener, World};
use tortie_input as input;

/// How many objects a cluster is asked for at once.
const PAGE: u32 = 500;

/// What is to be known beside an answer, about what it was made of.
#[derive(Debug)]
pub enum Remark<'a> {
    /// An object of a file cannot be used as it is written.
    Invalid {
        /// Whether that is an error, and not only left out.
        is_error: bool,
        /// The file, the document and the object.
        place: String,
        /// What is wrong with it.
        problems: &'a Problems,
    },
    /// A part of an object of a file cannot be used.
    Unusable {
        /// Whether that is an error, and not only left out.
        is_error: bool,
        /// Where, and why not.
        text: String,
    },
    /// Something may make an answer wrong.
    Warning(String),
    /// Something was filled in.
    Note(String),
}

/// Who is told.
pub type Tell<'a> = &'a mut (dyn FnMut(Remark<'_>) + Send);

/// Makes a world of files. Objects with problems are told of; they are an error, or count as absent if that is wanted.
pub fn from_files(
    files: &Files<'_>,
    recording: Option<RecordingFile>,
    tell: Tell<'_>,
) -> Result<(World, usize)> {
    let mut builder = Builder::new(recording);
    let count = files.read(&mut builder, tell)?;
    Ok((builder.build(true)?, count))
}

/// Files that objects come from.
#[derive(Debug)]
pub struct Files<'a> {
    /// Files and folders.
    pub paths: &'a [PathBuf],
    /// Whether folders are read with all their subfolders.
    pub recursive: bool,
    /// Whether it is told what was filled in.
    pub is_verbose: bool,
    /// Whether objects with problems count as absent.
    pub ignores_invalid: bool,
}

impl Files<'_> {
    /// Takes the objects.
    pub(crate) fn read(
        &self,
        builder: &mut Builder<impl Listener>,
        tell: Tell<'_>,
    ) -> Result<usize> {
        builder.expect_files();
        let is_error = !self.ignores_invalid;
        let mut invalid = 0;
        let count = input::read_many(
            self.paths,
            self.recursive,
            |value| object::read(&value),
            |file, number, reading| {
                let place = format!("{file}: document {number}");
                let mut is_invalid = !reading.problems.is_empty();
                if is_invalid {
                    tell(Remark::Invalid {
                        is_error,
                        place: format!("{place}: {}", reading.name),
                        problems: &reading.problems,
                    });
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
                    let text = format!("{place}: {problem}");
                    tell(Remark::Unusable { is_error, text });
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
            tell(Remark::Warning(unrelated));
        }
        if self.is_verbose {
            for line in builder.filled_in() {
                tell(Remark::Note(line));
            }
        }
        Ok(count)
    }
}

/// Makes a world of a datastore, with an API server that knows of services where the datastore does not.
pub async fn from_datastore(
    connection: &Connection,
    server: Option<&kube::Client>,
    recording: Option<RecordingFile>,
    tell: Tell<'_>,
) -> Result<(World, usize)> {
    let mut builder = Builder::new(recording);
    let mut count = resources(&connection.client, &mut builder, tell).await?;
    if let Some(cluster) = &connection.cluster {
        count += services(cluster, &mut builder, tell).await?;
        count += host_pods(cluster, &mut builder, tell).await?;
    } else if let Some(server) = server {
        count += services(server, &mut builder, tell).await?;
    }
    let mut world = builder.build(false)?;
    world.ask_local_agent().await;
    Ok((world, count))
}

/// Makes a world of the resources of a datastore that is open already.
pub(crate) async fn from_client(client: &Client, tell: Tell<'_>) -> Result<World> {
    let mut builder = Builder::new(None);
    resources(client, &mut builder, tell).await?;
    builder.build(false)
}

async fn resources(client: &Client, builder: &mut Builder, tell: Tell<'_>) -> Result<usize> {
    let queries = POLICY_KINDS.map(Query::all);
    let lists = join_all(queries.iter().map(|query| client.list(query))).await;
    take_lists(lists, builder, tell)
}

/// Takes what a datastore gave; what cannot be read is told of and counts as absent.
pub(crate) fn take_lists(
    lists: Vec<tortie_store::Result<List>>,
    builder: &mut Builder<impl Listener>,
    tell: Tell<'_>,
) -> Result<usize> {
    let mut count = 0;
    for list in lists {
        let list = list?;
        for invalid in &list.invalid {
            let (key, reason) = (&invalid.key, &invalid.reason);
            let text = format!("{key} is left out: {reason}");
            tell(Remark::Warning(text));
        }
        count += list.items.len();
        for resource in &list.items {
            for problem in builder.resource(resource) {
                tell(Remark::Warning(problem.to_string()));
            }
        }
    }
    Ok(count)
}

/// Services and what is behind them, for rules that name a service.
pub(crate) async fn services(
    cluster: &kube::Client,
    builder: &mut Builder<impl Listener>,
    tell: Tell<'_>,
) -> Result<usize> {
    let effect = "rules that name a service match nothing";
    let all = ListParams::default();
    let services: Vec<Service> = or_warning(list(cluster, &all).await, "services", effect, tell);
    let slices: Vec<EndpointSlice> =
        or_warning(list(cluster, &all).await, "endpoint slices", effect, tell);
    for service in &services {
        builder.service(service);
    }
    for slice in &slices {
        builder.endpoint_slice(slice);
    }
    Ok(services.len() + slices.len())
}

/// Pods in the network of their host, which are no endpoints.
async fn host_pods(cluster: &kube::Client, builder: &mut Builder, tell: Tell<'_>) -> Result<usize> {
    let on_host = ListParams::default().fields("spec.hostNetwork=true");
    let pods = match list(cluster, &on_host).await {
        // Before Kubernetes 1.28 pods could not be picked so.
        Err(kube::Error::Api(status)) if status.code == 400 => {
            list(cluster, &ListParams::default()).await
        }
        listed => listed,
    };
    let effect = "pods in the network of their host are not known by name";
    let pods: Vec<Pod> = or_warning(pods, "pods", effect, tell);
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
fn or_warning<K>(listed: kube::Result<Vec<K>>, what: &str, effect: &str, tell: Tell<'_>) -> Vec<K> {
    match listed {
        Ok(objects) => objects,
        // What the cluster does not know, it has none of.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            let text = format!(
                "{what} cannot be read, so that {effect}: {}",
                Causes(&error)
            );
            tell(Remark::Warning(text));
            Vec::new()
        }
    }
}
