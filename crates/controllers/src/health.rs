//! How well the process is: a file and two addresses, with the names that Calico's probes know.

mod server;
mod status;

pub(crate) use server::serve;
pub(crate) use status::Status;

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tortie_client::Client;

/// Whether the process has done what it does once at its start.
pub(crate) const STARTUP: &str = "Startup";
/// Whether the datastore answers.
pub(crate) const DATASTORE: &str = "CalicoDatastore";
/// Whether the API server answers.
pub(crate) const API_SERVER: &str = "KubeAPIServer";

/// The part of the cluster's type that says that Kubernetes is there.
pub(crate) const CLUSTER_TYPE: &str = "k8s";

const PATIENCE: Duration = Duration::from_secs(4);
const LONGEST_PATIENCE: Duration = Duration::from_secs(16);
const PERIOD: Duration = Duration::from_secs(10);
const PERIOD_WHEN_ILL: Duration = Duration::from_secs(2);

/// Asks the datastore and the API server now and then. Runs until it is dropped.
pub(crate) async fn check(client: &Client, cluster: &kube::Client, status: &Status) {
    status.set(DATASTORE, false, "initialized to false");
    status.set(API_SERVER, false, "initialized to false");
    let mut patience = PATIENCE;
    loop {
        match within(patience, client.ensure_initialized("", CLUSTER_TYPE)).await {
            Ok(()) => status.set(DATASTORE, true, ""),
            Err(reason) => {
                tracing::error!(reason, "Failed to verify datastore");
                status.set(
                    DATASTORE,
                    false,
                    &format!("Error verifying datastore: {reason}"),
                );
            }
        }
        match within(patience, ask(cluster)).await {
            Ok(()) => status.set(API_SERVER, true, ""),
            Err(reason) => {
                tracing::error!(reason, "Received bad status code from apiserver");
                status.set(
                    API_SERVER,
                    false,
                    &format!("Error reaching apiserver: {reason}"),
                );
            }
        }
        if status.is_ready() {
            patience = PATIENCE;
            sleep(PERIOD).await;
        } else {
            patience = (patience * 2).min(LONGEST_PATIENCE);
            sleep(PERIOD_WHEN_ILL).await;
        }
    }
}

async fn ask(cluster: &kube::Client) -> Result<(), kube::Error> {
    let request = http::Request::get("/healthz").body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    cluster.request_text(request).await.map(drop)
}

async fn within<E: std::fmt::Display>(
    patience: Duration,
    question: impl Future<Output = Result<(), E>>,
) -> Result<(), String> {
    match timeout(patience, question).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {patience:?}")),
    }
}
