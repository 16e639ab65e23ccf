//! Clients that do not come through the API server of Kubernetes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::http::Request;
use kube::config::AuthInfo;
use tortie_apiserver::server::certificates::{Purpose, prepare};

use crate::aggregated::support::{Cluster, eventually, issue};

const TIERS: &str = "/apis/projectcalico.org/v3/tiers";

/// How long an answer may take. Mostly it takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The code and the text of an answer; the code is 0 if there is none.
async fn ask(authority: &Path, address: SocketAddr, who: AuthInfo, path: &str) -> (u16, String) {
    ask_with(authority, address, who, path, &[]).await
}

async fn ask_with(
    authority: &Path,
    address: SocketAddr,
    who: AuthInfo,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, String) {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    let pem = std::fs::read(authority).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
    config.root_cert = Some(vec![pem.contents]);
    config.auth_info = who;
    // Who gets no answer asks again, and the test says so after a while.
    config.connect_timeout = Some(PATIENCE);
    config.read_timeout = Some(PATIENCE);
    config.default_retry = false;
    let client = kube::Client::try_from(config).unwrap();
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match client.request_text(request.body(Vec::new()).unwrap()).await {
        Ok(text) => (200, text),
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(error) => (0, format!("{error:?}")),
    }
}

fn with_token(token: &str) -> AuthInfo {
    serde_json::from_value(serde_json::json!({"token": token})).unwrap()
}

fn with_certificate(certificate: &Path, key: &Path) -> AuthInfo {
    AuthInfo {
        client_certificate: Some(certificate.display().to_string()),
        client_key: Some(key.display().to_string()),
        ..AuthInfo::default()
    }
}

#[test]
fn clients_are_known_by_tokens_and_certificates_and_asked_about() {
    let cluster = Cluster::start();
    // By default everybody may know whether servers are ready; without that, it is a matter of rights as any other.
    cluster.run(&["delete", "clusterrolebinding", "system:public-info-viewer"]);
    cluster.runtime.block_on(async {
        let authority = cluster.folder.path().join("ca.crt");
        let who = |who: AuthInfo, path: &'static str| ask(&authority, cluster.address, who, path);

        // Nobody in particular.
        let (code, text) = who(AuthInfo::default(), TIERS).await;
        assert_eq!(code, 403, "{text}");
        assert_eq!(
            text,
            "tiers.projectcalico.org is forbidden: User \"system:anonymous\" cannot list resource \"tiers\" in API \
             group \"projectcalico.org\" at the cluster scope"
        );
        assert_eq!(who(AuthInfo::default(), "/livez").await.0, 200);
        assert_eq!(who(AuthInfo::default(), "/healthz").await.0, 200);
        let (code, text) = who(AuthInfo::default(), "/readyz").await;
        let expected = "forbidden: User \"system:anonymous\" cannot get path \"/readyz\"";
        assert_eq!((code, text.as_str()), (403, expected));

        // Tokens.
        let token = with_token(cluster.kubernetes.token());
        assert_eq!(who(token.clone(), TIERS).await.0, 200);
        assert_eq!(who(token.clone(), "/readyz").await.0, 200);
        assert_eq!(who(with_token("wrong"), TIERS).await.0, 401);

        // Certificates of users.
        let (certificate, key) = cluster.kubernetes.client_certificate("ann", &["x"]).unwrap();
        let ann = with_certificate(&certificate, &key);
        let (code, text) = who(ann.clone(), TIERS).await;
        assert!(code == 403 && text.contains("User \"ann\" cannot list"), "{code} {text}");
        let (certificate, key) = cluster
            .kubernetes
            .client_certificate("eve", &["system:masters"])
            .unwrap();
        assert_eq!(who(with_certificate(&certificate, &key), TIERS).await.0, 200);

        // Headers of a front proxy count only from the front proxy.
        let headers = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];
        for somebody in [AuthInfo::default(), ann] {
            let asked = ask_with(&authority, cluster.address, somebody, TIERS, &headers).await;
            assert_eq!(asked.0, 403, "{asked:?}");
        }
        // Also not from a user who is called as it is.
        let (certificate, key) = cluster
            .kubernetes
            .client_certificate("front-proxy-client", &[])
            .unwrap();
        let false_proxy = with_certificate(&certificate, &key);
        let asked = ask_with(&authority, cluster.address, false_proxy, TIERS, &headers).await;
        assert_eq!(asked.0, 403, "{asked:?}");
        let proxy = cluster.kubernetes.folder().join("front-proxy");
        let proxy = with_certificate(&proxy.join("client.crt"), &proxy.join("client.key"));
        let asked = ask_with(&authority, cluster.address, proxy.clone(), TIERS, &headers).await;
        assert_eq!(asked.0, 200, "{asked:?}");
        let asked = ask_with(&authority, cluster.address, proxy.clone(), TIERS, &headers[..1]).await;
        assert!(asked.0 == 403 && asked.1.contains("User \"root\" cannot list"), "{asked:?}");
        assert_eq!(who(proxy, TIERS).await.0, 401);

        // Nobody's words are taken for another's.
        let headers = [("impersonate-user", "ann")];
        let asked = ask_with(&authority, cluster.address, token, TIERS, &headers).await;
        assert!(asked.0 == 400 && asked.1.contains("impersonate-user"), "{asked:?}");
    });
}

#[test]
fn authorities_and_certificates_change_while_the_server_runs() {
    let cluster = Cluster::start();
    let folder = cluster.folder.path();
    let token = with_token(cluster.kubernetes.token());
    let ask = |authority: &Path, who: &AuthInfo| {
        let asked = ask(authority, cluster.address, who.clone(), TIERS);
        cluster.runtime.block_on(asked)
    };

    // Another authority for clients.
    let purpose = Purpose {
        folder: folder.join("other"),
        url: String::new(),
        names: Vec::new(),
    };
    let other = prepare(&purpose).unwrap();
    let stranger = with_certificate(&other.client_certificate, &other.client_key);
    let authority = folder.join("ca.crt");
    let (code, text) = ask(&authority, &stranger);
    assert_eq!(code, 0, "{text}");
    let map = [
        "-n",
        "kube-system",
        "configmap",
        "extension-apiserver-authentication",
    ];
    let field = ["-o", "jsonpath={.data.client-ca-file}"];
    let known = cluster.run(&[&["get"], &map[..], &field[..]].concat());
    let both = format!("{known}{}", other.read_authority().unwrap());
    let patch = serde_json::json!({"data": {"client-ca-file": both}}).to_string();
    cluster.run(&[&["patch"], &map[..], &["--type=merge", "-p", &patch]].concat());
    eventually("the new authority is known", || {
        let (code, text) = ask(&authority, &stranger);
        (code == 200).then_some(()).ok_or(text)
    });

    // Another certificate for the server.
    let old = folder.join("old.crt");
    std::fs::copy(&authority, &old).unwrap();
    issue(folder);
    eventually("the new certificate is shown", || {
        let (code, text) = ask(&authority, &token);
        (code == 200).then_some(()).ok_or(text)
    });
    assert_eq!(ask(&old, &token).0, 0);
}
