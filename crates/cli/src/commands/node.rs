//! `tortie node verify`: does the kernel of this machine have what it should have? Beside it, what else concerns one node.

mod checksystem;
pub(super) mod condition;
pub(super) mod enforced;
pub(super) mod shutdown;
pub(super) mod startup;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use tortie_agent::{LocalAgent, Settings, host};
use tortie_config::from_environment;
use tortie_dataplane::{Dataplane, Drift};
use tortie_rules::Dataplane as Kind;

use super::{agent, bgp, diags, report, root};
use crate::args::{Global, Node, NodeCommand, Subject, UNKNOWN, Verify, VerifyOutput};

/// Exit code for a kernel that has not what it should have.
const DRIFT: u8 = 1;

pub(super) async fn run(args: Node, global: &Global) -> Result<ExitCode> {
    let args = match args.command {
        NodeCommand::Verify(args) => args,
        NodeCommand::CheckSystem(args) => return checksystem::run(&args),
        NodeCommand::Status(args) => return bgp::node_status(&args).await,
        NodeCommand::Diags(args) => return diags::node::run(&args, global).await,
        NodeCommand::Startup(args) => return startup::startup(&args, global).await,
        NodeCommand::Shutdown(args) => return shutdown::run(&args, global).await,
        NodeCommand::TunnelAddresses(args) => {
            return startup::tunnel_addresses(&args, global).await;
        }
    };
    match verify(&args, global).await {
        Ok(code) => Ok(code),
        Err(error) => {
            writeln!(anstream::stderr(), "{}", report::error(&error))?;
            Ok(ExitCode::from(UNKNOWN))
        }
    }
}

async fn verify(args: &Verify, global: &Global) -> Result<ExitCode> {
    root::check_verify()?;
    let subject = &args.subject;
    let settings = agent_settings(subject)?;
    let node = settings.node.clone();
    let updates = enforced::load(&subject.filename, subject.recursive, global).await?;
    if let Err(unknown) = enforced::check_node(&node, &updates) {
        // The agent of such a node runs too, and enforces what is the same everywhere.
        writeln!(anstream::stderr(), "warning: {unknown}")?;
    }
    let enforced = enforced::compute(&updates, &node, settings.into(), &host::choose)?;
    let drivers = host::drivers(&enforced.config, enforced.kind)?;
    let mut dataplane = Dataplane::new(&enforced.rules, enforced.kind, drivers, &node);
    dataplane.set_interfaces(enforced::interfaces(&enforced.config)?);
    let kind = enforced.kind;
    for message in enforced.messages {
        dataplane.on_message(message);
    }
    let drift = dataplane.compare()?;
    show(&node, kind, &drift, args.output)?;
    Ok(if drift.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DRIFT)
    })
}

/// What the agent of this machine was started with: what it says itself if it runs, else what one would find that is started
/// now.
fn agent_settings(subject: &Subject) -> Result<Settings> {
    let is_asked = subject.parameter_file.is_none();
    let running = if is_asked { LocalAgent::find()? } else { None };
    if let Some(running) = running {
        let settings = running.settings()?;
        if subject
            .node
            .as_ref()
            .is_none_or(|node| *node == settings.node)
        {
            return Ok(settings);
        }
    }
    let environment = from_environment(std::env::vars_os());
    let file = subject.parameter_file.as_deref();
    Ok(Settings {
        node: agent::node_name(subject.node.as_deref(), &environment)?,
        file: agent::parameter_file(file.unwrap_or(Path::new(agent::PARAMETER_FILE)))?,
        environment,
        ..Settings::default()
    })
}

fn show(node: &str, kind: Kind, drift: &[Drift], output: VerifyOutput) -> Result<()> {
    let dataplane = kind.to_string();
    let mut out = std::io::stdout().lock();
    match output {
        VerifyOutput::Json => {
            let drift: Vec<_> = drift
                .iter()
                .map(|drift| json!({"object": drift.object, "what": drift.what}))
                .collect();
            let answer = json!({"node": node, "dataplane": dataplane, "drift": drift});
            writeln!(out, "{answer:#}")?;
        }
        VerifyOutput::Text if drift.is_empty() => {
            writeln!(out, "{node}: {dataplane} has what it should have; no drift")?;
        }
        VerifyOutput::Text => {
            for drift in drift {
                writeln!(out, "{}: {}", drift.object, drift.what)?;
            }
        }
    }
    Ok(())
}
