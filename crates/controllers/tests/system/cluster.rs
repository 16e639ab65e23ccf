//! A real API server whose custom resources of the newer group are the datastore.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use serde_json::{Value, json};
use tortie_api::crd::{self, Group};
use tortie_store::Store;
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_testkit::KubeApiServer;

pub(crate) struct Cluster {
    server: KubeApiServer,
    pub(crate) client: kube::Client,
    pub(crate) store: Arc<dyn Store>,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let server = KubeApiServer::start().unwrap();
        let config = KubernetesConfig {
            kubeconfig: vec![server.kubeconfig().into()],
            api_group: Some(Group::V3),
            ..KubernetesConfig::default()
        };
        let store = KubernetesStore::connect(&config).await.unwrap();
        let cluster = Self {
            client: store.client().clone(),
            server,
            store: Arc::new(store),
        };
        cluster.apply(&crd::manifests(Group::V3));
        cluster.kubectl("wait crd --all --for=condition=Established --timeout=60s");
        cluster
    }

    pub(crate) fn apply(&self, objects: &[Value]) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
        let arguments = ["apply", "--validate=false", "-f", "-"];
        let applied = self.server.kubectl_stdin(&arguments, &list);
        applied.unwrap().into_stdout().unwrap();
    }

    /// Runs `kubectl` with arguments that have no spaces in them.
    pub(crate) fn kubectl(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        self.server.kubectl(&words).unwrap().into_stdout().unwrap()
    }
}
