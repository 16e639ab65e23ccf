//! The API server of `tortie up` with many watches and a steady rate of writes.
//!
//! Prints `name value unit` lines. Arguments: how many watches, writes per second, and seconds.

#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing better to do than to say where"
)]

mod connection;
mod histogram;
mod load;
mod process;
mod stalled;
#[path = "../support/usage.rs"]
mod usage;

use std::time::Duration;

use load::{Load, Spread};
use process::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn main() {
    let numbers: Vec<u32> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let number = |index: usize, usual: u32| numbers.get(index).copied().unwrap_or(usual);
    let load = Load {
        watches: number(0, 1_000),
        rate: number(1, 2_000).max(1),
        time: Duration::from_secs(number(2, 20).into()),
    };
    allow_files();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for spread in [Spread::Namespaces, Spread::One] {
        // Each begins with a server that nobody has used.
        let server = Server::start();
        runtime.block_on(load.run(&server, spread));
    }
    let server = Server::start();
    runtime.block_on(stalled::run(&server, &load));
}

/// As many open files as there may be: each watch has one.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
}
