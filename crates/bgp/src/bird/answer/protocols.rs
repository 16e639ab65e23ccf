//! `show protocols` and `show protocols all`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::key_and_value;
use super::status::seconds;
use crate::bird::reply::Reply;

/// A protocol: a session, or where else BIRD has routes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protocol {
    pub name: String,
    /// As BIRD writes it: `BGP`, `Kernel`, `Static`, `Direct`, `Device`, ….
    pub kind: String,
    /// None if it has several, or none.
    pub table: Option<String>,
    pub state: State,
    /// When it came into this state, as text in BIRD's own form.
    pub since: String,
    /// For BGP the session's state, and the last error.
    pub info: String,
    pub description: Option<String>,
    /// Told by `show protocols all` only. BIRD 1.6 has one without a name.
    pub channels: Vec<Channel>,
    /// The same, for BGP.
    pub session: Option<Session>,
}

/// What the protocol's state machine is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Down,
    Start,
    Up,
    Stop,
    Flush,
    /// BIRD 1.6 alone.
    Feed,
}

/// The routes of one address family between a protocol and a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// Such as `ipv4`; empty in BIRD 1.6.
    pub name: String,
    /// Such as `UP`; empty in BIRD 1.6.
    pub state: String,
    pub table: String,
    pub import_filter: String,
    pub export_filter: String,
    pub counters: Counters,
    /// Routes of a peer that is restarting are kept.
    pub is_bridging_restart: bool,
}

/// How many routes there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub imported: u64,
    /// Refused by the import filter, and kept to be shown.
    pub filtered: u64,
    pub exported: u64,
    /// Imported ones that are the best of their prefix.
    pub preferred: u64,
}

/// A BGP session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// As BIRD writes it: the states of RFC 4271, and `Passive`, `Down` and `Close`.
    pub state: String,
    pub neighbor: Option<IpAddr>,
    /// Of a link-local neighbour.
    pub interface: Option<String>,
    pub neighbor_port: Option<u16>,
    pub neighbor_as: Option<u32>,
    pub local_as: Option<u32>,
    /// Such as `Socket: Connection refused` or `Received: Administrative shutdown`.
    pub last_error: Option<String>,
    /// The neighbour is restarting, and its routes are kept meanwhile.
    pub is_neighbor_restarting: bool,
    /// How long they are kept, unless it comes back.
    pub restart_timer: Option<Timer>,
    /// While it is established.
    pub established: Established,
}

/// What a session has while it is established.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Established {
    pub neighbor_id: Option<Ipv4Addr>,
    pub source: Option<IpAddr>,
    /// Such as `internal multihop AS4`.
    pub flags: String,
    pub hold: Option<Timer>,
    pub keepalive: Option<Timer>,
}

/// A timer that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    pub left: Duration,
    pub of: Option<Duration>,
}

const ROW: u16 = 1002;

const DETAIL: u16 = 1006;

impl Protocol {
    pub fn is_bgp(&self) -> bool {
        self.kind == "BGP"
    }

    /// Whether it is a session that is up.
    pub fn is_established(&self) -> bool {
        self.is_bgp() && self.state == State::Up
    }
}

/// All protocols of an answer.
pub fn protocols(reply: &Reply) -> Vec<Protocol> {
    let mut protocols: Vec<Protocol> = Vec::new();
    for line in &reply.lines {
        match line.code {
            ROW => protocols.extend(row(&line.text)),
            DETAIL => {
                if let Some(protocol) = protocols.last_mut() {
                    detail(protocol, line.text.trim());
                }
            }
            _ => {}
        }
    }
    protocols
}

/// `NAME KIND TABLE STATE SINCE INFO…`, where SINCE may be a date and a time.
fn row(text: &str) -> Option<Protocol> {
    let mut words = text.split_whitespace().peekable();
    let (name, kind, table) = (words.next()?, words.next()?, words.next()?);
    let state = State::of(words.next()?)?;
    let mut since = words.next().unwrap_or_default().to_owned();
    let is_time =
        |word: &&str| word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit());
    if since.contains('-')
        && let Some(time) = words.next_if(is_time)
    {
        since.push(' ');
        since.push_str(time);
    }
    Some(Protocol {
        name: name.to_owned(),
        kind: kind.to_owned(),
        table: (table != "---").then(|| table.to_owned()),
        state,
        since,
        info: words.collect::<Vec<_>>().join(" "),
        ..Protocol::default()
    })
}

fn detail(protocol: &mut Protocol, text: &str) {
    if let Some(name) = text.strip_prefix("Channel ") {
        let name = name.to_owned();
        protocol.channels.push(Channel {
            name,
            ..Channel::default()
        });
        return;
    }
    if text == "Neighbor graceful restart active" {
        let session = protocol.session.get_or_insert_default();
        session.is_neighbor_restarting = true;
        return;
    }
    let Some((key, value)) = key_and_value(text) else {
        return;
    };
    match key {
        "Description" => protocol.description = Some(value.to_owned()),
        // BIRD 1.6 has no channels: this is the first line of what stands for one.
        "Preference" if protocol.channels.is_empty() => {
            let table = protocol.table.clone().unwrap_or_default();
            protocol.channels.push(Channel {
                table,
                ..Channel::default()
            });
        }
        "BGP state" => {
            let session = protocol.session.get_or_insert_default();
            value.clone_into(&mut session.state);
        }
        _ => {
            let is_known = protocol
                .channels
                .last_mut()
                .is_some_and(|channel| channel.detail(key, value));
            if let (false, Some(session)) = (is_known, &mut protocol.session) {
                session.detail(key, value);
            }
        }
    }
}

impl State {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "down" => Self::Down,
            "start" => Self::Start,
            "up" => Self::Up,
            "stop" => Self::Stop,
            "flush" => Self::Flush,
            "feed" => Self::Feed,
            _ => return None,
        })
    }

    /// As BIRD writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Start => "start",
            Self::Up => "up",
            Self::Stop => "stop",
            Self::Flush => "flush",
            Self::Feed => "feed",
        }
    }
}

impl Channel {
    /// Whether the key is one of a channel's.
    fn detail(&mut self, key: &str, value: &str) -> bool {
        let to = match key {
            "State" => &mut self.state,
            "Table" => &mut self.table,
            "Input filter" => &mut self.import_filter,
            "Output filter" => &mut self.export_filter,
            "Routes" => {
                self.counters = Counters::of(value);
                return true;
            }
            "Neighbor GR" => {
                self.is_bridging_restart = true;
                return true;
            }
            _ => return false,
        };
        value.clone_into(to);
        true
    }
}

impl Counters {
    /// `4 imported, 1 filtered, 5 exported, 3 preferred`
    fn of(value: &str) -> Self {
        let mut counters = Self::default();
        for part in value.split(',') {
            let Some((number, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let to = match what {
                "imported" => &mut counters.imported,
                "filtered" => &mut counters.filtered,
                "exported" => &mut counters.exported,
                "preferred" => &mut counters.preferred,
                _ => continue,
            };
            *to = number.parse().unwrap_or_default();
        }
        counters
    }
}

impl Session {
    fn detail(&mut self, key: &str, value: &str) {
        let number = || value.parse().ok();
        match key {
            "Neighbor address" => {
                let (address, interface) = match value.split_once('%') {
                    Some((address, interface)) => (address, Some(interface.to_owned())),
                    None => (value, None),
                };
                self.neighbor = address.parse().ok();
                self.interface = interface;
            }
            "Neighbor port" => self.neighbor_port = value.parse().ok(),
            "Neighbor AS" => self.neighbor_as = number(),
            "Local AS" => self.local_as = number(),
            "Last error" => self.last_error = Some(value.to_owned()),
            "Restart timer" => self.restart_timer = Timer::of(value),
            "Neighbor ID" => self.established.neighbor_id = value.parse().ok(),
            "Source address" => self.established.source = value.parse().ok(),
            "Session" => value.clone_into(&mut self.established.flags),
            "Hold timer" => self.established.hold = Timer::of(value),
            "Keepalive timer" => self.established.keepalive = Timer::of(value),
            _ => {}
        }
    }
}

impl Timer {
    /// `182.447/240`, or `118.810/-`
    fn of(value: &str) -> Option<Self> {
        let (left, of) = value.split_once('/')?;
        Some(Self {
            left: seconds(left)?,
            of: seconds(of),
        })
    }
}

#[cfg(test)]
mod tests;
