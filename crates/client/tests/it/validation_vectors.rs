//! What a create accepts and stores, against recorded answers of Calico's own code.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use serde_json::Value;
use tortie_client::Client;
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Key, Kind, Precondition, Resource, Store};

/// Makes sure that the tiers a policy may refer to exist, as the recording did.
async fn prepare(store: &EmbeddedStore, object: &Value) {
    let named = object.pointer("/spec/tier").and_then(Value::as_str);
    for name in named.into_iter().chain(["default"]) {
        let mut tier = Resource::empty(Kind::Tier);
        name.clone_into(&mut tier.metadata_mut().name);
        tier.set_defaults();
        let _ = store.create(tier).await;
    }
}

/// Creates the object of a case as the command line would; gives what was stored.
async fn create(client: &Client, case: &Value) -> Result<Resource, String> {
    let mut object = case["object"].clone();
    // The recording read each object into the type of its kind, whatever its envelope says.
    object["apiVersion"] = tortie_api::API_VERSION.into();
    object["kind"] = case["kind"].clone();
    let resource = Resource::decode_strict(&object).map_err(|problems| problems.to_string())?;
    client
        .create(resource)
        .await
        .map_err(|error| error.to_string())
}

/// The stored object without what differs from run to run.
fn comparable(resource: &Resource) -> Value {
    let mut value = resource.to_value();
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        value["metadata"].as_object_mut().unwrap().remove(field);
    }
    value
}

#[tokio::test]
async fn creates_give_what_calico_gives() {
    let cases = tortie_testkit::vectors("validation.json");
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(folder.path().join("vectors.redb")).unwrap());
    // Calico's library writes what stands for policies of Kubernetes for everybody; calicoctl refuses.
    let client = Client::new(Arc::<EmbeddedStore>::clone(&store)).keeping_copies();
    let mut differences = Vec::new();
    for case in &cases {
        let is_tier = case["kind"] == "Tier";
        if !is_tier {
            prepare(&store, &case["object"]).await;
        }
        let outcome = create(&client, case).await;
        match (&outcome, case["valid"] == true) {
            (Ok(stored), true) if comparable(stored) != case["defaulted"] => {
                differences.push(format!(
                    "stored\n  {}\ninstead of\n  {}",
                    comparable(stored),
                    case["defaulted"]
                ));
            }
            (Ok(_), true) | (Err(_), false) => {}
            (Ok(_), false) => {
                differences.push(format!("accepted {}: {}", case["object"], case["error"]));
            }
            (Err(error), true) => differences.push(format!("refused {}: {error}", case["object"])),
        }
        // Each case starts from an empty datastore.
        for kind in [None, Some(Kind::Tier)] {
            let keys: Vec<Key> = match (kind, &outcome) {
                (Some(kind), _) => {
                    let tiers = store.list(&tortie_store::Query::all(kind)).await.unwrap();
                    tiers.items.iter().map(Key::of).collect()
                }
                (None, Ok(stored)) => vec![Key::of(stored)],
                (None, Err(_)) => Vec::new(),
            };
            for key in keys {
                let _ = store.delete(&key, &Precondition::default()).await;
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}
