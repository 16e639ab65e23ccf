//! Programming the kernel: rules and sets written, changed and read, by this crate and by the programs for it.
//!
//! `bench/kernel [NAME…]` prints `name value unit` lines, medians of several runs; `NAME` picks the measurements whose names
//! start so. Each is wall time in a network namespace of its own, from the values in memory (or the file, for a program) to
//! the kernel's answer. Needs root, and `nft`, `iptables` and `ipset` to compare with.

mod ours;
mod programs;
mod work;

use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tortie_kernel::namespace;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// What to measure: a name, and what measures and prints it.
type Measurement = (&'static str, fn(&Report) -> Outcome);

fn main() -> Outcome {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    for (name, measure) in ours::MEASUREMENTS.iter().chain(programs::MEASUREMENTS) {
        if wanted.is_empty() || wanted.iter().any(|w| name.starts_with(&**w)) {
            namespace::run_in_new(|| measure(&Report { name }))??;
        }
    }
    Ok(())
}

/// Where the figures of one measurement go.
pub(crate) struct Report {
    name: &'static str,
}

impl Report {
    /// Prints one figure.
    pub(crate) fn value(&self, what: &str, value: f64, unit: &str) -> Outcome {
        let name = self.name;
        writeln!(std::io::stdout(), "{name}/{what} {value:.3} {unit}")?;
        Ok(())
    }

    /// Prints the median time.
    pub(crate) fn time(&self, what: &str, mut times: Vec<Duration>) -> Outcome {
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        self.value(what, median.as_secs_f64() * 1000.0, "ms")
    }
}

/// How long it takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(Duration, T)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed(), result))
}
