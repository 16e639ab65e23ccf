//! What a configuration asks for: the same form for both versions of BIRD.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Token, tokens};
use super::run::Functions;
use super::syntax::{Body, Item, Parser, Statement};

/// A configuration for one IP version.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// Router ID, where it listens, and the options of the protocols that are no sessions.
    pub(crate) settings: BTreeSet<String>,
    pub(crate) static_routes: BTreeSet<String>,
    pub(crate) functions: Functions,
    pub(crate) kernel_filter: Vec<Statement>,
    pub(crate) sessions: BTreeMap<String, Session>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Session {
    /// By their first words; the last one of each counts.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) import: Vec<Statement>,
    pub(crate) export: Vec<Statement>,
}

/// Whose language, and of which IP version.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dialect {
    Bird1,
    /// With the name of the channel.
    Bird2(&'static str),
}

/// The options of sessions that are more than one word before their value.
const OPTIONS: [&str; 16] = [
    "graceful restart time",
    "graceful restart",
    "connect delay time",
    "connect retry time",
    "error wait time",
    "gateway",
    "add paths",
    "ttl security",
    "multihop",
    "passive",
    "keepalive time",
    "rr client",
    "rr cluster id",
    "next hop",
    "allow local as",
    "source address",
];

impl Config {
    /// Reads texts that are included one after the other.
    pub(crate) fn read(text: &str, dialect: Dialect) -> Self {
        let items = Parser::new(tokens(text)).items();
        let mut templates: BTreeMap<String, Vec<Item>> = BTreeMap::new();
        let mut filters: BTreeMap<String, Vec<Statement>> = BTreeMap::new();
        let mut config = Self::default();
        for Item { words, body } in items {
            let texts: Vec<String> = words.iter().map(shown).collect();
            let text: Vec<&str> = texts.iter().map(String::as_str).collect();
            match (&text[..], body) {
                (["function", name, ..], Body::Code(code)) => {
                    let argument = text.iter().position(|word| *word == "bool");
                    let argument = argument.map(|at| texts[at + 1].clone());
                    config
                        .functions
                        .insert((*name).to_owned(), (argument, code));
                }
                (["filter", name], Body::Code(code)) => {
                    filters.insert((*name).to_owned(), code);
                }
                (["template", _, name], Body::Items(items)) => {
                    templates.insert((*name).to_owned(), items);
                }
                (["protocol", kind, name @ ..], Body::Items(items)) => {
                    let inherited = name.last().and_then(|name| templates.get(*name));
                    let mut all = inherited.cloned().unwrap_or_default();
                    all.extend(items);
                    let all = dialect.own(all);
                    if let Some(all) = all {
                        config.protocol(kind, name.first().copied(), &all, &filters);
                    }
                }
                (["include", _], Body::None) => {}
                (_, Body::None) => {
                    config.settings.insert(text.join(" "));
                }
                other => panic!("what is {other:?}?"),
            }
        }
        config
    }

    fn protocol(
        &mut self,
        kind: &str,
        name: Option<&str>,
        items: &[Item],
        filters: &BTreeMap<String, Vec<Statement>>,
    ) {
        if kind == "bgp" {
            let name = name.expect("sessions have names").to_owned();
            self.sessions.insert(name, Session::read(items));
            return;
        }
        for Item { words, body } in items {
            let texts: Vec<String> = words.iter().map(shown).collect();
            match (kind, &*texts.join(" "), body) {
                ("static", route, Body::None) => {
                    self.static_routes.insert(route.to_owned());
                }
                ("kernel", text, Body::None) if text.starts_with("export filter ") => {
                    self.kernel_filter.clone_from(&filters[&texts[2]]);
                }
                // BIRD 1.6 imports into the one table there is, and has the metric that the filter gives.
                ("kernel", "metric 0", _) => {}
                // Of the agent's routes BIRD 2 learns those to workloads alone, as tests with real nodes show.
                ("kernel", "import filter", Body::Code(_)) => {
                    self.settings.insert("kernel: import all".to_owned());
                }
                (_, text, Body::None) => {
                    self.settings.insert(format!("{kind}: {text}"));
                }
                (_, text, Body::Items(items)) => {
                    let inner: Vec<String> = items.iter().map(text_of).collect();
                    let inner = inner.join("; ");
                    self.settings.insert(format!("{kind}: {text} {inner}"));
                }
                other => panic!("what is {other:?}?"),
            }
        }
    }
}

impl Dialect {
    /// The options of a protocol, those of its channel among them. None where it has channels, and none of this IP version.
    fn own(self, items: Vec<Item>) -> Option<Vec<Item>> {
        let Self::Bird2(channel) = self else {
            return Some(items);
        };
        let (channels, mut options): (Vec<Item>, Vec<Item>) = items
            .into_iter()
            .partition(|item| ["ipv4", "ipv6"].contains(&&*shown(&item.words[0])));
        let is_own = |item: &Item| shown(&item.words[0]) == channel;
        if !channels.is_empty() && !channels.iter().any(is_own) {
            return None;
        }
        for item in channels.into_iter().filter(is_own) {
            if let Body::Items(items) = item.body {
                options.extend(items);
            }
        }
        Some(options)
    }
}

impl Session {
    fn read(items: &[Item]) -> Self {
        let mut session = Self::default();
        for Item { words, body } in items {
            let texts: Vec<String> = words.iter().map(shown).collect();
            let text = texts.join(" ");
            match (&*text, body) {
                ("import filter", Body::Code(code)) => session.import.clone_from(code),
                ("export filter", Body::Code(code)) => session.export.clone_from(code),
                (_, Body::Items(items)) => {
                    let inner: Vec<String> = items.iter().map(text_of).collect();
                    session.options.insert(text, inner.join("; "));
                }
                (_, Body::None) if texts[0] == "local" => session.local(&texts),
                _ => {
                    let name = OPTIONS.iter().find(|name| text.starts_with(**name));
                    let name = name.map_or(&*texts[0], |name| name);
                    let value = text[name.len()..].trim();
                    // It is what is meant where nothing is said.
                    let value = if value == "on" { "" } else { value };
                    session.options.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        session
    }

    /// `local [port N] as N`: each part of its own.
    fn local(&mut self, texts: &[String]) {
        for pair in texts[1..].chunks(2) {
            let name = format!("local {}", pair[0]);
            self.options.insert(name, pair[1].clone());
        }
    }
}

fn text_of(item: &Item) -> String {
    let words: Vec<String> = item.words.iter().map(shown).collect();
    words.join(" ")
}

fn shown(token: &Token) -> String {
    match token {
        Token::Word(word) => word.clone(),
        Token::Text(text) => format!("{text:?}"),
        Token::Number(number) => number.to_string(),
        Token::Address(address) => address.to_string(),
        Token::Network(network) => network.to_string(),
        Token::Mark(mark) => (*mark).to_owned(),
    }
}
