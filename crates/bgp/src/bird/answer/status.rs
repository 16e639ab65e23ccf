//! `show status`.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::bird::reply::Reply;

/// What BIRD says about itself. Times are texts in BIRD's own form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Such as `2.0.12` or `v0.3.3+birdv1.6.8`.
    pub version: String,
    pub router_id: Option<Ipv4Addr>,
    pub now: Option<String>,
    pub last_boot: Option<String>,
    pub last_reconfiguration: Option<String>,
    /// Set while BIRD waits for peers after a graceful restart, and tells nobody of its routes.
    pub recovery: Option<Recovery>,
    pub phase: Phase,
}

/// A graceful restart that is not over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// How many channels have not received everything yet.
    pub channels: u32,
    /// After which it goes on without them.
    pub left: Option<Duration>,
}

/// What the daemon is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Running,
    /// Protocols of an old configuration are still ending.
    Reconfiguring,
    ShuttingDown,
}

const VERSION: u16 = 1000;

const DAEMON: u16 = 13;

/// None if the answer is not one to `show status`.
pub fn status(reply: &Reply) -> Option<Status> {
    let version = reply.line_of(VERSION)?;
    let mut status = Status {
        version: version.strip_prefix("BIRD ").unwrap_or(version).to_owned(),
        phase: match reply.line_of(DAEMON)? {
            "Reconfiguration in progress" => Phase::Reconfiguring,
            "Shutdown in progress" => Phase::ShuttingDown,
            _ => Phase::Running,
        },
        ..Status::default()
    };
    for line in &reply.lines {
        let text = line.text.trim();
        let after = |words: &str| text.strip_prefix(words).map(str::to_owned);
        if let Some(id) = text.strip_prefix("Router ID is ") {
            status.router_id = id.parse().ok();
        } else if let Some(time) = after("Current server time is ") {
            status.now = Some(time);
        } else if let Some(time) = after("Last reboot on ") {
            status.last_boot = Some(time);
        } else if let Some(time) = after("Last reconfiguration on ") {
            status.last_reconfiguration = Some(time);
        } else if text.starts_with("Graceful restart recovery in progress") {
            status.recovery = Some(Recovery::default());
        } else if let Some(recovery) = &mut status.recovery {
            continue_recovery(recovery, text);
        }
    }
    Some(status)
}

fn continue_recovery(recovery: &mut Recovery, text: &str) {
    if let Some(rest) = text.strip_prefix("Waiting for ") {
        let number = rest.split(' ').next().unwrap_or_default();
        recovery.channels = number.parse().unwrap_or_default();
    } else if let Some(rest) = text.strip_prefix("Wait timer is ") {
        let left = rest.split('/').next().unwrap_or_default();
        recovery.left = seconds(left);
    }
}

pub(super) fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::recorded::{recorded, reply};
    use super::*;

    fn of(text: &str) -> Status {
        status(&reply(text)).expect("a status")
    }

    #[test]
    fn both_versions_tell_the_same() {
        let new = of(recorded!("2.0.12/status"));
        assert_eq!(new.version, "2.0.12");
        assert_eq!(new.router_id, Some(Ipv4Addr::new(172, 20, 0, 1)));
        assert_eq!(new.last_boot.as_deref(), Some("2026-11-19 02:20:30.792"));
        assert_eq!(new.phase, Phase::Running);

        let old = of(recorded!("1.6.8/status"));
        assert_eq!(old.version, "v0.3.3+birdv1.6.8");
        assert_eq!((old.router_id, old.recovery), (new.router_id, None));
        let time = old.last_reconfiguration.as_deref();
        assert_eq!(time, Some("2026-11-19 02:20:12"));
    }

    #[test]
    fn a_recovery_says_how_long_it_waits_for_how_many() {
        let status = of(recorded!("2.0.12/status-recovery"));
        let expected = Recovery {
            channels: 2,
            left: Some(Duration::from_millis(17_897)),
        };
        assert_eq!(status.recovery, Some(expected));
    }

    #[test]
    fn the_last_line_says_what_the_daemon_does() {
        let phase = |line: &str| of(&format!("1000-BIRD 2\n0013 {line}\n")).phase;
        assert_eq!(phase("Daemon is up and running"), Phase::Running);
        assert_eq!(phase("Reconfiguration in progress"), Phase::Reconfiguring);
        assert_eq!(phase("Shutdown in progress"), Phase::ShuttingDown);
    }

    #[test]
    fn another_answer_is_no_status() {
        assert_eq!(status(&reply("0000 \n")), None);
        assert_eq!(status(&reply(recorded!("2.0.12/protocols"))), None);
    }
}
