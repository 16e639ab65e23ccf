//! `tortie bgp doctor`

mod live;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::builder::styling::{AnsiColor, Style};
use serde_json::json;
use tortie_bgp::doctor::{Finding, examine};

use super::load;
use crate::args::{BgpDoctor, BgpStatusOutput, Global};

const BAD: Style = AnsiColor::Red.on_default().bold();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();

/// How many nodes of a finding are named.
const SHOWN: usize = 5;

pub(super) async fn run(args: &BgpDoctor, global: &Global) -> Result<ExitCode> {
    let mut cluster = load::cluster(&args.subject, global).await?;
    let node = args.subject.node.as_deref();
    if let Some(node) = node {
        cluster.check_node(node).map_err(|reason| anyhow!(reason))?;
    }
    let mut findings = Vec::new();
    let own = load::identity(None).map(|identity| identity.node);
    let own = own.ok().filter(|_| args.subject.filename.is_empty());
    let own = own.filter(|own| cluster.has_node(own) && node.is_none_or(|node| node == own));
    if let Some(own) = &own {
        findings = live::examine(&args.run.folder, &cluster.plan(own)).await;
    }
    findings.extend(examine(&mut cluster, node));
    findings.sort_by_key(|finding| finding.severity);
    let count = cluster.nodes().count();
    let mut out = anstream::stdout();
    match args.output {
        BgpStatusOutput::Json => {
            let errors = findings.iter().any(Finding::is_error);
            let all =
                json!({"well": !errors, "nodes": count, "machine": own, "findings": findings});
            writeln!(out, "{all:#}")?;
        }
        BgpStatusOutput::Text => write!(out, "{}", text(&findings, count))?,
    }
    Ok(if findings.iter().any(Finding::is_error) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn text(findings: &[Finding], nodes: usize) -> String {
    let mut out = String::new();
    for finding in findings {
        let (style, word) = if finding.is_error() {
            (BAD, "error")
        } else {
            (DOUBTFUL, "warning")
        };
        let reason = &finding.reason;
        let _ = writeln!(out, "{style}{word}{style:#}: {}", reason.text);
        if let Some(origin) = &reason.origin {
            let value = reason.value.as_ref();
            let value = value.map_or(String::new(), |value| format!(" = {value}"));
            let _ = writeln!(out, "    {origin}{value}");
        }
        if let Some(remedy) = &reason.remedy {
            let _ = writeln!(out, "    right: {remedy}");
        }
        let named: Vec<&str> = finding
            .nodes
            .iter()
            .take(SHOWN)
            .map(String::as_str)
            .collect();
        if !named.is_empty() {
            let more = match finding.nodes.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let _ = writeln!(out, "    nodes: {}{more}", named.join(", "));
        }
    }
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.len() - errors;
    let _ = match (errors, warnings) {
        (0, 0) => writeln!(out, "Nothing is wrong with the BGP of {nodes} node(s)."),
        _ => writeln!(
            out,
            "{errors} error(s) and {warnings} warning(s) in the BGP of {nodes} node(s)."
        ),
    };
    out
}
