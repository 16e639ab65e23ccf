//! How long to wait, and for what.

use std::time::Duration;

use tortie_backoff::Backoff;

/// How long to wait, and for what. None of it delays a change while the datastore answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// After failures. A random part is left out, so that the nodes of a cluster do not come back all at once.
    pub retry: Backoff,
    /// The shortest time from one reading of all objects of a kind to the next.
    pub between_resyncs: Duration,
    /// How often a kind that cannot be watched is read.
    pub poll: Duration,
    /// How often to look for a kind that the datastore does not know.
    pub missing_kind: Duration,
    /// How long after a list that has none of the objects that were known a second one is asked whether that is so.
    pub second_list: Duration,
    /// How long without contact until the status says so.
    pub contact_lost: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            retry: Backoff {
                first: Duration::from_millis(200),
                most: Duration::from_secs(4),
                jitter: 0.5,
            },
            between_resyncs: Duration::from_millis(500),
            poll: Duration::from_secs(5),
            missing_kind: Duration::from_secs(30),
            second_list: Duration::from_secs(1),
            contact_lost: Duration::from_mins(10),
        }
    }
}
