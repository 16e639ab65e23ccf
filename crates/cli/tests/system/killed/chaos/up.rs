//! `tortie up` as a process, on a small disk and with a clock of its own.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tortie_store::socket::{self, SocketStore};
use tortie_testkit::Random;
use tortie_testkit::chaos::{self, Steady};

use super::{await_right, guard, information, steady};
use crate::killed::PATIENCE;
use crate::killed::objects::{NODE, common};
use crate::killed::site::{Datastore, Pods};

const TORTIE: &str = env!("CARGO_BIN_EXE_tortie");

/// The size of the disk.
const DISK: &str = "64m";

/// Years, in seconds of a clock that is wrong.
const YEAR: i64 = 365 * 86_400;

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The process is killed, and started again after a while.
    Killed,
    /// The same while somebody writes.
    KilledWhileWriting,
    /// It is told to end, and started again.
    Ended,
    /// The disk is full for a while.
    DiskFull,
    /// The same, and the process is killed meanwhile; it is started when there is room again.
    KilledOnFullDisk,
    /// The clock jumps by so many seconds, and back.
    ClockJumps(i64),
    /// The process is started with such a clock, and the clock put right later.
    KilledAndClockWrong(i64),
    /// The contents of the datastore are being moved.
    Locked,
}

const FAULTS: [Fault; 10] = [
    Fault::Killed,
    Fault::KilledWhileWriting,
    Fault::Ended,
    Fault::DiskFull,
    Fault::KilledOnFullDisk,
    Fault::ClockJumps(-2 * YEAR),
    Fault::ClockJumps(YEAR / 2),
    Fault::KilledAndClockWrong(-2 * YEAR),
    Fault::KilledAndClockWrong(YEAR / 2),
    Fault::Locked,
];

pub(super) struct World {
    process: Option<Child>,
    datastore: Datastore,
    machine: Machine,
    random: Random,
    is_open: bool,
}

/// What stays when the process ends.
struct Machine {
    pods: Pods,
    folder: TempDir,
    /// Holds the mounts. It ends with its input.
    mounts: Child,
}

impl Machine {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let script = format!(
            "mount -t tmpfs none /var/lib && mount -t tmpfs none /run && mkdir /run/calico && \
             mount -t tmpfs -o size={DISK},mode=700 none {} && echo mounted && exec cat",
            data.display()
        );
        let mut mounts = Command::new("unshare");
        mounts.args(["--mount", "--propagation=private", "sh", "-c", &script]);
        let mounts = mounts.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut mounts = mounts.unwrap();
        let mut said = [0; 8];
        std::io::Read::read_exact(mounts.stdout.as_mut().unwrap(), &mut said).unwrap();
        let machine = Self {
            pods: Pods::new(),
            folder,
            mounts,
        };
        machine.set_clock(0);
        machine
    }

    /// The data folder, as others see it.
    fn data(&self) -> PathBuf {
        let inside = self.folder.path().join("data");
        let root = PathBuf::from(format!("/proc/{}/root", self.mounts.id()));
        root.join(inside.strip_prefix("/").unwrap())
    }

    /// Lets the clock be off by so many seconds.
    fn set_clock(&self, seconds: i64) {
        let next = self.folder.path().join("clock.next");
        fs::write(&next, format!("{seconds:+}")).unwrap();
        fs::rename(next, self.folder.path().join("clock")).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn start(&self) -> Child {
        let file = |name: &str, append: bool| {
            let mut options = fs::File::options();
            let options = options.create(true).write(true).append(append);
            let options = options.truncate(!append);
            options.open(self.folder.path().join(name)).unwrap()
        };
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--mount=/proc/{}/ns/mnt", self.mounts.id()))
            .args([TORTIE, "--data-dir"])
            .arg(self.folder.path().join("data"))
            .args(["up", "--listen=127.0.0.1:0", "--node", NODE])
            .arg("--without=controllers")
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.folder.path())
            .env("NO_COLOR", "1")
            .env("IP", "none")
            .env("LD_PRELOAD", clock_library())
            .env("FAKETIME_TIMESTAMP_FILE", self.folder.path().join("clock"))
            .envs([
                ("FAKETIME_CACHE_DURATION", "1"),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ("NO_FAKE_STAT", "1"),
            ])
            .stdin(Stdio::null())
            .stdout(file("said", false))
            .stderr(file("log", true));
        let spawned = self.pods.node.namespace().run(|| command.spawn());
        spawned.unwrap().unwrap()
    }

    fn await_start(&self, process: &mut Child) {
        let end = Instant::now() + PATIENCE;
        while !fs::read_to_string(self.folder.path().join("said"))
            .is_ok_and(|said| said.contains("Ready."))
        {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {ended:?}: {}", self.log());
            assert!(Instant::now() < end, "it is not ready: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes to the disk until there is no room on it.
    fn fill_disk(&self) {
        let mut file = fs::File::create(self.data().join("filler")).unwrap();
        while file.write_all(&[1; 1 << 13]).is_ok() {}
    }

    fn empty_disk(&self) {
        fs::remove_file(self.data().join("filler")).unwrap();
    }

    /// Whether a client that has had its credentials all the while is answered.
    fn serves(&self) -> bool {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.data().join("kubeconfig"))
            .args(["get", "--raw", "/readyz"])
            .env("HOME", self.folder.path());
        let output = self.pods.node.namespace().run(|| command.output());
        output.unwrap().unwrap().status.success()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.mounts.kill();
        let _ = self.mounts.wait();
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let machine = Machine::new();
        let mut process = machine.start();
        machine.await_start(&mut process);
        let socket = socket::path_beside(&machine.data().join("tortie.redb"));
        let connect = async move { SocketStore::connect(socket).await };
        let datastore = Datastore::new(machine.pods.node.namespace(), connect);
        for resource in common().into_iter().chain(machine.pods.endpoints()) {
            datastore.put(resource);
        }
        let mut world = Self {
            process: Some(process),
            datastore,
            machine,
            random: Random::new(seed),
            is_open: false,
        };
        world.change();
        world
    }

    fn start(&mut self) {
        let mut process = self.machine.start();
        self.machine.await_start(&mut process);
        self.process = Some(process);
    }

    fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        let ended = process.try_wait().unwrap();
        assert!(
            ended.is_none(),
            "it ended: {ended:?}: {}",
            self.machine.log()
        );
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn end(&mut self) {
        let mut process = self.process.take().unwrap();
        let id = Pid::from_raw(process.id().cast_signed()).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        let status = process.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.machine.log());
    }

    fn change(&mut self) {
        self.is_open = self.random.once_in(2);
        self.datastore.put(guard(self.is_open));
    }

    /// The disk is full: what is refused changes nothing.
    fn try_change(&mut self) {
        let is_open = self.random.once_in(2);
        if self.datastore.try_put(guard(is_open)).is_ok() {
            self.is_open = is_open;
        }
    }

    /// Waits until writes are taken again.
    fn await_room(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.datastore.try_put(guard(self.is_open)).is_err() {
            assert!(Instant::now() < end, "{}", self.machine.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill_while_writing(&mut self) {
        let process = self.process.as_ref().unwrap().id();
        let moment = Duration::from_micros(self.random.below(20_000));
        let killer = thread::spawn(move || {
            thread::sleep(moment);
            let process = Pid::from_raw(process.cast_signed()).unwrap();
            kill_process(process, Signal::KILL).unwrap();
        });
        for number in 0..1000 {
            if self.datastore.try_put(guard(number % 2 == 0)).is_err() {
                break;
            }
        }
        killer.join().unwrap();
        self.process.take().unwrap().wait().unwrap();
    }
}

impl chaos::World for World {
    type Fault = Fault;

    fn steady(&self) -> Steady {
        steady(&self.machine.pods)
    }

    fn draw(&mut self) -> Fault {
        let number = self.random.below(FAULTS.len() as u64);
        FAULTS[usize::try_from(number).unwrap()]
    }

    fn strike(&mut self, fault: &Fault, steady: &Steady) {
        let steady = &steady.open;
        match *fault {
            Fault::Killed => {
                self.kill();
                steady.go_on();
                self.start();
                self.change();
            }
            Fault::KilledWhileWriting => {
                self.kill_while_writing();
                steady.go_on();
                self.start();
                self.change();
            }
            Fault::Ended => {
                self.end();
                self.start();
                self.change();
            }
            Fault::DiskFull => {
                self.machine.fill_disk();
                self.try_change();
                steady.go_on();
                self.try_change();
                self.machine.empty_disk();
                self.await_room();
                self.change();
            }
            Fault::KilledOnFullDisk => {
                self.machine.fill_disk();
                self.try_change();
                self.kill();
                steady.go_on();
                self.machine.empty_disk();
                self.start();
                self.change();
            }
            Fault::ClockJumps(seconds) => {
                self.machine.set_clock(seconds);
                // The library looks at the file once in a second.
                thread::sleep(Duration::from_millis(1100));
                self.change();
                steady.go_on();
                self.machine.set_clock(0);
            }
            Fault::KilledAndClockWrong(seconds) => {
                self.kill();
                self.machine.set_clock(seconds);
                self.start();
                self.change();
                steady.go_on();
                self.machine.set_clock(0);
            }
            Fault::Locked => {
                self.datastore.put(information(false));
                steady.go_on();
                self.change();
                steady.go_on();
                self.datastore.put(information(true));
            }
        }
    }

    fn await_right(&mut self) {
        await_right(&self.machine.pods, self.is_open, || self.machine.log());
        let end = Instant::now() + PATIENCE;
        while !self.machine.serves() {
            assert!(
                Instant::now() < end,
                "it does not serve: {}",
                self.machine.log()
            );
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The library that gives a process a clock of its own.
fn clock_library() -> PathBuf {
    let libraries = fs::read_dir("/usr/lib").unwrap();
    let libraries =
        libraries.map(|entry| entry.unwrap().path().join("faketime/libfaketimeMT.so.1"));
    let found = libraries.into_iter().find(|path| Path::exists(path));
    found.expect("libfaketime, which setup/test-deps installs")
}
