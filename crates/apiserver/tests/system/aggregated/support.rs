//! A cluster with the server behind it.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tortie_api::crd::{self, Group};
use tortie_apiserver::aggregated::{CertificateFiles, Server, ServiceReference, Settings};
use tortie_apiserver::server::certificates::issue_for_service;
use tortie_client::Client;
use tortie_store::Store;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_testkit::{KubeApiServer, Output};

/// The namespace and the name of the Service through which Kubernetes reaches the server.
const PLACE: &str = "calico-apiserver";
const SERVICE: &str = "calico-api";

/// Where the server has its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Datastore {
    /// In the etcd of the cluster, beside its own. The server's certificate is in files.
    Etcd,
    /// In the cluster, as custom resources of the older group. The server makes its certificate itself.
    Kubernetes,
}

/// A cluster that passes requests for Calico's resources on to a server in this process.
pub(crate) struct Cluster {
    pub(crate) kubernetes: Arc<KubeApiServer>,
    pub(crate) runtime: Runtime,
    pub(crate) address: SocketAddr,
    pub(crate) folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::start_on(Datastore::Etcd)
    }

    pub(crate) fn start_on(datastore: Datastore) -> Self {
        let kubernetes = Arc::new(KubeApiServer::start().unwrap());
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        issue(folder.path());
        let file = |name: &str| folder.path().join(name);
        let address = free_address();
        let settings = Settings {
            address,
            certificate: (datastore == Datastore::Etcd).then(|| CertificateFiles {
                certificate: file("tls.crt"),
                key: file("tls.key"),
                authority: Some(file("ca.crt")),
            }),
            service: ServiceReference {
                namespace: PLACE.to_owned(),
                name: SERVICE.to_owned(),
                port: address.port(),
            },
            ..Settings::default()
        };
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}),
            // Endpoints on a loopback address are refused; a name that leads there is not.
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": PLACE},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            }),
        ] {
            apply(&kubernetes, &object);
        }
        let (stop, stopped) = oneshot::channel();
        runtime.block_on(async {
            let store = Client::new(datastore.connect(&kubernetes).await);
            store.ensure_initialized("v1", "test").await.unwrap();
            let client = client_of(kubernetes.kubeconfig()).await;
            let server = Server::bind(settings, client, store).await.unwrap();
            assert_eq!(server.address(), Some(address));
            tokio::spawn(server.run(async {
                let _ = stopped.await;
            }));
        });
        let cluster = Self {
            kubernetes,
            runtime,
            address,
            folder,
            stop: Some(stop),
        };
        eventually("Kubernetes finds the resources", || {
            let listed = cluster.kubectl(&["get", "tiers.projectcalico.org"]);
            let status = [
                "get",
                "apiservice",
                "v3.projectcalico.org",
                "-o",
                "jsonpath={.status}",
            ];
            let instead = || format!("{}{:?}", listed.stderr, cluster.kubectl(&status));
            listed.success().then_some(()).ok_or_else(instead)
        });
        cluster
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> Output {
        self.kubernetes.kubectl(args).unwrap()
    }

    /// What a command prints that must succeed.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(output.success(), "{output:?}");
        output.stdout
    }

    /// What a command says that must fail.
    #[track_caller]
    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(!output.success(), "{output:?}");
        output.stderr
    }

    /// Creates an object as a user, who may be none for the administrator.
    pub(crate) fn create(&self, user: Option<&str>, object: &Value) -> Output {
        let user = user.map(|user| format!("--as={user}"));
        let mut args = vec!["create", "-f", "-"];
        args.extend(user.as_deref());
        let created = self.kubernetes.kubectl_stdin(&args, &object.to_string());
        created.unwrap()
    }

    pub(crate) fn apply(&self, object: &Value) {
        apply(&self.kubernetes, object);
    }

    /// A client of the administrator, through Kubernetes.
    pub(crate) fn client(&self) -> kube::Client {
        self.runtime
            .block_on(client_of(self.kubernetes.kubeconfig()))
    }

    /// Ends the server as an operator would.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }
}

impl Datastore {
    async fn connect(self, kubernetes: &KubeApiServer) -> Arc<dyn Store> {
        if self == Self::Etcd {
            let config = EtcdConfig::new([kubernetes.etcd().endpoint()]);
            return Arc::new(EtcdStore::connect(&config).await.unwrap());
        }
        for manifest in crd::manifests(Group::V1) {
            let args = ["create", "--validate=false", "-f", "-"];
            let created = kubernetes.kubectl_stdin(&args, &manifest.to_string());
            created.unwrap().into_stdout().unwrap();
        }
        // Once the server is registered, the other group is there too, and it leads to the server itself.
        let config = KubernetesConfig {
            kubeconfig: vec![kubernetes.kubeconfig().to_owned()],
            api_group: Some(Group::V1),
            ..KubernetesConfig::default()
        };
        Arc::new(KubernetesStore::connect(&config).await.unwrap())
    }
}

#[track_caller]
pub(crate) fn apply(kubernetes: &KubeApiServer, object: &Value) {
    let applied = kubernetes.kubectl_stdin(&["apply", "-f", "-"], &object.to_string());
    applied.unwrap().into_stdout().unwrap();
}

/// Puts a certificate for the Service into `tls.crt` and `tls.key`, and its authority into `ca.crt`.
pub(crate) fn issue(folder: &Path) {
    let names = [
        format!("{SERVICE}.{PLACE}.svc"),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
    ];
    let issued = issue_for_service(&names).unwrap();
    for (name, text) in [
        ("tls.key", issued.key),
        ("tls.crt", issued.certificate),
        ("ca.crt", issued.authority),
    ] {
        std::fs::write(folder.join("new"), text).unwrap();
        std::fs::rename(folder.join("new"), folder.join(name)).unwrap();
    }
}

pub(crate) async fn client_of(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    kube::Client::try_from(config.await.unwrap()).unwrap()
}

pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// Waits for what has to come; what is there instead is told if it does not.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(instead) => {
                let is_over = start.elapsed() > Duration::from_secs(20);
                assert!(!is_over, "{what}: {instead}");
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(crate) fn tier(name: &str) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "Tier",
        "metadata": {"name": name}, "spec": {"order": 50},
    })
}

pub(crate) fn policy(tier: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"tier": tier, "selector": "all()", "ingress": [{"action": "Allow"}]},
    })
}

/// A request in HTTP/1.1, with more headers.
pub(crate) fn request(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

/// The answer to a request in HTTP/1.1 over TLS; empty if there is none.
pub(crate) fn over_tls(
    authority: &Path,
    address: SocketAddr,
    request: &str,
    more: &[&str],
) -> String {
    let mut openssl = Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-verify_return_error",
            "-alpn",
            "http/1.1",
        ])
        .arg("-CAfile")
        .arg(authority)
        .args(more)
        .arg("-connect")
        .arg(address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Kept open to the end: the client leaves with its input.
    let mut stdin = openssl.stdin.take().unwrap();
    // It may have been sent away already.
    let _ = stdin.write_all(request.as_bytes());
    let output = openssl.wait_with_output().unwrap();
    drop(stdin);
    String::from_utf8(output.stdout).unwrap()
}
