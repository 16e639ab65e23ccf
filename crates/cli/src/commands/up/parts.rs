//! The parts of the process: they start one after the other, and end together.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tortie_agent::Agent;
use tortie_agent::startup::Registrar;
use tortie_client::Client;
use tortie_config::from_environment;
use tortie_error::Causes;
use tortie_operator::Backoff;
use tortie_store::Store;

use super::bgp::Bgp;
use super::surroundings::Surroundings;
use crate::args::Up;
use crate::commands::agent::{PARAMETER_FILE, parameter_file};
use crate::commands::node::{condition, startup};
use crate::commands::{until_signal, variables};

/// How long after its end the agent is started again.
const RESTART: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(30),
    jitter: 0.1,
};

/// Running parts.
pub(in crate::commands) struct Parts {
    /// Those that others use, which end last.
    servers: Group,
    others: Group,
    /// Whether something is left in the kernel at the end.
    has_agent: bool,
}

/// Parts that end together.
struct Group {
    running: JoinSet<Ended>,
    stop: watch::Sender<bool>,
}

/// A part, and how it ended.
type Ended = (&'static str, Result<()>);

impl Group {
    fn new() -> Self {
        Self {
            running: JoinSet::new(),
            stop: watch::Sender::new(false),
        }
    }

    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stop = self.stop.subscribe();
        async move {
            // An error says that there is nobody left to say so.
            let _ = stop.wait_for(|is_stopped| *is_stopped).await;
        }
    }

    fn start(
        &mut self,
        name: &'static str,
        part: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        self.running.spawn(async move { (name, part.await) });
    }

    /// Ends all of them, and gives the first failure.
    async fn end(mut self) -> Result<()> {
        self.stop.send_replace(true);
        let mut outcome = Ok(());
        while let Some(ended) = self.running.join_next().await {
            if let Ok((name, Err(error))) = ended {
                let error = error.context(format!("the {name} did not end well"));
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }
}

impl Parts {
    pub(in crate::commands) fn new() -> Self {
        Self {
            servers: Group::new(),
            others: Group::new(),
            has_agent: false,
        }
    }

    /// Starts a part that others use. It ends when `closed` says so, which is when the others have ended; before that, its
    /// end is a failure.
    pub(super) fn start_server(
        &mut self,
        name: &'static str,
        part: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        self.servers.start(name, part);
    }

    /// Becomes ready when parts that others use are to end.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.servers.stopped()
    }

    /// Keeps the place of this machine in the cluster.
    pub(in crate::commands) fn keep_place(
        &mut self,
        client: Client,
        node: String,
        registrar: impl Registrar + 'static,
    ) {
        let stopped = self.others.stopped();
        self.others.start("registration of the node", async move {
            tokio::select! {
                () = startup::keep(client, node, registrar) => {}
                () = stopped => {}
            }
            Ok(())
        });
    }

    /// Starts BGP once something asks for it.
    pub(super) fn start_bgp(&mut self, bgp: Bgp) {
        let stopped = self.others.stopped();
        self.others.start("BGP", bgp.run(stopped));
    }

    /// Starts the agent, on a thread of its own. Where it ends by itself it is started again: without the other parts
    /// nobody could put right what it ended of, and the kernel keeps what it has meanwhile.
    pub(in crate::commands) fn start_agent(
        &mut self,
        node: String,
        store: Arc<dyn Store>,
        cluster: Option<kube::Client>,
        backend: &'static str,
        args: &Up,
        surroundings: Surroundings,
    ) -> Result<()> {
        let (takes_over, allow_cleartext) = (args.take_over, args.allow_cleartext);
        let file = parameter_file(PARAMETER_FILE.as_ref())?;
        let told = cluster.clone().filter(|_| surroundings.tells_kubernetes);
        let told = told.map(|cluster| (cluster, node.clone()));
        // Taking over is for the start: later, whoever took this machine was told to.
        let new_agent = move |take_over: bool| {
            let mut agent = Agent::new(tortie_agent::Options {
                node: node.clone(),
                environment: from_environment(std::env::vars_os()),
                file: file.clone(),
                store: Arc::clone(&store),
                cluster: cluster.clone(),
                about: format!("tortie up, datastore {backend}"),
                take_over,
                runtime: tokio::runtime::Handle::current(),
                status_folder: surroundings.status_folder.clone(),
                mtu_file: Some(surroundings.mtu_file.clone()),
                ready_file: Some(surroundings.ready_file.clone()),
                allow_cleartext,
            })?;
            if let Some((cluster, node)) = told.clone() {
                let runtime = tokio::runtime::Handle::current();
                agent.on_ready(move || {
                    runtime.spawn(condition::say_up(cluster.clone(), node.clone()));
                });
            }
            Ok::<_, tortie_agent::Error>(agent)
        };
        self.has_agent = true;
        let mut stopped = Box::pin(self.others.stopped());
        self.others.start("agent", async move {
            for failures in 0.. {
                let is_first = failures == 0;
                let agent = new_agent(takes_over && is_first)?;
                let stop = agent.stop();
                let mut thread = tokio::task::spawn_blocking(move || agent.run());
                let outcome = tokio::select! {
                    outcome = &mut thread => outcome,
                    () = &mut stopped => {
                        stop.stop();
                        return Ok(thread.await.context("the agent ended unexpectedly")??);
                    }
                };
                let problem = match outcome {
                    Ok(Ok(())) => "another one took over".to_owned(),
                    Ok(Err(error @ tortie_agent::Error::Taken { .. })) if is_first => {
                        return Err(error.into());
                    }
                    Ok(Err(error)) => Causes(&error).to_string(),
                    Err(error) => Causes(&error).to_string(),
                };
                let pause = RESTART.after(failures);
                tracing::error!(
                    problem,
                    retry_in = ?pause,
                    "The agent ended; what is enforced stays as it is; starting it again"
                );
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = &mut stopped => return Ok(()),
                }
            }
            Ok(())
        });
        Ok(())
    }

    pub(in crate::commands) fn start_controllers(
        &mut self,
        client: Client,
        backend: tortie_client::connect::Backend,
        cluster: kube::Client,
        stands_alone: bool,
        status_file: PathBuf,
    ) {
        let options = tortie_controllers::Options {
            client,
            backend,
            cluster,
            stands_alone,
            variables: variables(),
            status_file,
            health_port: None,
            leader_election: None,
            // What --log-level says is for all parts of the process.
            set_log_level: Box::new(|_| {}),
        };
        let stopped = self.others.stopped();
        self.others.start("controllers", async move {
            Ok(tortie_controllers::run(options, stopped).await?)
        });
    }

    /// Runs until a signal comes or a part ends; then all end, and the first failure is told.
    pub(in crate::commands) async fn run(self) -> Result<()> {
        let (signal, has_agent) = (until_signal()?, self.has_agent);
        let end = async move {
            signal.await;
            if has_agent {
                // Nobody may read it any more.
                let _ = writeln!(
                    anstream::stderr(),
                    "Ending; rules and routes stay in the kernel as they are, and `tortie down` removes them"
                );
            }
        };
        self.run_until(end).await
    }

    /// The same, until something else happens than a signal.
    pub(in crate::commands) async fn run_until(
        mut self,
        end: impl Future<Output = ()>,
    ) -> Result<()> {
        let first = tokio::select! {
            Some(ended) = self.others.running.join_next() => Some(ended),
            Some(ended) = self.servers.running.join_next() => Some(ended),
            () = end => None,
        };
        let outcome = match first {
            None => Ok(()),
            Some(ended) => {
                let (name, result) = ended.context("a part ended unexpectedly")?;
                let ended = || format!("the {name} ended");
                result
                    .and_then(|()| anyhow::bail!("it exited unexpectedly"))
                    .with_context(ended)
            }
        };
        let others = self.others.end().await;
        outcome.and(others).and(self.servers.end().await)
    }
}
