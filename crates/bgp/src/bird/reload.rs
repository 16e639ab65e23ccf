//! Bringing a new configuration into force, and taking it back if no session survives it.
//!
//! ```text
//!   propose ──▶ configure timeout N ──▶ judge ──┬─▶ Confirm: configure confirm, the file takes its place
//!      │ refused                        ▲  │    └─▶ Undo: configure undo, the file stays as it was
//!      ▼                                └──┘ Wait
//!   nothing happens
//! ```
//!
//! If this process ends in between, BIRD goes back by itself, and the file in place is the one that it goes back to.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tortie_error::Causes;

use super::answer::{Outcome, Phase, Protocol, Status};
use super::command::Configure;
use super::config_file::{ConfigFile, Texts};
use super::error::{Error, Result};
use super::socket::Socket;

/// How a new configuration is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reload {
    /// How long sessions have to come back. A peer that was told good-bye tries again within 5 s, mostly at once.
    pub patience: Duration,
    /// How much longer BIRD waits before it goes back by itself.
    pub reserve: Duration,
    /// Between two looks at the sessions.
    pub interval: Duration,
    /// Routes that are there already are not sent through changed filters.
    pub soft: bool,
}

/// What became of new texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reloaded {
    /// They were in place already.
    Unchanged,
    /// In place. BIRD does not run, and will start with them.
    Written,
    /// In place and in force.
    Confirmed {
        /// Sessions that were there before and are not now, though others are.
        missing: Vec<String>,
    },
    /// All sessions broke and none came back: what was before is in force and in place.
    Undone { lost: Vec<String> },
}

/// What is watched while a configuration is on trial. Pure: told what was seen, it says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Sessions that were established before.
    before: BTreeSet<String>,
    patience: Duration,
}

/// What to do with a configuration on trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Wait,
    Confirm { missing: Vec<String> },
    Undo { lost: Vec<String> },
}

impl Default for Reload {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(45),
            reserve: Duration::from_secs(30),
            interval: Duration::from_millis(200),
            soft: false,
        }
    }
}

impl Trial {
    /// Begins with the protocols as they were before.
    pub fn new(before: &[Protocol], patience: Duration) -> Self {
        let before = established(before);
        Self { before, patience }
    }

    /// `now` is None while BIRD does not answer. A session that the new configuration does not have is not waited for.
    pub fn judge(&self, now: Option<(&Status, &[Protocol])>, elapsed: Duration) -> Verdict {
        let is_over = elapsed >= self.patience;
        let Some((status, protocols)) = now else {
            let lost = self.before.iter().cloned().collect();
            return if is_over {
                Verdict::Undo { lost }
            } else {
                Verdict::Wait
            };
        };
        if status.phase == Phase::Reconfiguring && !is_over {
            return Verdict::Wait;
        }
        let up = established(protocols);
        let configured: BTreeSet<&String> = protocols.iter().map(|one| &one.name).collect();
        let kept: Vec<&String> = self
            .before
            .iter()
            .filter(|name| configured.contains(name))
            .collect();
        let missing: Vec<String> = kept
            .iter()
            .filter(|name| !up.contains(**name))
            .map(|name| (*name).clone())
            .collect();
        if missing.is_empty() || missing.len() < kept.len() {
            Verdict::Confirm { missing }
        } else if is_over {
            Verdict::Undo { lost: missing }
        } else {
            Verdict::Wait
        }
    }
}

impl Reload {
    /// Brings texts into force, unless BIRD refuses them, which is [`Error::Config`], or no session survives them.
    pub async fn run(
        &self,
        config: &ConfigFile,
        socket: &Socket,
        texts: Texts,
    ) -> Result<Reloaded> {
        let Some(candidate) = config.propose(texts).await? else {
            return Ok(Reloaded::Unchanged);
        };
        let before = match socket.protocols().await {
            Ok(before) => before,
            Err(error @ Error::Unreachable { .. }) => {
                tracing::debug!(error = %Causes(&error), "BIRD does not run: it will start with the new configuration");
                candidate.accept()?;
                return Ok(Reloaded::Written);
            }
            Err(error) => return Err(error),
        };
        let file = candidate.main();
        let configure = Configure {
            file: Some(&file),
            soft: self.soft,
            undo_after: Some(self.patience + self.reserve),
        };
        let answer = socket.configure(&configure).await?;
        if answer.outcome == Outcome::Ignored {
            // It ends; whoever starts it again has it read the new file.
            candidate.accept()?;
            return Ok(Reloaded::Written);
        }
        let trial = Trial::new(&before, self.patience);
        let start = Instant::now();
        loop {
            let seen = look(socket).await;
            let now = seen.as_ref().ok().map(|(status, all)| (status, &all[..]));
            match trial.judge(now, start.elapsed()) {
                Verdict::Wait => sleep(self.interval).await,
                Verdict::Confirm { missing } => {
                    self.confirm(socket, &file).await?;
                    candidate.accept()?;
                    return Ok(Reloaded::Confirmed { missing });
                }
                Verdict::Undo { lost } => {
                    tracing::warn!(
                        ?lost,
                        "No session came back with the new configuration; the one before comes into force again"
                    );
                    socket.undo().await?;
                    return Ok(Reloaded::Undone { lost });
                }
            }
        }
    }

    async fn confirm(&self, socket: &Socket, file: &Path) -> Result<()> {
        if socket.confirm().await?.outcome == Outcome::Confirmed {
            return Ok(());
        }
        // BIRD was restarted meanwhile, with the file that is in place, or somebody else has given it a command.
        let configure = Configure {
            file: Some(file),
            soft: self.soft,
            undo_after: None,
        };
        socket.configure(&configure).await.map(drop)
    }
}

async fn look(socket: &Socket) -> Result<(Status, Vec<Protocol>)> {
    let mut connection = socket.connect().await?;
    Ok((connection.status().await?, connection.protocols().await?))
}

fn established(protocols: &[Protocol]) -> BTreeSet<String> {
    let up = protocols.iter().filter(|one| one.is_established());
    up.map(|one| one.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::answer::State;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(45);

    fn sessions(names: &[(&str, State)]) -> Vec<Protocol> {
        let session = |(name, state): &(&str, State)| Protocol {
            name: (*name).to_owned(),
            kind: "BGP".to_owned(),
            state: *state,
            ..Protocol::default()
        };
        names.iter().map(session).collect()
    }

    #[track_caller]
    fn check(
        before: &[(&str, State)],
        now: Option<&[(&str, State)]>,
        seconds: u64,
        expected: &Verdict,
    ) {
        let trial = Trial::new(&sessions(before), PATIENCE);
        let status = Status::default();
        let now = now.map(sessions);
        let seen = now.as_deref().map(|now| (&status, now));
        assert_eq!(&trial.judge(seen, Duration::from_secs(seconds)), expected);
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn confirm(missing: &[&str]) -> Verdict {
        let missing = names(missing);
        Verdict::Confirm { missing }
    }

    fn undo(lost: &[&str]) -> Verdict {
        let lost = names(lost);
        Verdict::Undo { lost }
    }

    use State::{Down, Start, Up};

    #[test]
    fn sessions_that_stay_confirm_at_once() {
        check(&[("a", Up)], Some(&[("a", Up)]), 0, &confirm(&[]));
        check(
            &[("a", Up), ("b", Up)],
            Some(&[("a", Up), ("b", Start)]),
            0,
            &confirm(&["b"]),
        );
    }

    #[test]
    fn what_was_not_there_before_is_not_waited_for() {
        check(&[], Some(&[]), 0, &confirm(&[]));
        check(&[("a", Start)], Some(&[("a", Down)]), 0, &confirm(&[]));
        check(&[("a", Up)], Some(&[("b", Start)]), 0, &confirm(&[]));
    }

    #[test]
    fn all_sessions_gone_are_waited_for_and_then_taken_back() {
        let gone = [("a", Start), ("b", Down)];
        check(&[("a", Up), ("b", Up)], Some(&gone), 44, &Verdict::Wait);
        check(&[("a", Up), ("b", Up)], Some(&gone), 45, &undo(&["a", "b"]));
        check(
            &[("a", Up), ("b", Up)],
            Some(&[("a", Up), ("b", Down)]),
            45,
            &confirm(&["b"]),
        );
    }

    #[test]
    fn a_bird_that_does_not_answer_is_not_confirmed() {
        check(&[("a", Up)], None, 1, &Verdict::Wait);
        check(&[("a", Up)], None, 45, &undo(&["a"]));
    }

    #[test]
    fn protocols_that_are_still_ending_say_nothing_yet() {
        let trial = Trial::new(&sessions(&[("a", Up)]), PATIENCE);
        let status = Status {
            phase: Phase::Reconfiguring,
            ..Status::default()
        };
        let now = sessions(&[("a", Up)]);
        let judge = |seconds| trial.judge(Some((&status, &now)), Duration::from_secs(seconds));
        assert_eq!(judge(1), Verdict::Wait);
        assert_eq!(judge(45), confirm(&[]));
    }
}
