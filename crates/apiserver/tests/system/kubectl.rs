//! A real `kubectl` reads the documents that a server gives about itself.
//!
//! The server here has the documents and one object; requests for others fail.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tortie_apiserver::discovery::{self, Aggregation};
use tortie_apiserver::openapi::{self, V2_PROTOBUF, V2_PROTOBUF_OLD};
use tortie_apiserver::registry::Registry;
use tortie_apiserver::table;

const JSON: &str = "application/json";

/// What is served at each path, as type and content.
type Documents = BTreeMap<String, (String, Vec<u8>)>;

fn documents(registry: &Registry) -> Documents {
    let mut documents = Documents::new();
    let mut add = |path: String, value: Value| {
        documents.insert(path, (JSON.to_owned(), value.to_string().into_bytes()));
    };
    add("/version".to_owned(), discovery::version());
    if let Some(core) = discovery::core_versions(registry) {
        add("/api".to_owned(), core);
    }
    add("/apis".to_owned(), discovery::groups(registry));
    for (group, version) in registry.groups() {
        let path = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        add(
            path,
            discovery::resources(registry, group, version).unwrap(),
        );
    }
    let tiers = registry.find("projectcalico.org", "v3", "tiers").unwrap();
    let tier = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": "Tier",
        "metadata": {"name": "first", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"order": 7, "defaultAction": "Deny"},
    });
    let now = "2026-01-04T04:00:00Z".parse().unwrap();
    let list = json!({"resourceVersion": "1"});
    let table = table::table(tiers, [&tier], &list, table::Options::default(), now);
    add("/apis/projectcalico.org/v3/tiers".to_owned(), table);

    let media = format!("{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    for (path, document) in [
        (
            "/api",
            discovery::aggregated_core(registry, Aggregation::V2),
        ),
        (
            "/apis",
            discovery::aggregated_groups(registry, Aggregation::V2),
        ),
    ] {
        let bytes = document.to_string().into_bytes();
        documents.insert(format!("{path} aggregated"), (media.clone(), bytes));
    }

    let (v2, v3) = (openapi::v2(registry), openapi::v3(registry));
    for (group, version) in registry.groups() {
        let path = match group {
            "" => format!("/openapi/v3/api/{version}"),
            group => format!("/openapi/v3/apis/{group}/{version}"),
        };
        let document = v3.group(group, version).unwrap();
        documents.insert(path, (JSON.to_owned(), document.bytes.clone()));
    }
    documents.insert("/openapi/v3".to_owned(), (JSON.to_owned(), v3.index.bytes));
    documents.insert("/openapi/v2".to_owned(), (JSON.to_owned(), v2.json.bytes));
    let protobuf = (V2_PROTOBUF.to_owned(), v2.protobuf.bytes);
    documents.insert("/openapi/v2 protobuf".to_owned(), protobuf);
    documents
}

async fn serve(
    State(documents): State<Arc<Documents>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let path = uri.path();
    let special = if [V2_PROTOBUF, V2_PROTOBUF_OLD]
        .iter()
        .any(|media| accept.contains(media))
    {
        format!("{path} protobuf")
    } else if accept.contains("v=v2;as=APIGroupDiscoveryList") {
        format!("{path} aggregated")
    } else {
        path.to_owned()
    };
    let found = documents.get(&special).or_else(|| documents.get(path));
    let Some((media, bytes)) = found.filter(|_| method == Method::GET) else {
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
            "message": format!("{method} {path} is not served here"),
        });
        let headers = [(CONTENT_TYPE, JSON)];
        return (StatusCode::NOT_FOUND, headers, status.to_string()).into_response();
    };
    ([(CONTENT_TYPE, media.clone())], bytes.clone()).into_response()
}

/// A server of documents, which ends with the test.
struct Server {
    address: SocketAddr,
    home: TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start(registry: &Registry) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let documents = Arc::new(documents(registry));
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(serve).with_state(documents);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            home: TempDir::new().unwrap(),
            _runtime: runtime,
        }
    }

    /// What `kubectl` prints, which must succeed.
    #[track_caller]
    fn kubectl(&self, args: &[&str]) -> String {
        let (is_success, stdout, stderr) = self.run(args, Path::new("/dev/null"));
        assert!(is_success, "kubectl {args:?}: {stderr}");
        stdout
    }

    fn run(&self, args: &[&str], input: &Path) -> (bool, String, String) {
        let output = Command::new("kubectl")
            .arg(format!("--server=http://{}", self.address))
            .args(args)
            .env("HOME", self.home.path())
            .env_remove("KUBECONFIG")
            .stdin(std::fs::File::open(input).unwrap())
            .output()
            .expect("kubectl runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

#[test]
fn it_finds_the_resources() {
    let server = Server::start(&Registry::standalone());
    let versions = server.kubectl(&["api-versions"]);
    let versions: Vec<_> = versions.lines().collect();
    let expected = [
        "apiextensions.k8s.io/v1",
        "authentication.k8s.io/v1",
        "authorization.k8s.io/v1",
        "coordination.k8s.io/v1",
        "discovery.k8s.io/v1",
        "events.k8s.io/v1",
        "networking.k8s.io/v1",
        "projectcalico.org/v3",
        "rbac.authorization.k8s.io/v1",
        "v1",
    ];
    assert_eq!(versions, expected);
    let resources = server.kubectl(&["api-resources", "--output=name"]);
    let resources: Vec<_> = resources.lines().collect();
    for found in Registry::standalone().types() {
        let name = match found.group {
            "" => found.plural.to_owned(),
            group => format!("{}.{group}", found.plural),
        };
        assert!(resources.contains(&name.as_str()), "{name}: {resources:?}");
    }
    assert_eq!(resources.len(), Registry::standalone().types().len());
    let wide = server.kubectl(&[
        "api-resources",
        "--api-group=projectcalico.org",
        "--no-headers",
    ]);
    let policies = wide
        .lines()
        .find(|line| line.starts_with("globalnetworkpolicies"));
    let words: Vec<_> = policies.unwrap().split_whitespace().collect();
    assert_eq!(words[1], "gnp,cgnp");
    assert_eq!(words.last(), Some(&"GlobalNetworkPolicy"));
}

#[test]
fn it_finds_the_resources_behind_another_server() {
    let server = Server::start(&Registry::aggregated());
    let resources = server.kubectl(&["api-resources", "--output=name"]);
    assert!(resources.contains("tiers.projectcalico.org"));
    assert!(!resources.contains("ipamblocks"));
    assert!(
        server
            .kubectl(&["explain", "tiers.spec"])
            .contains("defaultAction")
    );
}

#[track_caller]
fn check_explained(server: &Server, args: &[&str], expected: &[&str]) {
    let text = server.kubectl(&[&["explain"], args].concat());
    for part in expected {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn it_explains_the_kinds() {
    let server = Server::start(&Registry::standalone());
    check_explained(
        &server,
        &["tiers"],
        &["Tier", "projectcalico.org", "metadata", "status"],
    );
    check_explained(&server, &["tiers.spec"], &["order", "defaultAction"]);
    check_explained(
        &server,
        &["tiers.metadata"],
        &["ownerReferences", "resourceVersion"],
    );
    check_explained(
        &server,
        &[
            "networkpolicies",
            "--recursive",
            "--api-version=projectcalico.org/v3",
        ],
        &["serviceAccountSelector", "notSelector", "ingress", "icmp"],
    );
    check_explained(
        &server,
        &["pods.spec.containers"],
        &["imagePullPolicy", "required"],
    );
    check_explained(
        &server,
        &["pods", "--recursive"],
        &["topologySpreadConstraints"],
    );
    check_explained(
        &server,
        &["services.spec.ports.targetPort"],
        &["targetPort"],
    );
    check_explained(
        &server,
        &["felixconfigurations.spec.bpfEnabled"],
        &["boolean"],
    );
}

/// Checks before something is sent stop what the schemas do not allow, and no more.
#[test]
fn it_checks_objects_by_the_schemas() {
    let server = Server::start(&Registry::standalone());
    let check = |object: Value| {
        let file = server.home.path().join("object.json");
        std::fs::write(&file, object.to_string()).unwrap();
        let create = [
            "create",
            "--dry-run=client",
            "--validate=true",
            "--filename=-",
        ];
        let (is_success, stdout, stderr) = server.run(&create, &file);
        assert_eq!(is_success, stderr.is_empty(), "{stderr}");
        (is_success, stdout + &stderr)
    };
    let policy = |spec: Value| {
        let metadata = json!({"name": "x", "namespace": "default"});
        json!({"apiVersion": "projectcalico.org/v3", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec})
    };
    let rule = |ports: Value| json!({"action": "Allow", "protocol": "TCP", "destination": {"ports": ports}});
    let good = policy(json!({"order": 1.5, "egress": [rule(json!([80, "1:2"]))]}));
    assert_eq!(
        check(good),
        (
            true,
            "networkpolicy.projectcalico.org/x created (dry run)\n".to_owned()
        )
    );
    let wrong = policy(json!({"order": "first"}));
    let unknown = policy(json!({"orderr": 1}));
    let pod = |port: Value| {
        let container = json!({"name": "a", "image": "b", "ports": [{"containerPort": port}]});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}})
    };
    assert!(check(pod(json!(80))).0);
    // Newer ones leave it to the server, which would be asked here.
    let version = server.kubectl(&["version", "--client", "--output=json"]);
    let version: Value = serde_json::from_str(&version).unwrap();
    let minor = version["clientVersion"]["minor"]
        .as_str()
        .unwrap_or_default();
    let minor: u32 = minor.trim_end_matches('+').parse().unwrap();
    if minor < 25 {
        for (object, word) in [
            (wrong, "order"),
            (unknown, "orderr"),
            (pod(json!("x")), "containerPort"),
        ] {
            let (is_success, text) = check(object);
            assert!(!is_success && text.contains(word), "{text}");
        }
    }
}

/// Before a dry run on the server it asks the documents whether the server knows them; only then it sends something.
#[test]
fn it_learns_that_the_server_knows_dry_runs() {
    let server = Server::start(&Registry::standalone());
    for object in [
        json!({"apiVersion": "projectcalico.org/v3", "kind": "Tier", "metadata": {"name": "x"}, "spec": {}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}),
    ] {
        let file = server.home.path().join("object.json");
        std::fs::write(&file, object.to_string()).unwrap();
        let create = ["create", "--dry-run=server", "--filename=-"];
        let (is_success, stdout, stderr) = server.run(&create, &file);
        assert!(!is_success, "{stdout}");
        assert!(stderr.contains("POST"), "{stderr}");
    }
}

#[test]
fn it_prints_tables() {
    let server = Server::start(&Registry::standalone());
    let table = server.kubectl(&["get", "tiers"]);
    let words: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        words[0],
        ["NAME", "ORDER", "DEFAULTACTION", "STATUS", "AGE"]
    );
    assert_eq!(words[1], ["first", "7", "Deny", "3d4h"]);
}
