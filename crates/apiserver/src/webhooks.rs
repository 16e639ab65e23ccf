//! Admission webhooks for Calico's resources as custom resources of the group that clients see: what the API server of
//! Kubernetes cannot decide by itself.
//!
//! Only writes pass through here. Who may read policies is decided by the rights on their resource alone.

mod cluster_information;
mod tiers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tortie_operator::{Manager, WebhookServer};

use self::tiers::TierHook;

/// The largest question that is taken.
const MOST_BYTES: usize = 3 << 20;

/// How the webhooks are set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where they listen.
    pub address: SocketAddr,
    /// The file of the certificate chain. It is read again when it changes.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
    /// The file of the authorities for clients. With one, only clients with a certificate are served.
    pub client_authorities: Option<PathBuf>,
    /// The namespace of Calico's own programs.
    pub namespace: String,
}

/// Serves `/rbac`, `/cluster-info` and `/readyz` until `shutdown`.
pub async fn run(
    settings: Settings,
    client: kube::Client,
    shutdown: impl Future<Output = ()>,
) -> tortie_operator::Result<()> {
    let Settings {
        address,
        certificate,
        key,
        client_authorities,
        namespace,
    } = settings;
    let tiers = Arc::new(TierHook::new(client.clone()));
    let mut server = WebhookServer::new(address, certificate, key)
        .most_bytes(MOST_BYTES)
        .ready("/readyz")
        .validate("/rbac", move |review| {
            let tiers = Arc::clone(&tiers);
            async move { tiers.check(&review).await.map(|()| Vec::new()) }
        })
        .validate("/cluster-info", move |review| {
            let checked = cluster_information::check(&namespace, &review);
            std::future::ready(checked.map(|()| Vec::new()))
        });
    if let Some(authorities) = client_authorities {
        server = server.client_authorities(authorities);
    }
    let manager = Manager::builder(client).webhooks(server).build();
    manager.run(shutdown).await
}
