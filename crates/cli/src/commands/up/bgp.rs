//! BGP, as soon as an object asks for it: BIRD and who keeps it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tortie_api::Resource;
use tortie_api::asks_for_bgp::asks_for_bgp;
use tortie_backoff::{Backoff, Retries};
use tortie_bgp::bird::Daemon;
use tortie_bgp::bird::daemon;
use tortie_bgp::speaker::{Bird, Farewell, Options, Report, Speaker, Syntax};
use tortie_error::Causes;
use tortie_store::{Kind, Query, Store, StoreSource};
use tortie_sync::{Followers, Pace, State};

use super::surroundings::BirdFolders;
use crate::commands::bgp::{MISSING_BIRD, find_bird, load};

/// How often BIRD is looked for where it is missing.
const LOOK: Duration = Duration::from_secs(10);

/// How soon BIRD is kept again by who could not.
const RESTART: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_mins(1),
    jitter: 0.1,
};

/// What is needed for BGP.
pub(super) struct Bgp {
    pub(super) node: String,
    pub(super) store: Arc<dyn Store>,
    pub(super) cluster: Option<kube::Client>,
    pub(super) folders: BirdFolders,
    /// The folder in which the agent tells which endpoints are up.
    pub(super) workloads: PathBuf,
    /// What becomes of routes at the end.
    pub(super) farewell: Farewell,
}

impl Bgp {
    /// Runs until `stopped`, and does nothing before an object asks for BGP.
    pub(super) async fn run(self, stopped: impl Future<Output = ()> + Send) -> Result<()> {
        tokio::pin!(stopped);
        let program = tokio::select! {
            program = self.asked() => program,
            () = &mut stopped => return Ok(()),
        };
        let mut retries = Retries::new(RESTART);
        loop {
            let (say, farewell) = mpsc::channel(1);
            let speaker = Speaker::new(
                self.options(&program)?,
                Arc::clone(&self.store),
                self.cluster.clone(),
            );
            let running = speaker.run(farewell);
            tokio::pin!(running);
            let ended = tokio::select! {
                ended = &mut running => ended,
                () = &mut stopped => {
                    let _ = say.send(self.farewell).await;
                    return Ok(running.await?);
                }
            };
            let problem = match ended {
                Ok(()) => "it ended by itself".to_owned(),
                Err(error) => Causes(&error).to_string(),
            };
            let pause = retries.failed();
            tracing::error!(problem, retry_in = ?pause, "BIRD cannot be kept up to date");
            self.report(problem);
            tokio::select! {
                () = sleep(pause) => {}
                () = &mut stopped => return Ok(()),
            }
        }
    }

    /// Waits until something asks for BGP and BIRD is there.
    async fn asked(&self) -> PathBuf {
        let by = who_asks(&self.store).await;
        let mut is_said = false;
        loop {
            let kept = Report::read(&self.folders.run);
            if let Ok(Some(report)) = kept
                && report.is_of_another()
            {
                tracing::debug!(process = report.process, "Another process keeps BIRD here");
                sleep(LOOK).await;
                continue;
            }
            if let Some(program) = find_bird() {
                tracing::info!(by, bird = %program.display(), "BGP is asked for");
                return program;
            }
            if !is_said {
                is_said = true;
                let problem = format!("{by} asks for BGP, and {MISSING_BIRD}");
                tracing::error!(
                    problem,
                    "There is no BGP, and everything else runs without it"
                );
                self.report(problem);
            }
            sleep(LOOK).await;
        }
    }

    fn options(&self, program: &Path) -> Result<Options> {
        Ok(Options {
            identity: load::identity(Some(&self.node))?,
            syntax: Syntax::Bird2,
            config_folder: self.folders.config.clone(),
            run_folder: self.folders.run.clone(),
            bird: Bird::Supervised(program.to_owned()),
            workloads: self.workloads.clone(),
            secret_namespace: load::secret_namespace(None),
        })
    }

    /// Where `tortie status` and `tortie bgp status` look.
    fn report(&self, problem: String) {
        let folder = &self.folders.run;
        if let Err(error) = std::fs::create_dir_all(folder) {
            tracing::warn!(folder = %folder.display(), error = %Causes(&error), "The status of BGP cannot be written");
            return;
        }
        Report::of_failure(&self.node, problem).write(folder);
    }
}

/// Ends the BIRD that an `up` left running. Gives whether there was one.
pub(in crate::commands) async fn end_bird(folders: &BirdFolders) -> tortie_bgp::bird::Result<bool> {
    let config = folders.config.join("bird.cfg");
    // It is not started.
    let options = daemon::Options::new(Path::new(""), &config, &folders.run.join("bird.ctl"));
    Daemon::new(options).end().await
}

/// Waits until an object asks for BGP, and gives its kind and name.
async fn who_asks(store: &Arc<dyn Store>) -> String {
    let kinds = [Kind::BgpConfiguration, Kind::BgpPeer];
    let topics = kinds.map(|kind| StoreSource::topic::<Resource>(store, Query::all(kind)));
    let pace = Pace::default();
    let mut followers = Followers::start(topics.into(), &pace, None, &Handle::current());
    loop {
        for object in followers.recv().await.objects {
            if let State::Present(resource) = object.state
                && asks_for_bgp(&resource)
            {
                return format!("{}({})", resource.kind(), resource.metadata().name);
            }
        }
    }
}
