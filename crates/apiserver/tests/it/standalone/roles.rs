//! Roles and bindings in the store, and who has rights by them.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use tortie_apiserver::access::{Attributes, Authorize as _, Roles, User};
use tortie_apiserver::options::WriteOptions;
use tortie_apiserver::registry::ResourceType;
use tortie_apiserver::service::{DeleteOptions, Service, Unguarded, Write};
use tortie_apiserver::standalone::{self, Standalone};
use tortie_client::Client;
use tortie_store::embedded::{DocumentKey, EmbeddedStore};

const GROUP: &str = "rbac.authorization.k8s.io";

async fn open(folder: &tempfile::TempDir) -> (Arc<EmbeddedStore>, Standalone) {
    let store = Arc::new(EmbeddedStore::open(folder.path().join("data")).unwrap());
    let client = Client::new(Arc::clone(&store) as _);
    client.ensure_initialized("v1", "test").await.unwrap();
    let opened = standalone::open(&store).await.unwrap();
    (store, opened)
}

fn bindings(service: &Service) -> &ResourceType {
    let registry = service.registry();
    registry.find(GROUP, "v1", "clusterrolebindings").unwrap()
}

/// A binding of the role `view` for a user of the same name.
fn binding(user: &str) -> Value {
    json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    })
}

async fn bind(service: &Service, user: &str) {
    let options = WriteOptions::default();
    let write = Write {
        of: bindings(service),
        namespace: None,
        is_status: false,
        options: &options,
        agent: "test",
        guard: &Unguarded,
    };
    service.create(write, binding(user)).await.unwrap();
}

async fn may_view(roles: &Roles, user: &str) -> bool {
    let user = User {
        name: user.to_owned(),
        ..User::default()
    };
    let attributes = Attributes {
        verb: "list",
        group: "",
        version: "v1",
        resource: "pods",
        subresource: "",
        namespace: None,
        name: None,
    };
    roles.authorize(&user, &attributes).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_grants_nothing_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (store, Standalone { service, .. }) = open(&folder).await;
    bind(&service, "ann").await;
    let key = |name: &str| DocumentKey::new(format!("clusterrolebindings.{GROUP}"), "", name);
    let documents = store.documents();
    documents.create(key("broken"), &b"{"[..]).await.unwrap();
    let mut strange = binding("bob");
    strange["subjects"] = json!("bob");
    let strange = strange.to_string().into_bytes();
    documents.create(key("bob"), strange).await.unwrap();
    drop((documents, service));
    drop(store);
    let (_store, Standalone { roles, .. }) = open(&folder).await;
    assert!(may_view(&roles, "ann").await);
    assert!(!may_view(&roles, "bob").await);
}

/// Clients leave at every point of a deletion. Some are carried out all the same, and then nobody has rights by them.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_what_counts_when_clients_leave() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, Standalone { service, roles }) = open(&folder).await;
    let of = bindings(&service);
    let how = DeleteOptions::default();
    let users: Vec<String> = (0..100).map(|number| format!("user-{number}")).collect();
    for (number, user) in users.iter().enumerate() {
        bind(&service, user).await;
        assert!(may_view(&roles, user).await);
        let mut delete = pin!(service.delete(of, None, user, &how, &Unguarded));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..number % 5 {
            if delete.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
    }
    let is_there = async |user: &String| service.get(of, None, user).await.is_ok();
    // The first one whose client stayed for long enough.
    eventually(async || !is_there(&users[4]).await).await;
    assert!(is_there(&users[0]).await);
    for user in &users {
        eventually(async || is_there(user).await == may_view(&roles, user).await).await;
    }
}

/// Waits for what has to come.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it does not come");
}
