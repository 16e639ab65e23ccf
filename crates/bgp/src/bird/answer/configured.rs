//! `configure`, `configure confirm`, `configure undo`.

use std::time::Duration;

use crate::bird::reply::Reply;

/// What became of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured {
    pub outcome: Outcome,
    /// After which BIRD goes back by itself.
    pub undo_after: Option<Duration>,
}

/// What BIRD did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force.
    Done,
    /// It is in force, and protocols of the old one are still ending.
    InProgress,
    /// It comes after one that is still in progress.
    Queued,
    /// It takes the place of one that was waiting.
    Unqueued,
    /// BIRD is shutting down.
    Ignored,
    /// It stays.
    Confirmed,
    /// There was nothing to confirm, or to go back to.
    Nothing,
}

pub(crate) fn configured(reply: &Reply) -> Option<Configured> {
    let outcome = match reply.code() {
        3 => Outcome::Done,
        4 => Outcome::InProgress,
        5 => Outcome::Queued,
        17 => Outcome::Unqueued,
        6 => Outcome::Ignored,
        18 => Outcome::Confirmed,
        19 => Outcome::Nothing,
        _ => return None,
    };
    let scheduled = reply.line_of(22).and_then(|line| {
        let seconds = line.strip_prefix("Undo scheduled in ")?;
        seconds.split(' ').next()?.parse().ok()
    });
    Some(Configured {
        outcome,
        undo_after: scheduled.map(Duration::from_secs),
    })
}

#[cfg(test)]
mod tests {
    use super::super::recorded::reply;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Outcome, Option<u64>)>) {
        let found = configured(&reply(text)).map(|configured| {
            let undo_after = configured.undo_after.map(|time| time.as_secs());
            (configured.outcome, undo_after)
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn each_answer_of_birds_is_told_from_the_others() {
        let reading = "0002-Reading configuration from /a\n";
        check(
            &format!("{reading}0003 Reconfigured\n"),
            Some((Outcome::Done, None)),
        );
        check(
            &format!("{reading}0022-Undo scheduled in 20 s\n0004 Reconfiguration in progress\n"),
            Some((Outcome::InProgress, Some(20))),
        );
        check(
            "0018 Reconfiguration confirmed\n",
            Some((Outcome::Confirmed, None)),
        );
        check(
            "0021-Undo requested\n0019 Nothing to do\n",
            Some((Outcome::Nothing, None)),
        );
        check("0013 Daemon is up and running\n", None);
    }
}
