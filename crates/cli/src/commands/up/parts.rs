//! The parts of the process: they start one after the other, and end together.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tortie_agent::Agent;
use tortie_agent::config::from_environment;
use tortie_node::Registrar;
use tortie_operator::Backoff;
use tortie_store::{Client, Store};

use crate::args::Up;
use crate::commands::agent::{PARAMETER_FILE, parameter_file};
use crate::commands::node::startup;
use crate::commands::{change_logging, until_signal, variables};

/// Where CNI plugins look for the size of packets.
const MTU_FILE: &str = "/var/lib/calico/mtu";
/// Where they look whether policy is in force.
const READY_FILE: &str = "/var/run/calico/agent-ready";

/// How long after its end the agent is started again.
const RESTART: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(30),
    jitter: 0.1,
};

/// Running parts.
pub(super) struct Parts {
    running: JoinSet<(&'static str, Result<()>)>,
    stop: watch::Sender<bool>,
}

impl Parts {
    pub(super) fn new() -> Self {
        Self {
            running: JoinSet::new(),
            stop: watch::Sender::new(false),
        }
    }

    /// Becomes ready when the parts are to end.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stop = self.stop.subscribe();
        async move {
            // An error says that there is nobody left to say so.
            let _ = stop.wait_for(|is_stopped| *is_stopped).await;
        }
    }

    /// Starts a part. It ends when it is told to; before that, its end is a failure.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        part: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        self.running.spawn(async move { (name, part.await) });
    }

    /// Keeps the place of this machine in the cluster.
    pub(super) fn keep_place(
        &mut self,
        client: Client,
        node: String,
        registrar: impl Registrar + 'static,
    ) {
        let stopped = self.stopped();
        self.start("registration of the node", async move {
            tokio::select! {
                () = startup::keep(client, node, registrar) => {}
                () = stopped => {}
            }
            Ok(())
        });
    }

    /// Starts the agent, on a thread of its own. Where it ends by itself it is started again: without the other parts
    /// nobody could put right what it ended of, and the kernel keeps what it has meanwhile.
    pub(super) fn start_agent(
        &mut self,
        node: String,
        store: Arc<dyn Store>,
        cluster: Option<kube::Client>,
        backend: &'static str,
        args: &Up,
    ) -> Result<()> {
        let (takes_over, allow_cleartext) = (args.take_over, args.allow_cleartext);
        let file = parameter_file(PARAMETER_FILE.as_ref())?;
        // Taking over is for the start: later, whoever took this machine was told to.
        let new_agent = move |take_over: bool| {
            Agent::new(tortie_agent::Options {
                node: node.clone(),
                environment: from_environment(std::env::vars_os()),
                file: file.clone(),
                store: Arc::clone(&store),
                cluster: cluster.clone(),
                about: format!("tortie up, datastore {backend}"),
                take_over,
                runtime: tokio::runtime::Handle::current(),
                status_folder: None,
                mtu_file: Some(MTU_FILE.into()),
                ready_file: Some(READY_FILE.into()),
                allow_cleartext,
            })
        };
        let mut stopped = Box::pin(self.stopped());
        self.start("agent", async move {
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
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.to_string(),
                };
                let pause = RESTART.after(failures);
                tracing::error!(
                    "the agent ended: {problem}; what is enforced stays as it is; starting it again in {pause:.0?}"
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

    /// Starts the controllers.
    pub(super) fn start_controllers(
        &mut self,
        client: Client,
        backend: tortie_controllers::Backend,
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
            set_log_level: Box::new(|level| change_logging(level.as_filter())),
        };
        let stopped = self.stopped();
        self.start("controllers", async move {
            Ok(tortie_controllers::run(options, stopped).await?)
        });
    }

    /// Runs until a signal comes or a part ends; then all end, and the first failure is told.
    pub(super) async fn run(mut self) -> Result<()> {
        let first = tokio::select! {
            ended = self.running.join_next() => ended,
            () = until_signal()? => None,
        };
        self.stop.send_replace(true);
        let mut outcome = match first {
            None => Ok(()),
            Some(ended) => {
                let (name, result) = ended.context("a part ended unexpectedly")?;
                let ended = || format!("the {name} ended");
                result
                    .and_then(|()| anyhow::bail!("nobody told it to"))
                    .with_context(ended)
            }
        };
        while let Some(ended) = self.running.join_next().await {
            if let Ok((name, Err(error))) = ended {
                let error = error.context(format!("the {name} did not end well"));
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }
}
