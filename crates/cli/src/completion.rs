//! What a shell offers at the cursor besides commands and options: kinds, and names of what the datastore has.

use std::ffi::OsStr;
use std::time::Duration;

use clap::Parser as _;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use tortie_api::Kind;
use tortie_client::connect::{DatastoreType, environment};
use tortie_store::Query;

use crate::args::{self, Cli, Global};
use crate::config::{find_target, open_target};

/// The variable that says that a shell asks, and which one.
pub(crate) const VARIABLE: &str = "COMPLETE";

/// How long somebody who pressed a key waits for a datastore.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options that say which datastore is meant.
const DATASTORE_OPTIONS: [&str; 5] = [
    "--datastore",
    "--data-dir",
    "--data-file",
    "--config",
    "--context",
];

/// Answers a shell and ends the process, if one asks.
pub(crate) fn answer() {
    CompleteEnv::with_factory(args::command)
        .var(VARIABLE)
        .complete();
}

/// For arguments that are kinds.
pub(crate) fn kinds() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = Kind::ALL.iter().map(|kind| kind.plural().to_owned());
        starting_with(current, names)
    })
}

/// For arguments that are names of objects of the kind before them.
pub(crate) fn names() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let line = Line::of_shell();
        starting_with(current, line.names().unwrap_or_default())
    })
}

fn starting_with(
    current: &OsStr,
    words: impl IntoIterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = words.into_iter().filter(|word| word.starts_with(&*current));
    fitting.map(CompletionCandidate::new).collect()
}

/// The command line so far.
struct Line(Vec<String>);

impl Line {
    /// The one that the shell asks about, which it gives after `--`.
    fn of_shell() -> Self {
        let words = std::env::args().skip_while(|word| word != "--").skip(1);
        Self(words.collect())
    }

    /// What the datastore has of the kind that is named first. Nothing is said of what goes wrong: somebody is typing.
    fn names(&self) -> Option<Vec<String>> {
        let kind = self.0.iter().find_map(|word| Kind::from_word(word))?;
        let target = find_target(&self.global()?, &environment).ok()?;
        if target.datastore == DatastoreType::Embedded && !target.data_file.exists() {
            return None;
        }
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().ok()?;
        let list = runtime.block_on(async {
            let listed = async {
                let client = open_target(&target).await?.client;
                anyhow::Ok(client.list(&self.query(kind)).await?)
            };
            tokio::time::timeout(PATIENCE, listed).await.ok()?.ok()
        })?;
        let names = list.items.iter().map(|item| item.metadata().name.clone());
        Some(names.collect())
    }

    fn query(&self, kind: Kind) -> Query {
        let is_everywhere = self.0.iter().any(|word| word == "-A");
        if !kind.is_namespaced() || is_everywhere {
            return Query::all(kind);
        }
        let namespace = self.value("-n").or_else(|| self.value("--namespace"));
        Query::in_namespace(kind, namespace.unwrap_or("default"))
    }

    /// The options of every command, as far as they say which datastore is meant.
    fn global(&self) -> Option<Global> {
        let given = DATASTORE_OPTIONS
            .iter()
            .filter_map(|option| Some([option, self.value(option)?]));
        let words = std::iter::once("tortie").chain(given.flatten());
        let cli = Cli::try_parse_from(words.chain(["version"]));
        Some(cli.ok()?.global)
    }

    /// The word after an option.
    fn value(&self, option: &str) -> Option<&str> {
        let place = self.0.iter().position(|word| word == option)?;
        self.0.get(place + 1).map(String::as_str)
    }
}
