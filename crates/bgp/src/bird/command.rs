//! What BIRD can be asked and told, with answers as types.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;

use super::answer::{self, Configured, Interface, Protocol, Route, Status};
use super::error::{Error, Problem, Result};
use super::socket::{Connection, Socket, unexpected};

/// A configuration that is read: what is wrong with it.
const CONFIG_ERROR: u16 = 8002;

const NOT_FOUND: u16 = 8001;

const READING: u16 = 2;

/// Which configuration BIRD reads, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Configure<'a> {
    /// None is the file that BIRD was started with.
    pub file: Option<&'a Path>,
    /// Changed filters apply to routes that come from now on.
    pub soft: bool,
    /// BIRD goes back by itself after this time, in whole seconds, unless it is told that all is well.
    pub undo_after: Option<Duration>,
}

/// Which routes are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes {
    pub destination: Destination,
    /// None is all tables of BIRD 2, and the only one of BIRD 1.6.
    pub table: Option<String>,
    pub side: Side,
    /// Only the best of each prefix.
    pub primary: bool,
    /// With their attributes.
    pub all: bool,
}

/// The prefixes that are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Destination {
    #[default]
    Any,
    /// The longest prefix that has this address.
    Address(IpAddr),
    /// The longest prefix that has this one.
    Within(IpNet),
    Exactly(IpNet),
}

/// Where routes are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Side {
    #[default]
    Table,
    /// What a protocol has brought.
    From(String),
    /// What a protocol is given, after its export filter.
    To(String),
    /// What a protocol is not given, because of its export filter.
    NotTo(String),
}

/// What becomes of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    Enable,
    Disable,
    Restart,
}

impl Socket {
    pub async fn status(&self) -> Result<Status> {
        self.connect().await?.status().await
    }

    /// All protocols in a line each.
    pub async fn protocols(&self) -> Result<Vec<Protocol>> {
        self.connect().await?.protocols().await
    }

    /// All protocols with their channels, counters and sessions.
    pub async fn protocols_all(&self) -> Result<Vec<Protocol>> {
        self.connect().await?.protocols_all().await
    }

    /// One protocol with all that is known about it.
    pub async fn protocol(&self, name: &str) -> Result<Option<Protocol>> {
        let command = format!("show protocols all \"{}\"", in_quotes(name)?);
        let reply = match self.ask(&command).await {
            // No protocols match.
            Err(Error::Refused { code: 8003, .. }) => return Ok(None),
            reply => reply?,
        };
        Ok(answer::protocols(&reply).pop())
    }

    pub async fn routes(&self, routes: &Routes) -> Result<Vec<Route>> {
        match self.ask(&routes.command()?).await {
            Err(error) if error.code() == Some(NOT_FOUND) => Ok(Vec::new()),
            reply => Ok(answer::routes(&reply?)),
        }
    }

    pub async fn interfaces(&self) -> Result<Vec<Interface>> {
        Ok(answer::interfaces(&self.ask("show interfaces").await?))
    }

    /// Has BIRD read a configuration, and do no more. Gives the file that it read.
    pub async fn configure_check(&self, file: Option<&Path>) -> Result<PathBuf> {
        let command = match file {
            Some(file) => format!("configure check {}", file_word(file)?),
            None => "configure check".to_owned(),
        };
        let reply = refused_config(self.ask(&command).await)?;
        let read = reply
            .line_of(READING)
            .and_then(|line| line.strip_prefix("Reading configuration from "));
        read.map(PathBuf::from)
            .ok_or_else(|| unexpected(&command, &reply, "0002 Reading configuration from …"))
    }

    /// Has BIRD take a configuration. One that its parser refuses is [`Error::Config`], and changes nothing.
    pub async fn configure(&self, configure: &Configure<'_>) -> Result<Configured> {
        self.connect().await?.configure(configure).await
    }

    /// Takes back that BIRD goes back by itself.
    pub async fn confirm(&self) -> Result<Configured> {
        self.connect().await?.configured("configure confirm").await
    }

    /// Has BIRD go back to the configuration before.
    pub async fn undo(&self) -> Result<Configured> {
        self.connect().await?.configured("configure undo").await
    }

    pub async fn switch(&self, switch: Switch, protocol: &str) -> Result<()> {
        let word = match switch {
            Switch::Enable => "enable",
            Switch::Disable => "disable",
            Switch::Restart => "restart",
        };
        let name = in_quotes(protocol)?;
        self.ask(&format!("{word} \"{name}\"")).await.map(drop)
    }

    /// Ends all sessions, with a good-bye to each peer. BIRD goes on.
    pub async fn end_sessions(&self) -> Result<()> {
        self.switch_sessions("disable").await
    }

    /// Begins all sessions that were ended so.
    pub async fn begin_sessions(&self) -> Result<()> {
        self.switch_sessions("enable").await
    }

    async fn switch_sessions(&self, word: &str) -> Result<()> {
        let mut connection = self.connect().await?;
        for protocol in connection.protocols().await? {
            if protocol.is_bgp() {
                let name = in_quotes(&protocol.name)?;
                connection.ask(&format!("{word} \"{name}\"")).await?;
            }
        }
        Ok(())
    }

    /// Ends BIRD, with a good-bye to all peers.
    pub async fn down(&self) -> Result<()> {
        self.ask("down").await.map(drop)
    }

    /// Ends BIRD without a word to peers that can bridge a restart, and without touching the kernel's routes.
    pub async fn end_for_graceful_restart(&self) -> Result<()> {
        self.ask("graceful restart").await.map(drop)
    }
}

impl Connection {
    pub async fn status(&mut self) -> Result<Status> {
        let reply = self.ask("show status").await?;
        answer::status(&reply)
            .ok_or_else(|| unexpected("show status", &reply, "a version and the daemon's state"))
    }

    pub async fn protocols(&mut self) -> Result<Vec<Protocol>> {
        Ok(answer::protocols(&self.ask("show protocols").await?))
    }

    pub async fn protocols_all(&mut self) -> Result<Vec<Protocol>> {
        Ok(answer::protocols(&self.ask("show protocols all").await?))
    }

    pub async fn configure(&mut self, configure: &Configure<'_>) -> Result<Configured> {
        let command = configure.command()?;
        self.configured(&command).await
    }

    async fn configured(&mut self, command: &str) -> Result<Configured> {
        let reply = refused_config(self.ask(command).await)?;
        answer::configured(&reply)
            .ok_or_else(|| unexpected(command, &reply, "what became of the configuration"))
    }
}

impl Configure<'_> {
    fn command(&self) -> Result<String> {
        let mut words = vec!["configure".to_owned()];
        if self.soft {
            words.push("soft".to_owned());
        }
        if let Some(file) = self.file {
            words.push(file_word(file)?);
        }
        if let Some(time) = self.undo_after {
            let seconds = time.as_secs().clamp(1, u64::from(u16::MAX));
            words.push(format!("timeout {seconds}"));
        }
        Ok(words.join(" "))
    }
}

impl Routes {
    fn command(&self) -> Result<String> {
        let mut words = vec!["show route".to_owned()];
        match self.destination {
            Destination::Any => {}
            Destination::Address(address) => words.push(format!("for {address}")),
            Destination::Within(network) => words.push(format!("for {}", network.trunc())),
            Destination::Exactly(network) => words.push(network.trunc().to_string()),
        }
        if let Some(table) = &self.table {
            words.push(format!("table {}", symbol(table)?));
        }
        match &self.side {
            Side::Table => {}
            Side::From(name) => words.push(format!("protocol {}", symbol(name)?)),
            Side::To(name) => words.push(format!("export {}", symbol(name)?)),
            Side::NotTo(name) => words.push(format!("noexport {}", symbol(name)?)),
        }
        if self.primary {
            words.push("primary".to_owned());
        }
        if self.all {
            words.push("all".to_owned());
        }
        Ok(words.join(" "))
    }
}

fn refused_config<T>(result: Result<T>) -> Result<T> {
    match result {
        Err(Error::Refused {
            code: CONFIG_ERROR,
            message,
            ..
        }) => Err(Error::Config(Problem::parse(&message))),
        other => other,
    }
}

fn file_word(file: &Path) -> Result<String> {
    let text = file.to_str().ok_or_else(|| Error::Unspeakable {
        value: file.display().to_string(),
        reason: "it is not UTF-8",
    })?;
    Ok(format!("\"{}\"", in_quotes(text)?))
}

/// A name without quotes: BIRD 1.6 knows no others here.
fn symbol(name: &str) -> Result<&str> {
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if begins && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(name);
    }
    Err(Error::Unspeakable {
        value: name.to_owned(),
        reason: "names are letters, digits and `_`",
    })
}

/// Strings of BIRD have no escapes.
fn in_quotes(text: &str) -> Result<&str> {
    if text.is_empty() || text.contains(['"', '*', '?', '\\']) {
        return Err(Error::Unspeakable {
            value: text.to_owned(),
            reason: "it is empty, or has a quote, a backslash or a wildcard",
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(routes: &Routes, expected: &str) {
        assert_eq!(routes.command().unwrap(), expected);
    }

    #[test]
    fn routes_are_asked_for_in_the_words_of_birds_client() {
        check(&Routes::default(), "show route");
        check(
            &Routes {
                destination: Destination::Address("10.65.2.5".parse().unwrap()),
                all: true,
                ..Routes::default()
            },
            "show route for 10.65.2.5 all",
        );
        check(
            &Routes {
                destination: Destination::Exactly("10.65.2.9/26".parse().unwrap()),
                table: Some("master4".to_owned()),
                side: Side::To("Mesh_10_0_0_1".to_owned()),
                primary: true,
                ..Routes::default()
            },
            "show route 10.65.2.0/26 table master4 export Mesh_10_0_0_1 primary",
        );
    }

    #[test]
    fn configurations_are_named_in_quotes() {
        let configure = Configure {
            file: Some(Path::new("/run/a b.conf")),
            soft: true,
            undo_after: Some(Duration::from_secs(61)),
        };
        let expected = "configure soft \"/run/a b.conf\" timeout 61";
        assert_eq!(configure.command().unwrap(), expected);
        assert_eq!(Configure::default().command().unwrap(), "configure");
    }

    #[test]
    fn no_name_ends_a_command_and_begins_another() {
        for name in ["a\" b", "", "a; down", "a b", "1a"] {
            let side = Side::From(name.to_owned());
            let routes = Routes {
                side,
                ..Routes::default()
            };
            assert!(matches!(routes.command(), Err(Error::Unspeakable { .. })));
        }
        let file = Some(Path::new("/run/\" down"));
        let configure = Configure {
            file,
            ..Configure::default()
        };
        assert!(configure.command().is_err());
    }
}
