//! The life of a manager: endpoints, caches, leadership, controllers, and the same backwards.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{self, Either};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::endpoints::Endpoints;
use super::{Manager, Parts};
use crate::controller::Running;
use crate::error::{Error, Result};
use crate::leadership::Leadership;
use crate::lease::Elector;
use crate::reconcile::BoxError;
use crate::signal;

/// How long the release of the lease may take.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// Things that run until they are dropped. The first that fails ends the manager.
#[derive(Default)]
struct Runnables(JoinSet<Result<()>>);

impl Runnables {
    fn start<F>(&mut self, name: String, future: F)
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.0.spawn(async move {
            future
                .await
                .map_err(|source| Error::Runnable { name, source })
        });
    }

    /// Waits until one fails.
    async fn failure(&mut self) -> Error {
        while let Some(ended) = self.0.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(panic) => {
                    let name = "a task".to_owned();
                    let source = panic.into();
                    return Error::Runnable { name, source };
                }
            }
        }
        future::pending().await
    }
}

impl Manager {
    /// Runs until SIGTERM or SIGINT, or until something fails: see [`Manager::run`].
    pub async fn run_until_signal(self) -> Result<()> {
        self.run(signal::shutdown()).await
    }

    /// Runs until a future ends, or until something fails.
    ///
    /// Endpoints and webhooks are served first. Once the caches are filled, what runs always is started; once this
    /// process leads, its controllers are. At the end, keys that are being reconciled are finished, then the lease is
    /// released, so that another process can lead at once. Losing leadership ends everything with
    /// [`Error::LeadershipLost`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let Self {
            shared,
            settings,
            parts,
        } = self;
        let parts = parts
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(problem) = parts
            .controllers
            .iter()
            .find_map(|controller| controller.problem())
        {
            return Err(Error::Settings(problem.to_owned()));
        }
        let mut elector = match settings.leader_election {
            Some(election) => Some(Elector::new(
                shared.client.clone(),
                election,
                &shared.metrics,
            )?),
            None => None,
        };
        let endpoints = Endpoints::bind(&shared, settings.health, settings.metrics).await?;
        let mut always = Runnables::default();
        always.start("health and metrics".to_owned(), async {
            endpoints.serve().await;
            Ok(())
        });
        if let Some(server) = settings.webhooks {
            let server = server.bind(Arc::clone(&shared.metrics)).await?;
            always.start(
                "webhooks".to_owned(),
                async move { Ok(server.serve().await?) },
            );
        }
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            () = shared.caches.wait_synced() => {}
            () = shutdown.as_mut() => return Ok(()),
            error = always.failure() => return Err(error),
        }
        tracing::info!("Caches are filled");
        let Parts {
            controllers,
            always: futures,
            as_leader,
        } = parts;
        for (name, future) in futures {
            always.start(name, future);
        }
        let leadership = match &mut elector {
            None => Leadership::unconditional(),
            Some(elector) => {
                let outcome = tokio::select! {
                    leadership = elector.acquire() => Ok(leadership),
                    () = shutdown.as_mut() => Err(Ok(())),
                    error = always.failure() => Err(Err(error)),
                };
                match outcome {
                    Ok(leadership) => leadership,
                    Err(outcome) => {
                        release(elector).await;
                        return outcome;
                    }
                }
            }
        };
        let (stop, stopping) = watch::channel(false);
        let (at_work, mut end_of_work) = mpsc::channel(1);
        let running = Running {
            leadership: leadership.clone(),
            stop: stopping,
            at_work,
        };
        let mut leading = Runnables::default();
        for (name, start) in as_leader {
            let (future, leadership) = (start(leadership.clone()), leadership.clone());
            // Its loss ends the manager below, which says so.
            leading.start(name, async move {
                leadership.guard(future).await.unwrap_or(Ok(()))
            });
        }
        let mut working = JoinSet::new();
        for controller in controllers {
            working.spawn(controller.run(running.clone()));
        }
        let outcome = {
            let renewal = match &mut elector {
                Some(elector) => Either::Left(elector.keep(&leadership)),
                None => Either::Right(future::pending()),
            };
            let mut renewal: Pin<&mut _> = pin!(renewal);
            let outcome = tokio::select! {
                () = shutdown.as_mut() => Ok(()),
                () = renewal.as_mut() => Err(Error::LeadershipLost),
                error = always.failure() => Err(error),
                error = leading.failure() => Err(error),
            };
            if !matches!(outcome, Err(Error::LeadershipLost)) {
                tracing::info!("Shutting down; what is under way is finished");
                stop.send_replace(true);
                let drained = async { while working.join_next().await.is_some() {} };
                tokio::select! {
                    () = drained => {}
                    // It is kept for as long as work is under way.
                    () = renewal.as_mut() => {}
                    () = tokio::time::sleep(settings.patience) => {
                        tracing::warn!("Work under way was not finished in time; it is dropped");
                    }
                }
            }
            outcome
        };
        leadership.give_up();
        drop(running);
        working.shutdown().await;
        leading.0.shutdown().await;
        if let Some(elector) = &mut elector {
            // Tasks that were dropped end at their next await: before that, nobody else may lead.
            match tokio::time::timeout(RELEASE_PATIENCE, end_of_work.recv()).await {
                Ok(_) => release(elector).await,
                Err(_) => {
                    tracing::warn!("Work does not end; the lease is not released and will run out");
                }
            }
        }
        always.0.shutdown().await;
        outcome
    }
}

async fn release(elector: &mut Elector) {
    if tokio::time::timeout(RELEASE_PATIENCE, elector.release())
        .await
        .is_err()
    {
        tracing::warn!("The lease could not be released in time; it will run out");
    }
}
