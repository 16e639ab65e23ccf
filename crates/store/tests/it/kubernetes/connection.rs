//! How the API server is reached.

use tortie_api::crd::Group;
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{Error, Kind, Query, Store};

use crate::kubernetes::cluster::server;

#[tokio::test]
async fn settings_without_a_kubeconfig_are_enough() {
    let server = server();
    let config = KubernetesConfig {
        api_endpoint: Some(server.url().into()),
        token: Some(server.token().into()),
        ca_file: Some(server.ca().into()),
        api_group: Some(Group::V3),
        ..KubernetesConfig::default()
    };
    let store = KubernetesStore::connect(&config).await.unwrap();
    store.list(&Query::all(Kind::Tier)).await.unwrap();

    let wrong = KubernetesConfig {
        token: Some("wrong".into()),
        ..config.clone()
    };
    let refused = KubernetesStore::connect(&wrong)
        .await
        .unwrap()
        .list(&Query::all(Kind::Tier))
        .await;
    assert!(
        matches!(refused, Err(Error::Unauthorized(_))),
        "{refused:?}"
    );
    let unverified = KubernetesConfig {
        ca_file: None,
        ..config
    };
    let refused = KubernetesStore::connect(&unverified)
        .await
        .unwrap()
        .list(&Query::all(Kind::Tier))
        .await;
    assert!(
        matches!(refused, Err(Error::Unavailable { .. })),
        "{refused:?}"
    );
}
