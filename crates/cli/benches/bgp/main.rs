//! `tortie bgp` as a process, on a real etcd with 20,000 blocks: what BIRD's configuration costs, all at once and change by
//! change.
//!
//! Prints `name value unit` lines. `once` is `bgp render`, from its start to its end, as confd's one shot. The rest is the
//! daemon: until its first configuration stands in its file, with BIRD's parser having read it, and from a change in etcd to the
//! file with it; `elsewhere` is what 1,000 changes of other nodes cost that are none of its business. Arguments pick worlds whose
//! names start so: `mesh(5000`.

#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing better to do than to say where"
)]

#[path = "../support/usage.rs"]
mod usage;
mod world;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tortie_testkit::Etcd;

use world::{Shape, World, node_name};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tortie");

const SIZES: [usize; 3] = [100, 1_000, 5_000];

/// How often what takes little is done.
const RUNS: u16 = 5;

/// Changes of other nodes that are none of this one's business.
const ELSEWHERE: u16 = 1_000;

/// How long a change may take to reach the file.
const PATIENCE: Duration = Duration::from_mins(1);

/// Between two looks at it.
const INTERVAL: Duration = Duration::from_micros(500);

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    for (name, shape) in [("mesh", Shape::Mesh), ("reflectors", Shape::Reflectors)] {
        for nodes in SIZES {
            let name = format!("{name}({nodes})");
            if given.is_empty() || given.iter().any(|given| name.starts_with(given)) {
                measure(&name, shape, nodes);
            }
        }
    }
}

fn measure(name: &str, shape: Shape, nodes: usize) {
    let etcd = Etcd::start().unwrap();
    let world = World::write(etcd.endpoint(), shape, nodes);
    let once: Vec<(f64, f64)> = (0..RUNS).map(|_| once(&etcd)).collect();
    let cpu = once.iter().map(|(cpu, _)| *cpu).fold(f64::MAX, f64::min);
    let memory = once.iter().map(|(_, memory)| *memory).fold(0.0, f64::max);
    println!("{name}/once_cpu {cpu:.3} s");
    println!("{name}/once_peak {memory:.1} MB");

    let mut daemon = Daemon::start(&etcd);
    println!("{name}/first {:.0} ms", millis(daemon.first));
    println!("{name}/first_cpu {:.3} s", daemon.cpu());
    println!("{name}/peak {:.1} MB", daemon.megabytes("VmHWM:"));
    println!("{name}/resident {:.1} MB", daemon.megabytes("VmRSS:"));
    let (before, mut times) = (daemon.cpu(), Vec::new());
    for run in 0..RUNS {
        let text = daemon.text();
        let start = Instant::now();
        world.change(run);
        daemon.await_change(&text);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("{name}/change {:.1} ms", millis(times[times.len() / 2]));
    let each = (daemon.cpu() - before) / f64::from(RUNS);
    println!("{name}/change_cpu {each:.3} s");

    let (before, text) = (daemon.cpu(), daemon.text());
    world.change_elsewhere(ELSEWHERE);
    // The last change is behind all others on its way.
    world.change(RUNS);
    daemon.await_change(&text);
    let each = (daemon.cpu() - before - each).max(0.0) / f64::from(ELSEWHERE);
    println!("{name}/elsewhere_cpu {:.1} us", each * 1e6);
}

/// Runs a program, and prints its processor time in seconds and the most memory that it had in KB.
const MEASURED: &str = "\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)";

/// Renders once, and gives processor time in seconds and memory in MB.
fn once(etcd: &Etcd) -> (f64, f64) {
    let mut command = Command::new("python3");
    command.args(["-c", MEASURED, PROGRAM, "bgp", "render", "--node"]);
    command.arg(node_name(0));
    let output = on(command, etcd).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let (cpu, kilobytes) = printed.trim().split_once(' ').unwrap();
    let kilobytes: f64 = kilobytes.parse().unwrap();
    (cpu.parse().unwrap(), kilobytes / 1024.0)
}

fn on(mut command: Command, etcd: &Etcd) -> Command {
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("DATASTORE_TYPE", "etcdv3")
        .env("ETCD_ENDPOINTS", etcd.endpoint())
        .stdin(Stdio::null());
    command
}

/// A daemon without a BIRD that runs.
struct Daemon {
    child: Child,
    folder: TempDir,
    first: Duration,
}

impl Daemon {
    fn start(etcd: &Etcd) -> Self {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new(PROGRAM);
        command
            .args(["bgp", "--no-bird", "--node", &node_name(0)])
            .arg("--config-folder")
            .arg(folder.path())
            .arg("--run-folder")
            .arg(folder.path());
        let start = Instant::now();
        let child = on(command, etcd).spawn().unwrap();
        let mut daemon = Self {
            child,
            folder,
            first: Duration::ZERO,
        };
        daemon.await_change("");
        daemon.first = start.elapsed();
        daemon
    }

    fn text(&self) -> String {
        fs::read_to_string(self.folder.path().join("bird.cfg")).unwrap_or_default()
    }

    /// Waits until the file has another text.
    fn await_change(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while self.text() == text {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < end, "{ended:?}");
            thread::sleep(INTERVAL);
        }
    }

    fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.child.id())
    }

    fn megabytes(&self, field: &str) -> f64 {
        usage::megabytes(self.child.id(), field)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
