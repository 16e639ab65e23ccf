//! Connections to the cluster, and waiting for what has to come.

use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tortie_testkit::KubeApiServer;

pub(crate) async fn client(cluster: &KubeApiServer) -> kube::Client {
    client_of(cluster.kubeconfig()).await
}

pub(crate) async fn client_of(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// A namespace that exists, with nothing in it.
pub(crate) async fn namespace(client: &kube::Client, name: &str) -> String {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    name.to_owned()
}

pub(crate) fn config_map(namespace: &str, name: &str, value: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some(namespace.to_owned());
    map.data = Some([("value".to_owned(), value.to_owned())].into());
    map
}

pub(crate) fn value_of(map: &ConfigMap) -> String {
    map.data
        .as_ref()
        .and_then(|data| data.get("value"))
        .cloned()
        .unwrap_or_default()
}

/// Waits until something is as expected; what it is instead is told if it does not come.
#[track_caller]
pub(crate) fn eventually<T: PartialEq + Debug>(
    expected: T,
    mut look: impl FnMut() -> T,
) -> impl Future<Output = Duration> {
    let place = std::panic::Location::caller();
    async move {
        let start = Instant::now();
        loop {
            let found = look();
            if found == expected {
                return start.elapsed();
            }
            assert!(
                start.elapsed() < Duration::from_secs(40),
                "{place}: {found:?} instead of {expected:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
}

/// The body of an answer to a plain GET, with its status line.
pub(crate) async fn http_get(address: SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = match tokio::net::TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) => return error.to_string(),
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
