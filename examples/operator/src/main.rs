//! The operator's process.
//!
//! - `namespace-baseline`: runs the operator.
//! - `namespace-baseline crd`: prints the definition of the kind for `config/crd`.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use namespace_baseline::resource::NamespaceBaseline;
use namespace_baseline::{NAME, add_controller, add_webhooks};
use tortie_operator::{LeaderElection, Manager, WebhookServer};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    match env::args().nth(1).as_deref() {
        None => run().await,
        Some("crd") => {
            let definition = NamespaceBaseline::definition()?;
            println!("{}", serde_json::to_string_pretty(&definition)?);
            Ok(())
        }
        Some(other) => bail!("unknown argument `{other}`: there is only `crd`"),
    }
}

async fn run() -> Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let client = kube::Client::try_default()
        .await
        .context("no cluster to connect to")?;
    let namespace = env::var("POD_NAMESPACE").unwrap_or_else(|_| "default".to_owned());
    let mut builder = Manager::builder(client)
        .leader_election(LeaderElection::new(namespace, NAME))
        .health(SocketAddr::from(([0, 0, 0, 0], 8081)))
        .metrics(SocketAddr::from(([0, 0, 0, 0], 8080)));
    // Without certificates, as on a developer's machine, there are no webhooks.
    if let Some(folder) = env::var_os("WEBHOOK_CERTS").map(PathBuf::from) {
        let address = SocketAddr::from(([0, 0, 0, 0], 9443));
        let server = WebhookServer::new(address, folder.join("tls.crt"), folder.join("tls.key"));
        builder = builder.webhooks(add_webhooks(server));
    }
    let manager = builder.build();
    add_controller(&manager);
    manager.run_until_signal().await?;
    Ok(())
}
