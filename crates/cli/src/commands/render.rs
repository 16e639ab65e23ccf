//! `tortie render`: what would be programmed on a node, without touching its kernel.

mod cost;
mod iptables;
mod nftables;
mod routes;
mod values;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use tortie_agent::host;
use tortie_config::{Config, IptablesBackend, NftablesMode, Sources, from_environment};
use tortie_dataplane::iptables::set_commands;
use tortie_dataplane::{Batch, DesiredState, InterfaceState, Members};
use tortie_engine::Update;
use tortie_engine::message::Member;
use tortie_rules::{Dataplane as Kind, IpVersion};

use super::agent;
use super::node::enforced::{self, Enforced};
use crate::args::{self, Global, Render, RenderOutput};

pub(super) async fn run(args: &Render, global: &Global) -> Result<ExitCode> {
    let subject = &args.subject;
    let updates = enforced::load(&subject.filename, subject.recursive, global).await?;
    let Some(node) = &subject.node else {
        let known = enforced::nodes(&updates);
        bail!("say which node with --node; {}", enforced::list(&known));
    };
    enforced::check_node(node, &updates)?;
    let sources = Sources {
        environment: from_environment(std::env::vars_os()),
        file: match &subject.parameter_file {
            Some(path) => agent::parameter_file(path)?,
            None => BTreeMap::new(),
        },
        ..Sources::default()
    };
    let enforced = enforced::compute(&updates, node, sources, &|config| kind(args, config))?;
    let versions = versions(args, &enforced.config, node)?;
    let interfaces = interfaces(args, &enforced.config)?;
    warn_of_unknown_interfaces(node, &updates, &interfaces)?;
    let text = render(args, node, enforced, &versions, interfaces)?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn render(
    args: &Render,
    node: &str,
    enforced: Enforced,
    versions: &[IpVersion],
    interfaces: BTreeMap<Arc<str>, InterfaceState>,
) -> Result<String> {
    let Enforced {
        config,
        kind,
        rules,
        messages,
    } = enforced;
    let mut world = DesiredState::new(&rules, kind, versions, node);
    // Which iptables `auto` means is known on the node alone; what the one that is kept by nftables needs harms no other.
    if config.tables.iptables_backend != IptablesBackend::Legacy {
        world.hide_behind_header();
    }
    world.set_interfaces(interfaces);
    for message in messages {
        world.on_message(message);
    }
    if args.cost {
        return Ok(cost::table(&world)?);
    }
    let batches = world.take_everything().into_iter();
    let batches: Vec<(IpVersion, Batch)> = batches
        .map(|(version, batch)| (version, in_order(batch, version)))
        .collect();
    let mut text = String::new();
    match args.output {
        RenderOutput::Nftables => {
            for (version, batch) in &batches {
                nftables::write(batch, *version, &mut text);
            }
        }
        RenderOutput::Iptables => {
            for (version, batch) in &batches {
                iptables::write(batch, *version, config.tables.chain_insert_mode, &mut text);
            }
        }
        RenderOutput::Ipset => {
            for (version, batch) in &batches {
                text += &set_commands(batch, *version, config.ip_sets.max_size);
            }
        }
        RenderOutput::Json => {
            let routes = routes::wanted(&world, &config.routes, versions);
            let value = values::Rendered::new(node, kind, &batches, routes);
            text = serde_json::to_string_pretty(&value)?;
            text.push('\n');
        }
    }
    Ok(text)
}

/// The data plane: the one that the form is for; for values the one that the parameters ask for.
fn kind(args: &Render, config: &Config) -> Kind {
    match (args.output, config.tables.nftables_mode) {
        (RenderOutput::Iptables | RenderOutput::Ipset, _)
        | (RenderOutput::Json, NftablesMode::Disabled) => Kind::Iptables,
        (RenderOutput::Nftables | RenderOutput::Json, _) => Kind::Nftables,
    }
}

fn versions(args: &Render, config: &Config, node: &str) -> Result<Vec<IpVersion>> {
    match (args.ip, args.output) {
        (Some(args::IpVersion::V6), _) if !config.ipv6 => {
            bail!("Ipv6Support is false for node `{node}`: nothing is programmed for IPv6")
        }
        (Some(args::IpVersion::V6), _) => Ok(vec![IpVersion::V6]),
        (Some(args::IpVersion::V4), _) | (None, RenderOutput::Iptables | RenderOutput::Ipset) => {
            Ok(vec![IpVersion::V4])
        }
        (None, _) => Ok(host::versions(config)),
    }
}

fn interfaces(args: &Render, config: &Config) -> Result<BTreeMap<Arc<str>, InterfaceState>> {
    if args.local_interfaces {
        return enforced::interfaces(config);
    }
    let given = args.interface.iter().zip(1..);
    let interfaces = given.map(|(interface, index)| {
        let state = InterfaceState {
            index,
            is_up: true,
            addresses: interface.addresses.clone(),
        };
        (Arc::from(interface.name.as_str()), state)
    });
    Ok(interfaces.collect())
}

/// A host endpoint that names no interface has one only where its address is.
fn warn_of_unknown_interfaces(
    node: &str,
    updates: &[Update],
    interfaces: &BTreeMap<Arc<str>, InterfaceState>,
) -> Result<()> {
    let mut last = BTreeMap::new();
    for update in updates {
        if let Update::HostEndpoint(key, endpoint) = update
            && key.node == node
        {
            last.insert(&key.name, endpoint.as_deref());
        }
    }
    for (name, endpoint) in last {
        let Some(endpoint) = endpoint.filter(|endpoint| endpoint.interface.is_empty()) else {
            continue;
        };
        let expected = &endpoint.expected_ips;
        let mut states = interfaces.values();
        if !states.any(|state| expected.iter().any(|ip| state.addresses.contains(ip))) {
            writeln!(
                anstream::stderr(),
                "warning: HostEndpoint({name}) names no interface, and none with one of its addresses is known; \
                 it is left out: give --interface or --local-interfaces"
            )?;
        }
    }
    Ok(())
}

/// The same every time for the same world.
fn in_order(mut batch: Batch, version: IpVersion) -> Batch {
    batch
        .chains
        .sort_by(|a, b| (a.table, &a.name).cmp(&(b.table, &b.name)));
    batch.sets.sort_by(|a, b| a.name.cmp(&b.name));
    for set in &mut batch.sets {
        if let Members::All(members) = &mut set.change {
            members.retain(|member| is_of(member, version));
            members.sort_unstable();
            members.dedup();
        }
    }
    batch
        .maps
        .sort_by(|a, b| (a.table, a.name).cmp(&(b.table, b.name)));
    for map in &mut batch.maps {
        map.added.sort();
    }
    batch
}

fn is_of(member: &Member, version: IpVersion) -> bool {
    let is_v4 = match member {
        Member::Net(net) => net.addr().is_ipv4(),
        Member::Port(address, ..) => address.is_ipv4(),
    };
    is_v4 == (version == IpVersion::V4)
}

/// The members of a set in a batch of everything.
fn members(change: &Members) -> &[Member] {
    match change {
        Members::All(members) => members,
        Members::Delta { added, .. } => added,
        Members::Gone => &[],
    }
}
