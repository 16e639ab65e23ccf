//! `tortie bgp why`

mod live;
mod text;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use serde::Serialize;
use tortie_bgp::explain::{Answer, Question, explain};

use super::load;
use crate::args::{BgpStatusOutput, BgpWhy, Global};
use live::Live;

/// Exit code for a prefix that is not where it should be.
const NOT_SO: u8 = 2;

/// An answer as JSON.
#[derive(Serialize)]
struct WithLive<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    /// What BIRD and the kernel of this machine say.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'a Live>,
}

pub(super) async fn run(args: &BgpWhy, global: &Global) -> Result<ExitCode> {
    let mut cluster = load::cluster(&args.subject, global).await?;
    let own = load::identity(None).map(|identity| identity.node);
    let own = own.ok().filter(|_| args.subject.filename.is_empty());
    let here = cluster.own_node().to_owned();
    let node = args.subject.node.clone();
    let question = Question {
        target: args.prefix,
        node: node.or_else(|| cluster.has_node(&here).then_some(here)),
        peer: args.peer.clone(),
    };
    let answer = explain(&mut cluster, &question).map_err(|reason| anyhow!(reason))?;
    let asked = question.node.as_ref();
    let live = match asked.filter(|asked| own.as_ref() == Some(*asked)) {
        Some(node) => Some(Live::find(&args.run.folder, &answer, node).await),
        None => None,
    };
    let mut out = anstream::stdout();
    match args.output {
        BgpStatusOutput::Json => {
            let all = WithLive {
                answer: &answer,
                live: live.as_ref(),
            };
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        }
        BgpStatusOutput::Text => write!(out, "{}", text::render(&answer, live.as_ref()))?,
    }
    let is_well = answer.is_well && live.is_none_or(|live| live.is_well());
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_SO)
    })
}
