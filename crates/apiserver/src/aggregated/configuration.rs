//! How the API server of Kubernetes is recognised, which it tells in a `ConfigMap`. Changes take effect while running.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use tortie_error::Causes;
use tortie_serve::Authorities;

use super::Error;
use super::front_proxy::FrontProxy;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What the `ConfigMap` says.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// Who vouches for clients.
    pub(super) clients: Arc<Authorities>,
    /// Who vouches for the front proxy.
    pub(super) front_proxies: Arc<Authorities>,
    front_proxy: RwLock<Arc<FrontProxy>>,
}

impl Configuration {
    /// What the `ConfigMap` says now.
    pub(super) async fn read(client: &kube::Client) -> Result<Arc<Self>, Error> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let map = api.get(NAME).await;
        let map = map.map_err(|error| Error::Configuration(Box::new(error)))?;
        let configuration = Self::default();
        configuration.take(&map).map_err(Error::Malformed)?;
        Ok(Arc::new(configuration))
    }

    /// All authorities that vouch for somebody.
    pub(super) fn authorities(&self) -> Vec<Arc<Authorities>> {
        vec![Arc::clone(&self.clients), Arc::clone(&self.front_proxies)]
    }

    /// How a front proxy names users.
    pub(super) fn front_proxy(&self) -> Arc<FrontProxy> {
        let current = self.front_proxy.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows the `ConfigMap`, for ever. What makes no sense is reported, and what was before stays.
    pub(super) async fn follow(&self, client: &kube::Client) {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let name = format!("metadata.name={NAME}");
        let changes = watcher(api, watcher::Config::default().fields(&name));
        let mut maps = changes.default_backoff().applied_objects().boxed();
        while let Some(map) = maps.next().await {
            match map.map(|map| self.take(&map)) {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => {
                    tracing::info!("The API server of Kubernetes is recognised by other signs");
                }
                Ok(Err(problem)) => {
                    tracing::error!(
                        problem,
                        "The ConfigMap of the API server's authentication cannot be used"
                    );
                }
                Err(error) => {
                    tracing::warn!(error = %Causes(&error), "The ConfigMap of the API server's authentication cannot be followed");
                }
            }
        }
    }

    /// Whether something is other than before.
    fn take(&self, map: &ConfigMap) -> Result<bool, String> {
        let empty = BTreeMap::new();
        let data = map.data.as_ref().unwrap_or(&empty);
        let text = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
        let front_proxy = FrontProxy::parse(text)?;
        let replace = |authorities: &Authorities, key: &str| {
            let replaced = authorities.replace(text(key).as_bytes());
            replaced.map_err(|problem| format!("{key}: {problem}"))
        };
        let mut is_other = replace(&self.clients, "client-ca-file")?;
        is_other |= replace(&self.front_proxies, "requestheader-client-ca-file")?;
        let mut current = self
            .front_proxy
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        is_other |= **current != front_proxy;
        *current = Arc::new(front_proxy);
        Ok(is_other)
    }
}
