//! An agent that runs on a thread of its own in the node's namespace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Once, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Handle;
use tortie_agent::{Agent, Error, Health, Metrics, Options, Recording, Report, Stop};
use tortie_store::Store;
use tortie_testkit::net::Namespace;
use tracing_subscriber::EnvFilter;

use crate::e2e::planes::Plane;
use crate::e2e::setting::NODE;

/// How long an agent may take until everything is in force. Mostly it takes some 100 ms.
pub(crate) const READY: Duration = Duration::from_secs(40);

/// A running agent, which is stopped when this is dropped. The kernel then keeps what it has.
pub(crate) struct RunningAgent {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    pub(crate) report: Arc<Report>,
    pub(crate) recording: Recording,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

/// What an agent is started with, besides the data plane.
pub(crate) struct Start<'a> {
    /// Where it works.
    pub(crate) namespace: &'a Namespace,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) runtime: Handle,
    pub(crate) status_folder: PathBuf,
    pub(crate) parameters: &'a [(&'a str, &'a str)],
    /// Whether another agent is told to end.
    pub(crate) takes_over: bool,
}

impl RunningAgent {
    /// Starts an agent and waits until everything is in force.
    pub(crate) fn start(plane: Plane, start: &Start<'_>) -> Self {
        let (mut running, ready) = Self::begin(plane, start);
        if ready.recv_timeout(READY).is_err() {
            let ended = running.finish();
            panic!("the agent is not ready: {ended:?}");
        }
        running
    }

    /// Starts an agent, and gives what is told when everything is in force.
    pub(crate) fn begin(plane: Plane, start: &Start<'_>) -> (Self, mpsc::Receiver<()>) {
        let (agent, ready) = prepare(plane, start);
        let mut running = Self {
            metrics: Arc::clone(agent.metrics()),
            health: Arc::clone(agent.health()),
            report: Arc::clone(agent.report()),
            recording: agent.recording(),
            stop: agent.stop(),
            thread: None,
        };
        let spawn = || thread::Builder::new().spawn(move || agent.run());
        let spawned = start.namespace.run(spawn).unwrap();
        running.thread = Some(spawned.unwrap());
        (running, ready)
    }

    /// Stops the agent and waits until it has ended.
    pub(crate) fn end(mut self) {
        self.finish().unwrap();
    }

    /// Waits until the agent has ended by itself.
    pub(crate) fn ended(mut self) -> Result<(), Error> {
        let thread = self.thread.take().unwrap();
        thread.join().expect("the agent panicked")
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.stop.stop();
        let thread = self.thread.take();
        thread.map_or(Ok(()), |thread| thread.join().expect("the agent panicked"))
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.expect("the agent panicked").unwrap();
            }
        }
    }
}

/// An agent that has not started, and what is told when everything is in force.
fn prepare(plane: Plane, start: &Start<'_>) -> (Agent, mpsc::Receiver<()>) {
    log();
    let more = start.parameters.iter().copied();
    let parameters = plane.parameters().into_iter().chain(more);
    let owned = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut agent = Agent::new(Options {
        node: NODE.to_owned(),
        environment: owned.collect::<BTreeMap<_, _>>(),
        file: BTreeMap::new(),
        store: Arc::clone(&start.store),
        cluster: None,
        about: "a test".to_owned(),
        take_over: start.takes_over,
        runtime: start.runtime.clone(),
        status_folder: Some(start.status_folder.clone()),
        mtu_file: None,
        ready_file: Some(start.status_folder.join("ready")),
        allow_cleartext: false,
    })
    .unwrap();
    let (tell, ready) = mpsc::channel();
    agent.on_ready(move || {
        // Only the first start of an agent is waited for.
        let _ = tell.send(());
    });
    (agent, ready)
}

/// What agents say goes to the output of the test.
fn log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(std::io::stderr)
            .init();
    });
}
