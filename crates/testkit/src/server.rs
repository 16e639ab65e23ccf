//! One running server, its temporary folder, and the watchdog that ends both.
//!
//! The server is the child of a small shell, the watchdog, whose standard input is a pipe held by
//! the test's process and nobody else. When the pipe closes, because the [`Server`] was dropped or
//! because the process ended in whatever way (returned, aborted, killed; statics are never
//! dropped), the watchdog kills the server and removes the folder. It is in a process group of its
//! own, so what ends the test's group, as ^C and nextest's timeout do, leaves it to do its work.
//!
//! A server that all tests of a run share outlives the test that started it: another shell holds the pipe until the runner
//! is gone ([`Server::keep`]).

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, TcpListener},
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    command::command,
    error::{Error, Result, cannot},
};

/// `$1` is the folder, the rest the server's command line. The server's process id goes to standard
/// output. A line ends the server, with a confirmation, if it runs, and starts it again if not. Waiting for the server
/// before removing its folder keeps it from writing there meanwhile.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
folder=$1
shift
: >"$folder/log"
start() { "$@" </dev/null >>"$folder/log" 2>&1 & server=$!; echo $!; }
stop() { kill -KILL $server; wait $server; server=; }
start "$@"
while read -r _; do
  if [ "$server" ]; then stop; echo stopped; else start "$@"; fi
done
exec >/dev/null
[ -z "$server" ] || stop
rm -rf "$folder"
"#;

/// Holds its standard output, a watchdog's lifeline, until the process `$1` is gone, and removes `$2`.
const KEEPER: &str = r#"
trap '' HUP INT TERM
while kill -0 "$1" 2>/dev/null; do sleep 1; done
rm -rf "$2"
"#;

/// A start takes 2 s at most on a quiet machine. Long enough for one where many start at once.
const READY_TIMEOUT: Duration = Duration::from_mins(1);

const READY_INTERVAL: Duration = Duration::from_millis(20);

const LOG_TAIL_LINES: usize = 30;

/// How many ports are tried. One try in thousands finds its port taken.
const PORT_ATTEMPTS: usize = 5;

/// A running server. Dropping it ends the server and removes its folder before it returns.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    folder: PathBuf,
    pid: AtomicU32,
    /// None if another process started the server.
    watchdog: Option<Watchdog>,
}

#[derive(Debug)]
struct Watchdog {
    process: Child,
    /// Closing it is the signal to end. Always there until the drop.
    lifeline: Option<ChildStdin>,
    /// What it answers.
    answers: Mutex<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts a command line in a folder, which from then on goes with the server. Its environment
    /// is that of [`command`].
    pub(crate) fn start(name: &'static str, folder: TempDir, server: &Command) -> Result<Self> {
        let mut watchdog = command("sh", folder.path())?
            .args(["-c", WATCHDOG, "tortie-watchdog"])
            .arg(folder.path())
            .arg(server.get_program())
            .args(server.get_args())
            .current_dir(folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot(format!("start a watchdog for `{name}`")))?;
        let lifeline = watchdog.stdin.take();
        let stdout = watchdog
            .stdout
            .take()
            .expect("its standard output is piped");
        // The watchdog removes the folder from here on.
        let server = Self {
            name,
            folder: folder.keep(),
            pid: AtomicU32::new(0),
            watchdog: Some(Watchdog {
                process: watchdog,
                lifeline,
                answers: Mutex::new(BufReader::new(stdout)),
            }),
        };
        server.learn_pid()?;
        Ok(server)
    }

    /// A server that another process started and keeps.
    pub(crate) fn of_another(name: &'static str, folder: PathBuf, pid: u32) -> Self {
        Self {
            name,
            folder,
            pid: AtomicU32::new(pid),
            watchdog: None,
        }
    }

    /// From now on it ends only when a process has ended, and `folder` is removed then too.
    pub(crate) fn keep(&self, until: u32, folder: &Path) -> Result<()> {
        let lifeline = self.watchdog()?.lifeline.as_ref();
        let lifeline = lifeline.expect("it is there until the drop").as_fd();
        let lifeline = lifeline
            .try_clone_to_owned()
            .map_err(cannot(format!("keep `{}`", self.name)))?;
        command("sh", folder)?
            .args(["-c", KEEPER, "tortie-keeper", &until.to_string()])
            .arg(folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(lifeline)
            .stderr(Stdio::null())
            .spawn()
            .map(drop)
            .map_err(cannot(format!("keep `{}`", self.name)))
    }

    /// Kills the server, as a crash would. Its folder stays, and [`Server::start_again`] continues with it.
    pub(crate) fn kill(&self) -> Result<()> {
        self.ask()?;
        self.answer().map(drop)
    }

    /// Starts a server that was killed with the same command line.
    pub(crate) fn start_again(&self) -> Result<()> {
        self.ask()?;
        self.learn_pid()
    }

    fn ask(&self) -> Result<()> {
        let lifeline = self.watchdog()?.lifeline.as_ref();
        let mut lifeline = lifeline.expect("it is there until the drop");
        lifeline
            .write_all(b"\n")
            .map_err(cannot(format!("ask the watchdog of `{}`", self.name)))
    }

    fn answer(&self) -> Result<String> {
        let mut line = String::new();
        let answers = &self.watchdog()?.answers;
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        let read = answers.read_line(&mut line);
        read.map_err(cannot(format!("hear of the watchdog of `{}`", self.name)))?;
        Ok(line.trim().to_owned())
    }

    fn watchdog(&self) -> Result<&Watchdog> {
        let foreign = || io::Error::other("another test started it, and others use it");
        let watchdog = self.watchdog.as_ref().ok_or_else(foreign);
        watchdog.map_err(cannot(format!("ask the watchdog of `{}`", self.name)))
    }

    fn learn_pid(&self) -> Result<()> {
        let name = self.name;
        let parsed = self.answer()?.parse().map_err(io::Error::other);
        let pid = parsed.map_err(cannot(format!("learn the process id of `{name}`")))?;
        self.pid.store(pid, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until `probe` has no more objection, or the server ends, or the time is over. The
    /// probe gets the log so far.
    pub(crate) fn wait_ready(&self, probe: impl Fn(&str) -> Result<(), String>) -> Result<()> {
        let start = Instant::now();
        loop {
            let ended = self.has_ended();
            let log = self.log()?;
            if ended {
                return Err(Error::Ended {
                    server: self.name,
                    log: tail(&log),
                });
            }
            let Err(reason) = probe(&log) else {
                return Ok(());
            };
            let after = start.elapsed();
            if after > READY_TIMEOUT {
                return Err(Error::NotReady {
                    server: self.name,
                    after,
                    reason,
                    log: tail(&log),
                });
            }
            thread::sleep(READY_INTERVAL);
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Everything the server wrote to its standard output and standard error.
    pub(crate) fn log(&self) -> Result<String> {
        let path = self.folder.join("log");
        let bytes = fs::read(&path).map_err(cannot(format!("read {}", path.display())))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Its watchdog waits for it only at the end, so until then an ended server is a zombie and its
    /// id is not used again.
    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        // `PID (NAME) STATE …`, where the name may hold anything.
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        matches!(state, None | Some('Z' | 'X'))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Nobody else waits for it, so this cannot fail, and a drop could not tell.
        let _ = self.process.wait();
    }
}

/// Calls `start` with a port that is free now, and again with another if that was taken before the
/// server had it.
pub(crate) fn on_free_port<T>(start: impl Fn(u16) -> Result<T>) -> Result<T> {
    let mut attempts = 1;
    loop {
        match start(free_port()?) {
            Err(error) if error.is_port_taken() && attempts < PORT_ATTEMPTS => attempts += 1,
            result => return result,
        }
    }
}

/// A temporary folder for a server of this name.
pub(crate) fn folder(name: &str) -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(&format!("tortie-{name}-"))
        .tempdir()
        .map_err(cannot("create a temporary folder"))
}

fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(cannot("find a free port of 127.0.0.1"))
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn start(script: &str) -> Server {
        let folder = folder("test").unwrap();
        let mut server = command("sh", folder.path()).unwrap();
        server.args(["-c", script]);
        Server::start("script", folder, &server).unwrap()
    }

    #[test]
    fn a_server_that_ends_is_reported_with_its_log() {
        let server = start("seq 100; echo cannot go on >&2; exit 1");
        let message = server
            .wait_ready(|_| Err("not yet".to_owned()))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("`script` ended while starting"),
            "{message}"
        );
        assert!(message.ends_with("\n99\n100\ncannot go on"), "{message}");
        assert!(!message.contains("\n70\n"), "{message}");
    }

    #[test]
    fn a_drop_ends_the_server_and_removes_its_folder() {
        let server = start("trap '' TERM; touch file; echo up; while :; do sleep 1; done");
        server
            .wait_ready(|log| {
                if log.contains("up") {
                    Ok(())
                } else {
                    Err(String::new())
                }
            })
            .unwrap();
        let (folder, process) = (server.folder.clone(), format!("/proc/{}", server.pid()));
        assert!(folder.join("file").exists() && Path::new(&process).exists());
        drop(server);
        assert!(!folder.exists() && !Path::new(&process).exists());
    }

    #[test]
    fn a_killed_server_can_be_started_again_in_its_folder() {
        let server = start("echo again >>file; echo up; while :; do sleep 1; done");
        let lines = |count: usize| {
            let file = server.folder.join("file");
            server.wait_ready(|_| match fs::read_to_string(&file) {
                Ok(text) if text.lines().count() == count => Ok(()),
                other => Err(format!("{other:?}")),
            })
        };
        lines(1).unwrap();
        let first = server.pid();
        server.kill().unwrap();
        assert!(!Path::new(&format!("/proc/{first}")).exists());
        server.start_again().unwrap();
        lines(2).unwrap();
        assert_ne!(server.pid(), first);
    }

    #[test]
    fn a_taken_port_is_given_up_for_another() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let tried = RefCell::new(Vec::new());
        let got = on_free_port(|port| {
            tried.borrow_mut().push(port);
            if tried.borrow().len() < 3 {
                let log = "listen tcp 127.0.0.1:1: bind: address already in use".to_owned();
                return Err(Error::Ended {
                    server: "script",
                    log,
                });
            }
            Ok(port)
        });
        assert_eq!(got.unwrap(), tried.borrow()[2]);
        assert!(!tried.borrow().contains(&taken.local_addr().unwrap().port()));
    }

    #[test]
    fn other_failures_are_not_retried() {
        let tried = RefCell::new(0);
        let result: Result<()> = on_free_port(|_| {
            *tried.borrow_mut() += 1;
            Err(Error::Ended {
                server: "script",
                log: "unknown flag".to_owned(),
            })
        });
        assert!(result.is_err());
        assert_eq!(*tried.borrow(), 1);
    }
}
