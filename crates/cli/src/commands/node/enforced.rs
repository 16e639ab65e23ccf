//! What a node must enforce, computed as its agent computes it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tortie_agent::{engine_config, host};
use tortie_config::{Config, Sources, resolve};
use tortie_dataplane::InterfaceState;
use tortie_engine::message::Encapsulation;
use tortie_engine::{Engine, Message, Update};
use tortie_rules::Dataplane as Kind;

use crate::args::Global;
use crate::commands::why::load;

/// What a node must enforce.
pub(in crate::commands) struct Enforced {
    /// The agent's parameters.
    pub(in crate::commands) config: Config,
    /// The data plane.
    pub(in crate::commands) kind: Kind,
    /// What rules depend on besides policies.
    pub(in crate::commands) rules: Arc<tortie_rules::Config>,
    /// What the engine tells the data plane.
    pub(in crate::commands) messages: Vec<Message>,
}

/// What the engine said, apart from what is for the data plane.
#[derive(Default)]
struct Said {
    messages: Vec<Message>,
    encapsulation: Encapsulation,
    is_ready: bool,
}

/// What files, or the datastore if there are none, tell a node's agent.
pub(in crate::commands) async fn load(
    files: &[PathBuf],
    recursive: bool,
    global: &Global,
) -> Result<Vec<Update>> {
    if files.is_empty() {
        load::updates_of_datastore(global).await
    } else {
        load::updates_of_files(files, recursive)
    }
}

/// Adds what the datastore says about a node's parameters to the sources.
pub(in crate::commands) fn add_parameters(updates: &[Update], node: &str, sources: &mut Sources) {
    ask(&tortie_engine::Config::for_node(node), updates, sources);
}

/// Computes what a node must enforce. What the datastore says about parameters is added to the sources.
pub(in crate::commands) fn compute(
    updates: &[Update],
    node: &str,
    mut sources: Sources,
    choose: &dyn Fn(&Config) -> Kind,
) -> Result<Enforced> {
    let mut config = resolve(&sources).config;
    // The datastore's parameters are known after the first time, and the same after the second.
    loop {
        let kind = choose(&config);
        let engine_config = engine_config(&config, node, kind);
        let said = ask(&engine_config, updates, &mut sources);
        config = resolve(&sources).config;
        let kind = choose(&config);
        if tortie_agent::engine_config(&config, node, kind) != engine_config {
            continue;
        }
        if !said.is_ready {
            bail!(
                "ClusterInformation default: datastoreReady is not true, so that agents change nothing"
            );
        }
        check(&sources)?;
        let rules = Arc::new(tortie_rules::Config::new(
            &config,
            kind,
            said.encapsulation,
        )?);
        return Ok(Enforced {
            config,
            kind,
            rules,
            messages: said.messages,
        });
    }
}

fn ask(config: &tortie_engine::Config, updates: &[Update], sources: &mut Sources) -> Said {
    let mut engine = Engine::new(config.clone());
    for update in updates {
        engine.on_update(update);
    }
    engine.on_in_sync();
    let mut said = Said::default();
    for message in engine.flush() {
        match message {
            Message::ConfigUpdate(update) => sources.datastore = update,
            Message::Encapsulation(encapsulation) => said.encapsulation = encapsulation,
            Message::InSync => said.is_ready = true,
            Message::DatastoreNotReady => said.is_ready = false,
            message => said.messages.push(message),
        }
    }
    said
}

/// Says which parameters are not used; fails where the agent would not start.
fn check(sources: &Sources) -> Result<()> {
    let mut fatal = Vec::new();
    for problem in &resolve(sources).problems {
        if problem.fatal {
            fatal.push(problem.to_string());
        } else {
            writeln!(anstream::stderr(), "warning: {problem}")?;
        }
    }
    if !fatal.is_empty() {
        bail!("the agent would not start: {}", fatal.join("; "));
    }
    Ok(())
}

/// The interfaces of this machine that the agent looks at.
pub(in crate::commands) fn interfaces(
    config: &Config,
) -> Result<BTreeMap<Arc<str>, InterfaceState>> {
    let network = host::local_network(config);
    let interfaces = network.and_then(|mut network| host::interfaces(config, &mut network));
    interfaces.context("the interfaces of this machine cannot be listed")
}

/// The nodes that are known: those that are objects, and those that endpoints are on.
pub(in crate::commands) fn nodes(updates: &[Update]) -> BTreeSet<&str> {
    let nodes = updates.iter().filter_map(|update| match update {
        Update::Node(name, Some(_)) => Some(name.as_str()),
        Update::WorkloadEndpoint(key, Some(_)) => Some(key.node.as_str()),
        Update::HostEndpoint(key, Some(_)) => Some(key.node.as_str()),
        _ => None,
    });
    nodes.collect()
}

/// Refuses a node that nothing is known of.
pub(in crate::commands) fn check_node(node: &str, updates: &[Update]) -> Result<()> {
    let known = nodes(updates);
    if known.contains(node) {
        return Ok(());
    }
    bail!("there is no node `{node}`; {}", list(&known))
}

/// `there are a, b and 3 more`
pub(in crate::commands) fn list(nodes: &BTreeSet<&str>) -> String {
    /// How many are named.
    const SHOWN: usize = 20;
    if nodes.is_empty() {
        return "none is known at all".to_owned();
    }
    let shown: Vec<&str> = nodes.iter().take(SHOWN).copied().collect();
    let more = match nodes.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("known are {}{more}", shown.join(", "))
}
