//! How the API server of Kubernetes is recognised, which it tells in a `ConfigMap`. Changes take effect while running.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use tortie_serve::Authorities;
use tortie_sync::kubernetes::{Endpoint, KubernetesSource, Selection, item};
use tortie_sync::{Change, Follower, Keeper, Name, Pace, State, Status};

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

/// Reads each version of the `ConfigMap`.
struct Reader {
    configuration: Arc<Configuration>,
    is_there: bool,
    /// Whether it was found since all began to be read.
    is_seen: bool,
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
    pub(super) async fn follow(self: Arc<Self>, client: &kube::Client) {
        let selection = Selection {
            namespace: NAMESPACE.to_owned(),
            name: NAME.to_owned(),
            ..Selection::default()
        };
        let maps = vec![Endpoint::of::<ConfigMap>()];
        let source = KubernetesSource::new(client.clone(), maps, |map| {
            let map: ConfigMap = serde_json::from_str(map)?;
            Ok(item(&map.metadata.clone(), map))
        });
        let source = Arc::new(source.selecting(selection));
        let reader = Reader {
            configuration: self,
            is_there: false,
            is_seen: false,
        };
        let topic = format!("ConfigMap {NAMESPACE}/{NAME}");
        Follower::new(topic, source, reader, Pace::default())
            .run()
            .await;
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

#[async_trait]
impl Keeper<ConfigMap> for Reader {
    fn is_empty(&self) -> bool {
        !self.is_there
    }

    fn has(&self, _: &Name) -> bool {
        self.is_there
    }

    async fn take(&mut self, changes: Vec<Change<ConfigMap>>, _: Status) -> usize {
        let count = changes.len();
        for change in changes {
            let Change::Set(item) = change else {
                self.is_there = false;
                continue;
            };
            (self.is_there, self.is_seen) = (true, true);
            let taken = match item.state {
                State::Present(map) => self.configuration.take(&map),
                State::Unreadable(reason, _) => Err(reason),
                State::Absent => Ok(false),
            };
            match taken {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!("The API server of Kubernetes is recognised by other signs");
                }
                Err(problem) => {
                    tracing::error!(
                        problem,
                        "The ConfigMap of the API server's authentication cannot be used"
                    );
                }
            }
        }
        count
    }

    fn begin_list(&mut self) {
        self.is_seen = false;
    }

    async fn end_list(&mut self) -> usize {
        self.is_there = self.is_seen;
        0
    }
}
