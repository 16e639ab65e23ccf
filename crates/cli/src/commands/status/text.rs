//! What was found, for people: one screen.

use std::fmt::Write as _;

use tortie_agent::{NodeStatus, Problem};
use tortie_api::Kind;

use super::Found;
use super::cluster::Cluster;

/// Width of the first column.
const LABEL: usize = 11;

/// How many nodes and pools are named.
const SHOWN: usize = 5;

/// Lines with a word at their start.
#[derive(Default)]
struct Screen(String);

impl Screen {
    fn line(&mut self, label: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{label:LABEL$} {text}");
    }

    fn list(&mut self, label: &str, lines: impl IntoIterator<Item = String>) {
        for (index, line) in lines.into_iter().enumerate() {
            self.line(if index == 0 { label } else { "" }, &line);
        }
    }
}

pub(super) fn render(found: &Found) -> String {
    let mut screen = Screen::default();
    screen.line("Datastore", &found.datastore);
    if let Some(cluster) = &found.cluster {
        cluster_lines(cluster, &mut screen);
    }
    match (&found.node, &found.agent) {
        (Some(node), Some(agent)) => screen.line("Node", &format!("{node}: {}", enforced(agent))),
        (Some(node), None) => screen.line("Node", node),
        (None, _) => {}
    }
    screen.line("Versions", &versions(found));
    screen.list("Not asked", found.not_asked.iter().cloned());
    screen.list("Notes", found.notes.iter().cloned());
    screen.list("Problems", found.problems.iter().map(one));
    let verdict = match found.problems.len() {
        0 => "Well".to_owned(),
        1 => "Not well: 1 problem".to_owned(),
        more => format!("Not well: {more} problems"),
    };
    format!("{}\n{verdict}\n", screen.0)
}

fn cluster_lines(cluster: &Cluster, screen: &mut Screen) {
    let ready = if cluster.ready { "ready" } else { "not ready" };
    let guid = match cluster.guid.as_str() {
        "" => ", not initialised yet".to_owned(),
        guid => format!(", {guid}"),
    };
    screen.line("Cluster", &format!("{ready}{guid}"));
    let mut nodes: Vec<String> = cluster.nodes.iter().take(SHOWN).cloned().collect();
    more(cluster.nodes.len(), &mut nodes);
    let names = if nodes.is_empty() { "" } else { ": " };
    let nodes = format!("{}{names}{}", cluster.nodes.len(), nodes.join(", "));
    screen.line("Nodes", &nodes);
    let count = |kind| cluster.count(kind);
    let endpoints = format!(
        "{} of workloads, {} of hosts",
        count(Kind::WorkloadEndpoint),
        count(Kind::HostEndpoint)
    );
    screen.line("Endpoints", &endpoints);
    let policies = count(Kind::NetworkPolicy) + count(Kind::GlobalNetworkPolicy);
    let policies = format!("{policies} in {} tiers", count(Kind::Tier));
    screen.line("Policies", &policies);
    let pools = cluster.pools.iter().take(SHOWN).map(|pool| {
        let (name, cidr) = (&pool.name, &pool.cidr);
        format!(
            "{name}, {cidr}: {} of {} in use",
            pool.in_use, pool.capacity
        )
    });
    let mut pools: Vec<String> = pools.collect();
    more(cluster.pools.len(), &mut pools);
    screen.list("Addresses", pools);
}

/// Says how many are not named.
fn more(all: usize, named: &mut Vec<String>) {
    if all > named.len() {
        named.push(format!("and {} more", all - named.len()));
    }
}

/// What the agent says that is no problem.
fn enforced(agent: &NodeStatus) -> String {
    let mut parts = vec![if agent.ready { "ready" } else { "not ready" }.to_owned()];
    let dataplane = match (&*agent.dataplane, &agent.iptables_backend) {
        ("", _) => None,
        (name, Some(backend)) => Some(format!("{name} ({backend})")),
        (name, None) => Some(name.to_owned()),
    };
    parts.extend(dataplane);
    parts.push(
        match (&*agent.datastore.state, &agent.datastore.in_sync_since) {
            ("inSync", Some(since)) => format!("in sync since {since}"),
            ("reading", _) => "reading the datastore".to_owned(),
            (_, _) => "waiting for the datastore".to_owned(),
        },
    );
    parts.push(match &agent.last_apply {
        Some(at) => format!("last apply {at}"),
        None => "nothing applied yet".to_owned(),
    });
    parts.push(format!(
        "{} endpoints, {} policies",
        agent.endpoints, agent.policies
    ));
    parts.join(", ")
}

fn versions(found: &Found) -> String {
    let mut parts = vec![format!("tortie {}", found.version)];
    if let Some(agent) = &found.agent {
        let versions = &agent.versions;
        parts.push(format!("agent {}", versions.tortie));
        parts.push(format!("Linux {}", versions.kernel));
    }
    let cluster = found.cluster.iter().map(|cluster| &cluster.version);
    let cluster = cluster.filter(|version| !version.is_empty());
    parts.extend(cluster.map(|version| format!("cluster {version}")));
    parts.join(", ")
}

fn one(problem: &Problem) -> String {
    let Problem { what, name, reason } = problem;
    if name.is_empty() {
        format!("{what}: {reason}")
    } else {
        format!("{what} {name}: {reason}")
    }
}
