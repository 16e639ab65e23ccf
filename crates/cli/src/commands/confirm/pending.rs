//! What waits for confirmation: what to restore, and how far it has come.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_client::connect::Target;
use tortie_store::Key;

/// Everything that one `apply --confirm` did.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pending {
    /// What people call it.
    pub(super) id: String,
    pub(super) state: State,
    pub(super) started: Timestamp,
    pub(super) seconds: u64,
    /// When it is rolled back; not before all is applied.
    pub(super) deadline: Option<Timestamp>,
    /// Nobody should wait any longer.
    pub(super) roll_back_now: bool,
    /// Where all of it is.
    pub(super) datastore: Target,
    /// What the cluster calls itself there; nothing where it could not be read.
    pub(super) cluster: Option<String>,
    /// In the order in which they were applied.
    pub(super) changes: Vec<Change>,
    /// What became of it.
    pub(super) outcome: Option<Outcome>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// Some resources are written.
    Applying,
    /// All are, and nobody confirmed.
    Waiting,
    /// They stay.
    Confirmed,
    /// Some are as they were before.
    RollingBack,
    /// All are, as far as that can be.
    RolledBack,
    /// It was tried and did not work.
    Failed,
}

/// One resource.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Change {
    kind: String,
    namespace: String,
    name: String,
    /// What it was; nothing if there was none.
    before: Option<Value>,
    /// What was asked for.
    wanted: Value,
    /// What was stored; nothing if that is not known.
    after: Option<Value>,
}

/// What became of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// What was done.
    pub(super) done: Vec<String>,
    /// What is not what it was before, and why.
    pub(super) left: Vec<String>,
    /// Why there is more to do.
    pub(super) error: Option<String>,
}

// === impl Pending ===

impl Pending {
    pub(super) fn new(
        seconds: u64,
        changes: Vec<Change>,
        datastore: Target,
        cluster: Option<String>,
    ) -> Self {
        let now = Timestamp::now();
        // Short, and hardly the same twice.
        let number =
            (now.as_nanosecond().unsigned_abs() / 1000) ^ (u128::from(std::process::id()) << 8);
        Self {
            id: format!("{:08x}", number & 0xffff_ffff),
            state: State::Applying,
            started: now,
            seconds,
            deadline: None,
            roll_back_now: false,
            datastore,
            cluster,
            changes,
            outcome: None,
        }
    }

    /// How much time is left.
    pub(super) fn time_left(&self) -> Duration {
        let deadline = self.deadline.unwrap_or(self.started);
        let left = deadline.duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or_default();
        // No more than there was: the clock may have been set.
        left.min(Duration::from_secs(self.seconds))
    }

    /// Whether it is over, or should be: somebody has to roll back, and nobody need wait.
    pub(super) fn is_due(&self) -> bool {
        match self.state {
            State::Waiting => self.roll_back_now || self.time_left().is_zero(),
            State::Applying | State::RollingBack | State::Failed => true,
            State::Confirmed | State::RolledBack => false,
        }
    }

    /// Tells what became of it, and whether everything is what it was before.
    pub(super) fn tell(&self, out: &mut impl Write) -> Result<bool> {
        let outcome = self.outcome.clone().unwrap_or_default();
        for line in &outcome.done {
            writeln!(out, "{line}")?;
        }
        let mut stderr = anstream::stderr();
        for line in &outcome.left {
            writeln!(stderr, "{line}")?;
        }
        if let Some(error) = &outcome.error {
            writeln!(
                stderr,
                "Error: {} could not be rolled back: {error}; try again with `tortie confirm {} --roll-back`",
                self.id, self.id
            )?;
            return Ok(false);
        }
        let (left, all) = (outcome.left.len(), self.changes.len());
        if left > 0 {
            writeln!(
                stderr,
                "Not rolled back: {left} of {all} resource(s) are not what they were before"
            )?;
            return Ok(false);
        }
        writeln!(
            stderr,
            "Rolled back: all {all} resource(s) are what they were before"
        )?;
        Ok(true)
    }
}

// === impl State ===

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applying => "applying",
            Self::Waiting => "waiting",
            Self::Confirmed => "confirmed",
            Self::RollingBack => "rolling back",
            Self::RolledBack => "rolled back",
            Self::Failed => "not rolled back",
        })
    }
}

// === impl Change ===

impl Change {
    pub(super) fn new(before: Option<&Resource>, wanted: &Resource) -> Self {
        let key = Key::of(wanted);
        Self {
            kind: key.kind.to_string(),
            namespace: key.namespace,
            name: key.name,
            before: before.map(Resource::to_value),
            wanted: wanted.to_value(),
            after: None,
        }
    }

    pub(super) fn set_after(&mut self, after: &Resource) {
        self.after = Some(after.to_value());
    }

    pub(super) fn key(&self) -> Result<Key> {
        let kind = Kind::from_name(&self.kind);
        let kind = kind.with_context(|| format!("there is no kind `{}`", self.kind))?;
        Ok(Key {
            kind,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }

    pub(super) fn before(&self) -> Result<Option<Resource>> {
        self.read(self.before.as_ref())
    }

    pub(super) fn wanted(&self) -> Result<Option<Resource>> {
        self.read(Some(&self.wanted))
    }

    pub(super) fn after(&self) -> Result<Option<Resource>> {
        self.read(self.after.as_ref())
    }

    fn read(&self, value: Option<&Value>) -> Result<Option<Resource>> {
        let kind = self.key()?.kind;
        let resource = value.map(|value| Resource::decode_stored(kind, value));
        Ok(resource.transpose()?)
    }

    /// What was done with it.
    pub(super) fn verb(&self) -> &'static str {
        match self.before {
            None => "created",
            Some(_) => "changed",
        }
    }
}
