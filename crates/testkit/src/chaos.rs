//! Faults drawn at random under steady traffic, and what is counted meanwhile.

use std::fmt::{Debug, Write as _};
use std::time::{Duration, Instant};

use crate::net::Datagrams;

/// A node that things happen to.
pub trait World {
    /// What may happen.
    type Fault: Debug;

    /// Datagrams that policy always lets through, and such that it never does.
    fn steady(&self) -> Steady;

    /// What happens next.
    fn draw(&mut self) -> Self::Fault;

    /// Lets it happen, policies change meanwhile, and it end.
    fn strike(&mut self, fault: &Self::Fault, steady: &Steady);

    /// Waits until everything is as the datastore says.
    fn await_right(&mut self);
}

/// Datagrams that go on.
#[derive(Debug)]
pub struct Steady {
    /// All of them should arrive.
    pub open: Datagrams,
    /// None of them should.
    pub closed: Datagrams,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Figures {
    faults: usize,
    sent: u64,
    passed: u64,
    /// The faults in which something passed that must not.
    openers: Vec<String>,
    /// The fault in which each datagram was sent that did not arrive.
    droppers: Vec<String>,
    /// From the end of each fault until all was right, and which it was.
    until_right: Vec<(Duration, String)>,
}

/// Lets so many faults happen.
pub fn run(world: &mut impl World, faults: usize) -> Figures {
    let mut figures = Figures::default();
    world.await_right();
    let steady = world.steady();
    let mut starts = Vec::new();
    for _ in 0..faults {
        let fault = world.draw();
        let name = format!("{fault:?}");
        starts.push((Instant::now(), name.clone()));
        world.strike(&fault, &steady);
        let end = Instant::now();
        world.await_right();
        figures.until_right.push((end.elapsed(), name.clone()));
        figures.faults += 1;
        if steady.closed.arrived() > figures.passed {
            figures.passed = steady.closed.arrived();
            figures.openers.push(name);
        }
    }
    figures.sent = steady.open.sent() + steady.closed.sent();
    figures.passed = steady.closed.arrived();
    for sent in steady.open.lost() {
        let before = starts.iter().rev().find(|(start, _)| *start <= sent);
        let after = before.map(|(start, name)| format!("{name} after {:?}", sent - *start));
        figures.droppers.extend(after);
    }
    figures.until_right.sort();
    figures
}

/// How many faults, and with which seed, as `CHAOS_FAULTS` and `CHAOS_SEED` say.
///
/// # Panics
/// If one of them is not a number.
pub fn asked_for() -> (usize, u64) {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name}={text} is not a number"))
        })
    };
    let faults = usize::try_from(number("CHAOS_FAULTS", 1000)).unwrap_or(usize::MAX);
    (faults, number("CHAOS_SEED", 1))
}

impl Figures {
    /// Panics unless nothing passed that must not, and next to nothing was lost.
    ///
    /// # Panics
    /// If something is not as it should be.
    #[track_caller]
    pub fn check(&self) {
        assert_eq!(self.passed, 0, "{self:?}");
        // Receivers of a busy machine may miss one; that single faults lose nothing is shown elsewhere.
        let lost = self.droppers.len() as u64;
        assert!(lost * 1000 <= self.sent, "{self:?}");
    }

    /// `name value unit` lines, and a line for each fault in which something was not as it should be.
    #[must_use]
    pub fn lines(&self, world: &str) -> String {
        let mut out = String::new();
        let last = self.until_right.len().saturating_sub(1);
        let mut line = |name: &str, value: &dyn std::fmt::Display, unit: &str| {
            let _ = writeln!(out, "{world}_{name} {value} {unit}");
        };
        line("faults", &self.faults, "faults");
        line("packets", &self.sent, "packets");
        line("wrongly_passed", &self.passed, "packets");
        line("wrongly_dropped", &self.droppers.len(), "packets");
        for (name, at) in [("p50", last / 2), ("p99", last * 99 / 100), ("max", last)] {
            let seconds = self
                .until_right
                .get(at)
                .map_or(0.0, |(time, _)| time.as_secs_f64());
            line(
                &format!("until_right_{name}"),
                &format!("{seconds:.3}"),
                "s",
            );
        }
        for fault in &self.openers {
            let _ = writeln!(out, "# {world}: packets passed: {fault}");
        }
        for fault in &self.droppers {
            let _ = writeln!(out, "# {world}: a packet was lost: {fault}");
        }
        for (time, fault) in self.until_right.iter().rev().take(3) {
            let _ = writeln!(out, "# {world}: among the slowest: {fault}, {time:.3?}");
        }
        out
    }
}
