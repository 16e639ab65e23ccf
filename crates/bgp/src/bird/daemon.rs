//! BIRD's process: started, taken over, watched, and ended in the way that fits.
//!
//! BIRD is in a process group of its own and writes its log to a FIFO, so that it goes on when this process ends, and the
//! next one finds it again by its socket. How it ends decides what peers do, as seen with BIRD 2.0.12:
//!
//! | end                             | peers                                   | kernel's routes     |
//! |---------------------------------|-----------------------------------------|---------------------|
//! | `graceful restart`, SIGKILL     | keep its routes for their restart time  | stay                |
//! | `down`, SIGTERM                 | drop them at once                       | stay with `persist` |
//! | SIGKILL while it still recovers | drop them: RFC 4724 allows one restart  | stay                |

mod log;
mod process;
mod recovery;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;

use self::log::Log;
use self::process::{Process, config_of};
use super::command::Configure;
use super::error::{Error, Result};
use super::socket::{Limits, Socket};

/// Between two tries to reach a BIRD that has just been started.
const START_INTERVAL: Duration = Duration::from_millis(20);

/// Between two looks at whether a recovery is over.
const RECOVERY_INTERVAL: Duration = Duration::from_millis(200);

/// After a recovery: how long it may take until peers have been told everything, and then of the end.
const TELLING: Duration = Duration::from_secs(2);

/// How a BIRD is run, and when it counts as stuck.
#[derive(Debug, Clone)]
pub struct Options {
    pub program: PathBuf,
    pub config: PathBuf,
    pub socket: PathBuf,
    /// The FIFO that BIRD's log goes through. With `log stderr all` in its configuration, lines say how much they matter.
    pub log: PathBuf,
    /// Between the end of one and the start of the next.
    pub backoff: Backoff,
    /// One that ran for this long has not failed at its start.
    pub stable_after: Duration,
    /// How long it may take until it listens.
    pub start_limit: Duration,
    /// Between two questions for its status.
    pub probe_interval: Duration,
    /// How long an answer may take.
    pub probe_limit: Duration,
    /// So many in a row without an answer: it is stuck.
    pub probe_failures: u32,
    /// How long it may take to say good-bye to its peers.
    pub end_limit: Duration,
    /// How long a restart that was ordered waits for one that is not over.
    pub recovery_limit: Duration,
}

/// Runs BIRD, and another one when it ends.
#[derive(Debug)]
pub struct Daemon {
    options: Options,
    socket: Socket,
}

/// What is to be done with BIRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Another process, such as of a newer version. Peers bridge it.
    Restart,
    /// The node leaves: peers are told, and nothing is started again.
    Down,
}

/// The BIRD that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub process: u32,
    pub version: String,
    /// It ran before this process did.
    pub was_taken_over: bool,
    /// How many were started before it.
    pub starts: u64,
}

/// Why watching ended.
#[derive(Debug)]
enum End {
    Exited(String),
    Stuck,
    Ordered(Order),
}

impl Options {
    pub fn new(program: &Path, config: &Path, socket: &Path) -> Self {
        let mut log = socket.as_os_str().to_owned();
        log.push(".log");
        Self {
            program: program.to_owned(),
            config: config.to_owned(),
            socket: socket.to_owned(),
            log: log.into(),
            backoff: Backoff {
                first: Duration::from_millis(20),
                most: Duration::from_secs(20),
                jitter: 0.1,
            },
            stable_after: Duration::from_mins(1),
            start_limit: Duration::from_secs(30),
            probe_interval: Duration::from_secs(5),
            probe_limit: Duration::from_secs(20),
            probe_failures: 3,
            end_limit: Duration::from_secs(20),
            recovery_limit: Duration::from_secs(30),
        }
    }
}

impl Daemon {
    pub fn new(options: Options) -> Self {
        let socket = Socket::new(&options.socket);
        Self { options, socket }
    }

    /// Keeps BIRD running until it is ordered down. To leave it running, drop the future: whoever runs this next takes it
    /// over. Fails only where it could never succeed: the socket is another BIRD's, or the log cannot be made.
    pub async fn run(
        &self,
        mut orders: mpsc::Receiver<Order>,
        running: watch::Sender<Option<Running>>,
    ) -> Result<()> {
        let log = Log::open(&self.options.log)?;
        let last_said = log.last_said();
        tokio::select! {
            ended = log.forward() => ended,
            done = self.supervise(&mut orders, &running, &last_said) => done,
        }
    }

    /// Ends the BIRD that was left running, if there is one, and waits until its peers know. That of others is left alone.
    pub async fn end(&self) -> Result<bool> {
        match self.take_over().await {
            Ok(Some(mut process)) => {
                self.say_good_bye(&mut process).await;
                Ok(true)
            }
            Ok(None) | Err(Error::Foreign { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn supervise(
        &self,
        orders: &mut mpsc::Receiver<Order>,
        running: &watch::Sender<Option<Running>>,
        last_said: &log::LastSaid,
    ) -> Result<()> {
        let mut retries = Retries::new(self.options.backoff);
        let mut starts = 0;
        loop {
            let begun = Instant::now();
            let found = self.take_over_or_start(last_said, starts > 0).await;
            let (mut process, was_taken_over) = match found {
                Ok(found) => found,
                Err(error @ (Error::Foreign { .. } | Error::Hidden { .. })) => return Err(error),
                Err(error) => {
                    let delay = retries.failed();
                    tracing::warn!(error = %Causes(&error), ?delay, "BIRD cannot be started; it is tried again");
                    if self.is_down_while(delay, orders).await {
                        return Ok(());
                    }
                    continue;
                }
            };
            let id = process.id();
            running.send_replace(Some(self.describe(id, was_taken_over, starts).await));
            starts += 1;
            let end = self.watch(&mut process, orders).await;
            if let End::Ordered(Order::Down) = end {
                self.say_good_bye(&mut process).await;
                running.send_replace(None);
                tracing::info!(process = id, "BIRD has ended, and its peers know");
                return Ok(());
            }
            match end {
                End::Exited(how) => {
                    tracing::warn!(
                        process = id,
                        how,
                        "BIRD ended by itself; another one is started"
                    );
                }
                End::Stuck => {
                    tracing::warn!(
                        process = id,
                        "BIRD does not answer any more; another one is started"
                    );
                    self.kill(&mut process).await;
                }
                End::Ordered(_) => {
                    self.end_gracefully(&mut process).await;
                    tracing::info!(process = id, "BIRD is restarted");
                }
            }
            running.send_replace(None);
            if begun.elapsed() >= self.options.stable_after {
                retries.reset();
            }
            if self.is_down_while(retries.failed(), orders).await {
                return Ok(());
            }
        }
    }

    /// Waits, and says whether BIRD, which does not run, is to stay so.
    async fn is_down_while(&self, delay: Duration, orders: &mut mpsc::Receiver<Order>) -> bool {
        let end = Instant::now() + delay;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(end) => return false,
                Some(order) = orders.recv() => if order == Order::Down { return true; },
            }
        }
    }

    async fn take_over_or_start(
        &self,
        last_said: &log::LastSaid,
        is_restart: bool,
    ) -> Result<(Process, bool)> {
        let found = if let Some(process) = self.take_over().await? {
            tracing::info!(
                process = process.id(),
                "BIRD runs already and is taken over"
            );
            (process, true)
        } else {
            let recovers = is_restart || recovery::is_needed(&self.options.socket).await;
            (self.start(last_said, recovers).await?, false)
        };
        // The file may have been replaced after it was read, and before the socket was there to tell.
        if let Err(error) = self.socket.configure(&Configure::default()).await {
            tracing::warn!(error = %Causes(&error), "BIRD does not take the configuration in place");
        }
        Ok(found)
    }

    /// The BIRD behind the socket, if there is one.
    async fn take_over(&self) -> Result<Option<Process>> {
        let connection = match self.socket.connect().await {
            Ok(connection) => connection,
            Err(Error::Unreachable { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let hidden = || Error::Hidden {
            socket: self.options.socket.clone(),
        };
        let process = Process::found(connection).await?.ok_or_else(hidden)?;
        let theirs = config_of(process.id()).ok_or_else(hidden)?;
        if theirs != self.options.config {
            return Err(Error::Foreign {
                socket: self.options.socket.clone(),
                theirs,
                ours: self.options.config.clone(),
            });
        }
        Ok(Some(process))
    }

    async fn start(&self, last_said: &log::LastSaid, recovers: bool) -> Result<Process> {
        let options = &self.options;
        last_said.forget();
        let mut process = Process::start(options, recovers)?;
        let listening = async {
            // One that is killed leaves its socket behind, where nobody listens.
            while self.socket.connect().await.is_err() {
                sleep(START_INTERVAL).await;
            }
        };
        let reason = tokio::select! {
            biased;
            how = process.ended() => how,
            waited = timeout(options.start_limit, listening) => match waited {
                Ok(()) => {
                    tracing::info!(process = process.id(), "BIRD is started");
                    return Ok(process);
                }
                Err(_) => format!("it did not listen within {} s", options.start_limit.as_secs()),
            },
        };
        self.kill(&mut process).await;
        // What it has written may still be in the FIFO.
        sleep(START_INTERVAL).await;
        let reason = match last_said.get() {
            Some(said) => format!("{reason}: {said}"),
            None => reason,
        };
        Err(Error::Ended { reason })
    }

    async fn describe(&self, process: u32, was_taken_over: bool, starts: u64) -> Running {
        let connected = self.socket.connect().await;
        let version = connected.map_or_else(|_| String::new(), |one| one.version().to_owned());
        Running {
            process,
            version,
            was_taken_over,
            starts,
        }
    }

    async fn watch(&self, process: &mut Process, orders: &mut mpsc::Receiver<Order>) -> End {
        let mut failures = 0;
        loop {
            let answered = tokio::select! {
                biased;
                how = process.ended() => return End::Exited(how),
                Some(order) = orders.recv() => return End::Ordered(order),
                answered = self.probe() => answered,
            };
            let Err(error) = answered else {
                failures = 0;
                continue;
            };
            failures += 1;
            tracing::warn!(error = %Causes(&error), failures, "BIRD does not answer");
            if failures >= self.options.probe_failures {
                return End::Stuck;
            }
        }
    }

    async fn probe(&self) -> Result<()> {
        sleep(self.options.probe_interval).await;
        let limits = Limits {
            time: self.options.probe_limit,
            ..self.socket.limits()
        };
        self.socket.with_limits(limits).status().await.map(drop)
    }

    /// Ends it so that peers keep its routes, which they do once: not before they have everything of the last time.
    async fn end_gracefully(&self, process: &mut Process) {
        let recovered = async {
            let mut waited = false;
            while let Ok(status) = self.socket.status().await
                && status.recovery.is_some()
            {
                waited = true;
                sleep(RECOVERY_INTERVAL).await;
            }
            if waited {
                sleep(TELLING).await;
            }
        };
        if timeout(self.options.recovery_limit, recovered)
            .await
            .is_err()
        {
            tracing::warn!("BIRD is restarted while it waits for peers since the last restart");
        }
        if let Err(error) = self.socket.end_for_graceful_restart().await {
            tracing::warn!(error = %Causes(&error), "BIRD does not end by itself and is killed");
            return self.kill(process).await;
        }
        if timeout(self.options.end_limit, process.ended())
            .await
            .is_err()
        {
            self.kill(process).await;
        }
    }

    async fn say_good_bye(&self, process: &mut Process) {
        if let Err(error) = self.socket.down().await {
            tracing::warn!(error = %Causes(&error), "BIRD does not take the order to end; it gets a signal");
            process.signal(Signal::TERM);
        }
        if timeout(self.options.end_limit, process.ended())
            .await
            .is_err()
        {
            tracing::warn!("BIRD does not end and is killed; peers keep its routes for a while");
            self.kill(process).await;
        }
    }

    async fn kill(&self, process: &mut Process) {
        process.signal(Signal::KILL);
        // One that the kernel cannot end is left to it.
        let _ = timeout(self.options.end_limit, process.ended()).await;
    }
}
