//! Whether the agent works, and whether all that it should enforce is in force.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::node_status::Problem;

/// The loop must come round at least this often, or the agent is not alive.
const ALIVE_WITHIN: Duration = Duration::from_secs(90);

/// Whether the agent is alive and ready.
#[derive(Debug)]
pub struct Health {
    state: Mutex<State>,
}

/// What can keep an agent from being ready, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// What the datastore holds is known, and it is ready.
    Datastore,
    /// The agent runs with what the datastore says.
    Configuration,
    /// Everything is in force.
    Dataplane,
}

#[derive(Debug)]
struct State {
    last_round: Instant,
    problems: BTreeMap<Part, String>,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Datastore => "datastore",
            Self::Configuration => "configuration",
            Self::Dataplane => "data plane",
        }
    }
}

impl Health {
    /// Alive and not ready.
    pub fn new() -> Self {
        let problems = [
            (
                Part::Datastore,
                "the datastore has not been read completely",
            ),
            (Part::Dataplane, "not programmed yet"),
        ];
        Self {
            state: Mutex::new(State {
                last_round: Instant::now(),
                problems: problems
                    .map(|(part, problem)| (part, problem.to_owned()))
                    .into(),
            }),
        }
    }

    /// The loop came round.
    pub(crate) fn round(&self) {
        self.lock().last_round = Instant::now();
    }

    /// What is wrong with a part; nothing if it is as it should be.
    pub(crate) fn set(&self, part: Part, problem: Option<String>) {
        let problems = &mut self.lock().problems;
        match problem {
            Some(problem) => problems.insert(part, problem),
            None => problems.remove(&part),
        };
    }

    /// Whether the agent works; why not, if it does not.
    pub fn liveness(&self) -> Result<(), String> {
        let since = self.lock().last_round.elapsed();
        if since <= ALIVE_WITHIN {
            return Ok(());
        }
        Err(format!("no round for {} seconds", since.as_secs()))
    }

    /// All that keeps the agent from being ready, by part.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let problem = |what: &str, reason: String| Problem {
            what: what.to_owned(),
            name: String::new(),
            reason,
        };
        let hung = self.liveness().err();
        let hung = hung.map(|reason| problem("agent", reason));
        let state = self.lock();
        let parts = state.problems.iter();
        let parts = parts.map(|(part, reason)| problem(part.name(), reason.clone()));
        hung.into_iter().chain(parts).collect()
    }

    /// Whether policy is enforced as the datastore says; all that keeps it from being so, if it is not.
    pub fn readiness(&self) -> Result<(), String> {
        self.liveness()?;
        let problems = &self.lock().problems;
        if problems.is_empty() {
            return Ok(());
        }
        let lines = problems.iter().map(|(part, problem)| match part {
            Part::Datastore => problem.clone(),
            part => format!("{}: {problem}", part.name()),
        });
        Err(lines.collect::<Vec<_>>().join("\n"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}
