//! Deletions of many at once.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tortie_apiserver::access::forbidden;
use tortie_apiserver::failure::{Reason, Result};
use tortie_apiserver::options::{ListOptions, WriteOptions};
use tortie_apiserver::service::{DeleteOptions, Guard, Unguarded, Write};
use tortie_apiserver::standalone;
use tortie_client::Client;
use tortie_store::embedded::EmbeddedStore;

/// What the request's rights say of a policy that came into a tier after the list was made.
struct NotInSilver;

#[async_trait]
impl Guard for NotInSilver {
    async fn check(&self, policy: &Value) -> Result<()> {
        if policy["spec"]["tier"] == "silver" {
            return Err(forbidden(
                "projectcalico.org",
                "networkpolicies",
                "",
                "silver",
            ));
        }
        Ok(())
    }

    async fn check_creation(&self, _: &Value) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn each_object_is_guarded_as_it_is_when_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(folder.path().join("data")).unwrap());
    let client = Client::new(Arc::clone(&store) as _);
    client.ensure_initialized("v1", "test").await.unwrap();
    let service = standalone::open(&store).await.unwrap().service;
    let options = WriteOptions::default();
    let find = |plural: &str| {
        let registry = service.registry();
        registry.find("projectcalico.org", "v3", plural).unwrap()
    };
    let write = |plural: &str, namespace: Option<&'static str>| Write {
        of: find(plural),
        namespace,
        is_status: false,
        options: &options,
        agent: "test",
        guard: &Unguarded,
    };
    for tier in ["gold", "silver"] {
        let object = json!({"metadata": {"name": tier}});
        service.create(write("tiers", None), object).await.unwrap();
        let policy = json!({"metadata": {"name": tier}, "spec": {"tier": tier}});
        let write = write("networkpolicies", Some("default"));
        service.create(write, policy).await.unwrap();
    }
    let of = find("networkpolicies");
    let (all, how) = (ListOptions::default(), DeleteOptions::default());
    let refused = service.delete_all(of, Some("default"), &all, &how, &NotInSilver);
    assert_eq!(refused.await.unwrap_err().reason, Reason::Forbidden);
    let gone = service.get(of, Some("default"), "gold").await;
    assert_eq!(gone.unwrap_err().reason, Reason::NotFound);
    assert!(service.get(of, Some("default"), "silver").await.is_ok());
}
