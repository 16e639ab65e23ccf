//! Serving itself: over TLS and through a socket, in both versions of HTTP, to the end.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api as KubeApi, ApiResource, DynamicObject, PostParams, WatchEvent, WatchParams};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tortie_apiserver::access::TokenAccess;
use tortie_apiserver::http::{Api, Options};
use tortie_apiserver::registry::Registry;
use tortie_apiserver::server::certificates::{Credentials, Purpose, prepare};
use tortie_apiserver::server::{Listener, serve};
use tortie_apiserver::service::Service;
use tortie_apiserver::storage::CalicoStorage;
use tortie_client::Client;
use tortie_serve::{Authorities, Certificate, Clients, Limits};
use tortie_store::embedded::EmbeddedStore;

use crate::aggregated::support::{client_of, free_address, over_tls, request, tier};

/// How long to wait for what should take a second at most.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that stands alone, in this process.
struct Alone {
    folder: tempfile::TempDir,
    address: SocketAddr,
    credentials: Credentials,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Alone {
    async fn start(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let credentials = prepare(&Purpose {
            folder: folder.path().join("pki"),
            url: format!("https://{address}"),
            names: Vec::new(),
        });
        let credentials = credentials.unwrap();
        let store = EmbeddedStore::open(folder.path().join("data")).unwrap();
        let store = Client::new(Arc::new(store));
        store.ensure_initialized("v1", "test").await.unwrap();
        let storage = Arc::new(CalicoStorage::new(store));
        let service = Service::new(Registry::aggregated(), storage);
        let authority = credentials.read_authority().unwrap();
        let authorities = Arc::new(Authorities::from_pem(authority.as_bytes()).unwrap());
        let access = TokenAccess::new(&credentials.read_token().unwrap(), Arc::default());
        let access = access.with_authorities(Arc::clone(&authorities));
        let api = Api::new(service, Arc::new(access), Options::default());
        let certificate =
            Certificate::load(credentials.certificate.clone(), credentials.key.clone());
        let tls = Listener::tls(
            address,
            Arc::new(certificate.unwrap()),
            Clients::Optional(vec![authorities]),
        );
        let socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        let listeners = vec![tls.await.unwrap(), Listener::Socket(socket)];
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            serve(api, listeners, &limits, stopped).await;
        });
        Self {
            folder,
            address,
            credentials,
            stop,
            serving,
        }
    }

    fn tiers(client: kube::Client) -> KubeApi<DynamicObject> {
        let resource = ApiResource {
            group: "projectcalico.org".to_owned(),
            version: "v3".to_owned(),
            api_version: "projectcalico.org/v3".to_owned(),
            kind: "Tier".to_owned(),
            plural: "tiers".to_owned(),
        };
        KubeApi::all_with(client, &resource)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_let_in_by_socket_certificate_and_token() {
    let alone = Alone::start(Limits::default()).await;
    // The kubeconfig, with a certificate, in HTTP/2.
    let tiers = Alone::tiers(client_of(&alone.credentials.kubeconfig).await);
    let gold = serde_json::from_value(tier("gold")).unwrap();
    tiers.create(&PostParams::default(), &gold).await.unwrap();

    // The socket.
    let mut socket = UnixStream::connect(alone.folder.path().join("socket"))
        .await
        .unwrap();
    let gold = request("/apis/projectcalico.org/v3/tiers/gold", "");
    socket.write_all(gold.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\"gold\""), "{answer}");

    // The token, in HTTP/1.1; and nothing at all.
    let token = alone.credentials.read_token().unwrap();
    let (authority, address) = (alone.credentials.authority.clone(), alone.address);
    let ask = async |header: String| {
        let request = request("/apis/projectcalico.org/v3/tiers", &header);
        let authority = authority.clone();
        let asked = move || over_tls(&authority, address, &request, &[]);
        tokio::task::spawn_blocking(asked).await.unwrap()
    };
    let answer = ask(format!("Authorization: Bearer {token}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for header in ["", "Authorization: Bearer wrong\r\n"] {
        let answer = ask(header.to_owned()).await;
        assert!(answer.starts_with("HTTP/1.1 401 Unauthorized"), "{answer}");
    }
    // Headers without end are not read to their end; the answer may be lost with the connection.
    let answer = ask(format!("X-Long: {}\r\n", "x".repeat(1 << 20))).await;
    let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 431");
    assert!(is_refused, "{answer}");

    // Both versions of HTTP are offered.
    for protocol in ["h2", "http/1.1"] {
        let agreed = Command::new("openssl")
            .args(["s_client", "-alpn", protocol, "-connect"])
            .arg(alone.address.to_string())
            .stdin(Stdio::null())
            .output();
        // After that come frames, which are no text.
        let agreed = agreed.unwrap().stdout;
        let agreed = String::from_utf8_lossy(&agreed);
        let expected = format!("ALPN protocol: {protocol}");
        assert!(agreed.contains(&expected), "{agreed}");
    }
    drop(alone.stop);
    alone.serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_end_and_answers_are_finished_when_the_server_ends() {
    let alone = Alone::start(Limits::default()).await;
    let client = client_of(&alone.credentials.kubeconfig).await;
    let tiers = Alone::tiers(client);
    let list = tiers.list(&kube::api::ListParams::default()).await.unwrap();
    let from = list.metadata.resource_version.unwrap();
    let watch = tiers.watch(&WatchParams::default(), &from).await.unwrap();
    let mut watch = watch.boxed();
    let gold = serde_json::from_value(tier("gold")).unwrap();
    tiers.create(&PostParams::default(), &gold).await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(_)), "{event:?}");
    drop(alone.stop);
    // It ends, and not with an error.
    let rest = watch.next().await;
    assert!(rest.is_none(), "{rest:?}");
    drop((watch, tiers));
    let ended = tokio::time::timeout(PATIENCE, alone.serving).await;
    ended.expect("the server ends").unwrap();
    assert!(TcpStream::connect(alone.address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_are_slow_or_many_hold_up_nobody() {
    let limits = Limits {
        connections: 4,
        handshake: Duration::from_millis(500),
        header_time: Duration::from_millis(500),
        ..Limits::default()
    };
    let alone = Alone::start(limits).await;
    // All places are taken by those who say nothing.
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(
            TcpStream::connect((Ipv4Addr::LOCALHOST, alone.address.port()))
                .await
                .unwrap(),
        );
    }
    let tiers = Alone::tiers(client_of(&alone.credentials.kubeconfig).await);
    let all = kube::api::ListParams::default();
    let listed = tiers.list(&all);
    let listed = tokio::time::timeout(PATIENCE, listed).await;
    assert!(listed.unwrap().is_ok());
    for mut silent in silent {
        // Cut off.
        let read = tokio::time::timeout(PATIENCE, silent.read_u8()).await;
        assert!(read.unwrap().is_err());
    }
    drop((alone.stop, tiers));
    alone.serving.await.unwrap();
}

/// Each has its connection, and keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_nobody_knows_give_way_to_others() {
    let limits = Limits {
        connections: 4,
        ..Limits::default()
    };
    let alone = Alone::start(limits).await;
    let health = || {
        axum::http::Request::get("/healthz")
            .body(Vec::new())
            .unwrap()
    };
    let mut strangers = Vec::new();
    for _ in 0..8 {
        let mut config = kube::Config::new(format!("https://{}", alone.address).parse().unwrap());
        let pem = alone.credentials.read_authority().unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        config.root_cert = Some(vec![pem.contents]);
        let client = kube::Client::try_from(config).unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(10), client.request_text(health()));
        assert_eq!(answer.await.unwrap().unwrap(), "ok");
        strangers.push(client);
    }
    let tiers = Alone::tiers(client_of(&alone.credentials.kubeconfig).await);
    let all = kube::api::ListParams::default();
    let mut watch = tiers
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    // More strangers do not end what is known.
    for client in strangers {
        let answer = tokio::time::timeout(Duration::from_secs(10), client.request_text(health()));
        assert_eq!(answer.await.unwrap().unwrap(), "ok");
    }
    let gold = serde_json::from_value(tier("gold")).unwrap();
    tiers.create(&PostParams::default(), &gold).await.unwrap();
    let added = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match watch.next().await.unwrap().unwrap() {
                WatchEvent::Added(object) if object.metadata.name.as_deref() == Some("gold") => {
                    break;
                }
                _ => {}
            }
        }
    });
    added.await.unwrap();
    assert!(tiers.list(&all).await.is_ok());
}

/// A client that has not shown who it is may not be idle for long; one that has may.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_say_nothing_are_sent_away() {
    let limits = Limits {
        unknown_idle: Some(Duration::from_millis(300)),
        ..Limits::default()
    };
    let alone = Alone::start(limits).await;
    let tiers = Alone::tiers(client_of(&alone.credentials.kubeconfig).await);
    let mut watch = tiers
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    let authority = alone.folder.path().join("pki/ca.crt");
    // Without a wish to close: the server does.
    let text = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let address = alone.address;
    let answer = tokio::task::spawn_blocking(move || over_tls(&authority, address, text, &[]));
    let answer = tokio::time::timeout(Duration::from_secs(10), answer);
    let answer = answer.await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let gold = serde_json::from_value(tier("gold")).unwrap();
    tiers.create(&PostParams::default(), &gold).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(10), watch.next());
    assert!(next.await.unwrap().unwrap().is_ok());
}
