//! The same writes through command line and API server, on every datastore: they have the same answer, and leave the same
//! objects.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tortie_apiserver::access::TokenAccess;
use tortie_apiserver::http::{Api, Options};
use tortie_apiserver::server::{Listener, serve};
use tortie_apiserver::standalone::{self, Standalone};
use tortie_serve::Limits;
use tortie_store::embedded::EmbeddedStore;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Key, Kind, Query, Store};
use tortie_testkit::Etcd;

use crate::cli::program::Tortie;

/// What is there before each write.
const BEFORE: &str = "\
{kind: Tier, apiVersion: projectcalico.org/v3, metadata: {name: used}, spec: {order: 5}}
---
{kind: GlobalNetworkPolicy, apiVersion: projectcalico.org/v3, metadata: {name: used.one}, spec: {tier: used}}
---
{kind: IPPool, apiVersion: projectcalico.org/v3, metadata: {name: one}, spec: {cidr: 10.65.0.0/16, disabled: true}}
---
{kind: BlockAffinity, apiVersion: projectcalico.org/v3, metadata: {name: n1-10-65-0-64-26}, spec: {state: confirmed, \
node: n1, type: host, cidr: 10.65.0.64/26, deleted: false}}
";

#[derive(Clone, Copy)]
enum Write {
    Create,
    Replace,
    Delete,
}

/// Where a write goes.
trait Way {
    /// What is answered, and what is there then.
    fn write(&self, write: Write, plural: &str, object: &Value) -> (String, BTreeSet<String>);
}

struct Embedded;
struct Server;
struct OnEtcd;

async fn keys(store: &dyn Store) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    // The server has namespaces of its own, which are profiles.
    for &kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Profile) {
        let list = store.list(&Query::all(kind)).await.unwrap();
        keys.extend(list.items.iter().map(|item| Key::of(item).to_string()));
    }
    keys
}

/// The command line's answer; nothing if it did as it was told.
fn run(tortie: &Tortie, write: Write, object: &Value) -> String {
    let verb = match write {
        Write::Create => "create",
        Write::Replace => "replace",
        Write::Delete => "delete",
    };
    let output = tortie.run_with_input(&[verb, "-f", "-"], &object.to_string());
    if output.code == 0 {
        return String::new();
    }
    output.stderr
}

impl Way for Embedded {
    fn write(&self, write: Write, _: &str, object: &Value) -> (String, BTreeSet<String>) {
        let folder = tempfile::tempdir().unwrap();
        let tortie = Tortie::embedded(folder.path());
        tortie.ok_with_input(&["apply", "-f", "-"], BEFORE);
        let answer = run(&tortie, write, object);
        let store = EmbeddedStore::open(folder.path().join("data.redb")).unwrap();
        let keys = Runtime::new().unwrap().block_on(keys(&store));
        (answer, keys)
    }
}

impl Way for OnEtcd {
    fn write(&self, write: Write, _: &str, object: &Value) -> (String, BTreeSet<String>) {
        let etcd = Etcd::start().unwrap();
        let endpoints = vec![etcd.endpoint().to_owned()];
        let tortie = Tortie::with_variables(vec![
            ("DATASTORE_TYPE", "etcdv3".to_owned()),
            ("ETCD_ENDPOINTS", endpoints.join(",")),
        ]);
        tortie.ok_with_input(&["apply", "-f", "-"], BEFORE);
        let answer = run(&tortie, write, object);
        let keys = Runtime::new().unwrap().block_on(async {
            let config = EtcdConfig {
                endpoints,
                ..EtcdConfig::default()
            };
            keys(&EtcdStore::connect(&config).await.unwrap()).await
        });
        (answer, keys)
    }
}

impl Way for Server {
    fn write(&self, write: Write, plural: &str, object: &Value) -> (String, BTreeSet<String>) {
        let folder = tempfile::tempdir().unwrap();
        Tortie::embedded(folder.path()).ok_with_input(&["apply", "-f", "-"], BEFORE);
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str();
        let namespace = namespace.map_or(String::new(), |name| format!("/namespaces/{name}"));
        let name = match write {
            Write::Create => String::new(),
            _ => format!("/{}", metadata["name"].as_str().unwrap()),
        };
        let path = format!("/apis/projectcalico.org/v3{namespace}/{plural}{name}");
        let method = match write {
            Write::Create => "POST",
            Write::Replace => "PUT",
            Write::Delete => "DELETE",
        };
        let body = match write {
            Write::Delete => String::new(),
            _ => object.to_string(),
        };
        Runtime::new().unwrap().block_on(async {
            let file = folder.path().join("data.redb");
            let store = Arc::new(EmbeddedStore::open(file).unwrap());
            let answer = ask(&store, folder.path(), method, &path, &body).await;
            (answer, keys(&*store).await)
        })
    }
}

/// The API server's answer; nothing if it did as it was told.
async fn ask(
    store: &Arc<EmbeddedStore>,
    folder: &Path,
    method: &str,
    path: &str,
    body: &str,
) -> String {
    let Standalone { service, roles } = standalone::open(store).await.unwrap();
    let access = Arc::new(TokenAccess::new("secret", roles));
    let api = Api::new(service, access, Options::default());
    let socket = folder.join("socket");
    let listeners = vec![Listener::Socket(UnixListener::bind(&socket).unwrap())];
    let limits = Limits::default();
    let server = serve(api, listeners, &limits, std::future::pending());
    let asked = async {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::select! {
        () = server => panic!("the server ended"),
        answer = asked => answer,
    };
    let is_done = answer.starts_with("HTTP/1.1 2");
    if is_done { String::new() } else { answer }
}

/// Each way answers with one of these words; with nothing where there are none.
#[track_caller]
fn check(write: Write, plural: &str, kind: &str, name: &str, spec: &Value, words: &[&str]) {
    let mut object = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    });
    if kind == "NetworkPolicy" {
        object["metadata"]["namespace"] = "default".into();
    }
    let ways: [&dyn Way; 3] = [&Embedded, &Server, &OnEtcd];
    let outcomes = ways.map(|way| way.write(write, plural, &object));
    for (answer, left) in &outcomes {
        let is_right = match words {
            [] => answer.is_empty(),
            words => words.iter().any(|word| answer.contains(word)),
        };
        assert!(is_right, "{kind} {name}: {answer}");
        assert_eq!(left, &outcomes[0].1, "{kind} {name}");
    }
}

#[test]
fn policies_are_of_tiers_that_are_there_and_not_of_kubernetes() {
    let (plural, kind) = ("globalnetworkpolicies", "GlobalNetworkPolicy");
    let refusal = "there is no such tier";
    let spec = &json!({"tier": "none"});
    check(Write::Create, plural, kind, "none.a", spec, &[refusal]);
    let refusal = "must be managed through the kubernetes API";
    let spec = &json!({});
    let (plural, kind) = ("networkpolicies", "NetworkPolicy");
    check(
        Write::Create,
        plural,
        kind,
        "knp.default.a",
        spec,
        &[refusal],
    );
}

#[test]
fn tiers_in_use_and_those_that_are_built_in_stay() {
    let (plural, kind) = ("tiers", "Tier");
    let refusal = "Cannot delete a non-empty tier";
    check(Write::Delete, plural, kind, "used", &json!({}), &[refusal]);
    let refusal = "Cannot delete default tier";
    check(
        Write::Delete,
        plural,
        kind,
        "default",
        &json!({}),
        &[refusal],
    );
}

#[test]
fn pools_do_not_overlap_and_keep_their_shape() {
    let (plural, kind) = ("ippools", "IPPool");
    let refusal = "overlaps 10.65.0.0/16 of IPPool one";
    let spec = &json!({"cidr": "10.65.8.0/24"});
    check(Write::Create, plural, kind, "two", spec, &[refusal]);
    let refusal = "move to a new pool instead";
    let spec = &json!({"cidr": "10.65.0.0/16", "blockSize": 28});
    check(Write::Replace, plural, kind, "one", spec, &[refusal]);
}

#[test]
fn what_is_there_or_is_not_is_said() {
    let (plural, kind) = ("ippools", "IPPool");
    let spec = &json!({"cidr": "10.66.0.0/16"});
    check(
        Write::Create,
        plural,
        kind,
        "one",
        spec,
        &["already exists"],
    );
    check(Write::Create, plural, kind, "two", spec, &[]);
    let refusals = ["does not exist", "not found"];
    check(Write::Replace, plural, kind, "two", spec, &refusals);
    check(Write::Delete, plural, kind, "two", &json!({}), &refusals);
}

#[test]
fn a_pool_goes_with_its_blocks() {
    check(
        Write::Delete,
        "ippools",
        "IPPool",
        "one",
        &json!({"cidr": "10.65.0.0/16"}),
        &[],
    );
    let (_, left) = Embedded.write(
        Write::Delete,
        "ippools",
        &json!({
            "apiVersion": "projectcalico.org/v3",
            "kind": "IPPool",
            "metadata": {"name": "one"},
            "spec": {"cidr": "10.65.0.0/16"},
        }),
    );
    assert!(
        !left.iter().any(|key| key.starts_with("BlockAffinity")),
        "{left:?}"
    );
}
