//! What a node's plan is made of, read once: from files, or from a datastore.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::Api;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tortie_api::Problems;
use tortie_bgp::inputs::{KINDS, SecretRef, SecretText};
use tortie_bgp::{Cluster, Identity, Inputs, Update};
use tortie_client::connect::Connection;
use tortie_config::from_environment;
use tortie_input::{self as input, Document};
use tortie_operator::own_namespace;
use tortie_store::Query;
use tortie_variables as variables;

use crate::args::{BgpSubject, Global};
use crate::commands::report::{causes, problem_lines_of};
use crate::commands::{agent, kubernetes};
use crate::config;

/// Where Calico's own secrets are, if nobody says.
const DEFAULT_NAMESPACE: &str = "kube-system";

/// Who this node is, as its environment tells.
pub(in crate::commands) fn identity(node: Option<&str>) -> Result<Identity> {
    let environment = from_environment(std::env::vars_os());
    let variable = |name| {
        let value = std::env::var(name).ok();
        value.filter(|value| !value.is_empty())
    };
    Ok(Identity {
        node: agent::node_name(node, &environment)?,
        router_id: variable(variables::CALICO_ROUTER_ID),
        kubernetes_node: variable(variables::CALICO_K8S_NODE_REF),
    })
}

/// Where the Secrets with passwords are.
pub(in crate::commands) fn secret_namespace(given: Option<&str>) -> String {
    let found = given.map(ToOwned::to_owned).or_else(own_namespace);
    found.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
}

/// Everything that the plan of a node is made of.
pub(in crate::commands) async fn inputs(subject: &BgpSubject, global: &Global) -> Result<Inputs> {
    let mut inputs = Inputs::new(identity(subject.node.as_deref())?);
    let mut take = |update| {
        inputs.update(update);
    };
    let read = Read::new(subject, global, &mut take).await?;
    for update in read.passwords(&inputs.secrets()).await? {
        inputs.update(update);
    }
    Ok(inputs)
}

/// Everything that the plans of all nodes are made of.
pub(super) async fn cluster(subject: &BgpSubject, global: &Global) -> Result<Cluster> {
    let mut cluster = Cluster::new(identity(subject.node.as_deref())?);
    let read = Read::new(subject, global, &mut |update| cluster.put(update)).await?;
    for update in read.passwords(&cluster.secrets()).await? {
        cluster.put(update);
    }
    Ok(cluster)
}

/// What is told of objects as they are read: of a large cluster not all are in memory at once.
type Take<'a> = dyn FnMut(Update) + 'a;

/// Where objects were read. Passwords of files are among these, and those of a cluster are asked for by name.
struct Read {
    cluster: Option<kube::Client>,
    namespace: String,
}

impl Read {
    async fn new(subject: &BgpSubject, global: &Global, take: &mut Take<'_>) -> Result<Self> {
        let namespace = secret_namespace(subject.secret_namespace.as_deref());
        let cluster = if subject.filename.is_empty() {
            let connection = config::open(global).await?;
            of_datastore(&connection, take).await?;
            connection.cluster
        } else {
            of_files(subject, &namespace)?.into_iter().for_each(take);
            None
        };
        Ok(Self { cluster, namespace })
    }

    async fn passwords(&self, wanted: &BTreeSet<SecretRef>) -> Result<Vec<Update>> {
        let Some(cluster) = &self.cluster else {
            return Ok(Vec::new());
        };
        let mut updates = Vec::new();
        let namespace = &self.namespace;
        let names: BTreeSet<&str> = wanted.iter().map(|of| of.name.as_str()).collect();
        let secrets: Api<Secret> = Api::namespaced(cluster.clone(), namespace);
        for name in names {
            match secrets.get_opt(name).await {
                Ok(found) => updates.extend(found.iter().flat_map(passwords)),
                Err(error) => {
                    let error = causes(&error.into());
                    warn(&format!(
                        "the secret {namespace}/{name} cannot be read: {error}"
                    ))?;
                }
            }
        }
        Ok(updates)
    }
}

fn of_files(subject: &BgpSubject, namespace: &str) -> Result<Vec<Update>> {
    let mut all = Vec::new();
    let mut wrong = 0;
    for document in input::read_all(&subject.filename, subject.recursive, false)? {
        let updates = match of_kubernetes(&document.value, namespace) {
            Some(updates) => updates,
            None => match document.decode(None) {
                Ok(mut resource) => {
                    resource.set_defaults();
                    // A datastore may hold it all the same, and the plan does what it can with it.
                    if let Err(problems) = resource.validate() {
                        warn(&lines_of(&document, &problems))?;
                    }
                    Ok(vec![Update::Resource(resource)])
                }
                Err(problems) => {
                    wrong += 1;
                    writeln!(anstream::stderr(), "{}", lines_of(&document, &problems))?;
                    continue;
                }
            },
        };
        all.extend(updates.with_context(|| document.name())?);
    }
    if wrong > 0 {
        bail!("{wrong} object(s) of these files are not valid");
    }
    Ok(all)
}

fn lines_of(document: &Document, problems: &Problems) -> String {
    problem_lines_of(&document.origin, &document.name(), problems)
}

/// What an object of Kubernetes says, if it is of a kind that plans are made of.
fn of_kubernetes(value: &Value, namespace: &str) -> Option<Result<Vec<Update>>> {
    let text = |field| value.get(field).and_then(Value::as_str);
    match (text("apiVersion")?, text("kind")?) {
        ("v1", "Service") => Some(typed(value).map(|service| vec![Update::Service(service)])),
        ("discovery.k8s.io/v1", "EndpointSlice") => {
            Some(typed(value).map(|slice| vec![Update::EndpointSlice(slice)]))
        }
        ("v1", "Secret") => Some(typed(value).map(|secret: Box<Secret>| {
            let of = secret.metadata.namespace.as_deref();
            let is_ours = of.is_none_or(|of| of == namespace);
            if is_ours {
                passwords(&secret)
            } else {
                Vec::new()
            }
        })),
        _ => None,
    }
}

fn typed<T: DeserializeOwned>(value: &Value) -> Result<Box<T>> {
    Ok(Box::new(T::deserialize(value)?))
}

/// All that a secret has, since nobody knows yet what of it is a password.
fn passwords(secret: &Secret) -> Vec<Update> {
    let name = secret.metadata.name.clone().unwrap_or_default();
    let data = secret.data.iter().flatten();
    let data = data.map(|(key, bytes)| (key.clone(), SecretText::new(&bytes.0)));
    let strings = secret.string_data.iter().flatten();
    let strings = strings.map(|(key, text)| (key.clone(), SecretText::new(text.as_bytes())));
    let all = data.chain(strings).map(|(key, text)| {
        let name = name.clone();
        Update::Secret(SecretRef { name, key }, Some(text))
    });
    all.collect()
}

async fn of_datastore(connection: &Connection, take: &mut Take<'_>) -> Result<()> {
    for kind in KINDS {
        let query = Query::all(kind);
        let mut parts = connection.client.list_in_parts(&query);
        while let Some(list) = parts.try_next().await? {
            for invalid in &list.invalid {
                let (key, reason) = (&invalid.key, &invalid.reason);
                warn(&format!("{key} cannot be read: {reason}"))?;
            }
            list.items
                .into_iter()
                .map(Update::Resource)
                .for_each(&mut *take);
        }
    }
    let Some(cluster) = &connection.cluster else {
        return Ok(());
    };
    match kubernetes::all::<Service>(cluster).await {
        Ok(services) => services
            .into_iter()
            .map(|one| Update::Service(Box::new(one)))
            .for_each(&mut *take),
        Err(error) => warn_absent("services", &error)?,
    }
    match kubernetes::all::<EndpointSlice>(cluster).await {
        Ok(slices) => slices
            .into_iter()
            .map(|one| Update::EndpointSlice(Box::new(one)))
            .for_each(&mut *take),
        Err(error) => warn_absent("endpoint slices", &error)?,
    }
    Ok(())
}

fn warn_absent(what: &str, error: &anyhow::Error) -> Result<()> {
    let error = causes(error);
    warn(&format!(
        "{what} cannot be read, and count as absent: {error}"
    ))
}

fn warn(text: &str) -> Result<()> {
    Ok(writeln!(anstream::stderr(), "warning: {text}")?)
}
