//! `tortie pod connect`: a real connection, and beside it what `tortie why` says.

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Style};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::attempt::{Outcome, attempt};
use super::destination::{self, Destination};
use super::site::Site;
use super::{DEFAULT_NAMESPACE, find, open_network};
use crate::args::PodConnect;
use crate::commands::until_signal;
use crate::commands::why;

/// Exit code for what is not connected.
const NOT_CONNECTED: u8 = 2;

/// How soon it is tried again.
const INTERVAL: Duration = Duration::from_millis(500);

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// What is tried.
struct Trial<'a> {
    site: &'a Site,
    from: String,
    network: Arc<File>,
    to: Destination,
    args: &'a PodConnect,
}

pub(super) async fn run(args: &PodConnect, site: &Site) -> Result<ExitCode> {
    let namespace = args.namespace.as_deref();
    let from = find(&args.from, namespace, site.folder())?;
    let network = Arc::new(open_network(&from)?);
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let to = destination::find(&site.objects(), &args.to, namespace, args.protocol).await?;
    let trial = Trial {
        site,
        from: from.to_string(),
        network,
        to,
        args,
    };
    let outcome = if args.watch {
        tokio::select! {
            watched = trial.watch() => watched?,
            () = until_signal()? => return Ok(ExitCode::SUCCESS),
        }
    } else {
        let outcome = trial.attempt().await?;
        trial.tell(&outcome, None).await?;
        outcome
    };
    Ok(if outcome.is_connected() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_CONNECTED)
    })
}

impl Trial<'_> {
    async fn attempt(&self) -> Result<Outcome> {
        let (network, address) = (Arc::clone(&self.network), self.to.address);
        let protocol = self.args.protocol;
        tokio::task::spawn_blocking(move || attempt(&network, address, protocol)).await?
    }

    /// Tries again and again, and tells what changes. Ends only with an error.
    async fn watch(&self) -> Result<Outcome> {
        let mut last: Option<(Outcome, Instant)> = None;
        loop {
            let outcome = self.attempt().await?;
            let since = last.as_ref().map(|(_, since)| since.elapsed());
            if !last
                .as_ref()
                .is_some_and(|(last, _)| last.is_like(&outcome))
            {
                self.tell(&outcome, since).await?;
                last = Some((outcome, Instant::now()));
            }
            sleep(INTERVAL).await;
        }
    }

    /// Two lines: what became of the connection, perhaps with the time since that changed, and what `why` says.
    async fn tell(&self, outcome: &Outcome, since: Option<Duration>) -> Result<()> {
        let Self { from, to, args, .. } = self;
        let style = if outcome.is_connected() { GOOD } else { BAD };
        let word = outcome.word();
        let Destination { name, address } = to;
        let whom = match address.ip().to_string() {
            ip if ip == *name => address.to_string(),
            ip => format!("{name} ({ip}) port {}", address.port()),
        };
        let since = since.map_or(String::new(), |since| {
            format!(", {:.1} s after the last change", since.as_secs_f64())
        });
        let protocol = args.protocol.upper();
        let mut out = anstream::stdout();
        writeln!(
            out,
            "{style}{word}{style:#}: {from} to {whom}, {protocol}: {outcome}{since}"
        )?;
        let answers = why::load::answers(&self.site.client()).await?;
        write!(out, "  why: ")?;
        why::write_line(&answers.ask(&self.question())?, &mut out)?;
        out.flush()?;
        Ok(())
    }

    /// The question about the same connection as `tortie why` takes it.
    fn question(&self) -> Map<String, Value> {
        let fields = json!({
            "from": self.from,
            "to": self.to.name,
            "protocol": self.args.protocol.upper(),
            "port": self.to.address.port(),
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}
