use std::net::Ipv4Addr;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::*;

/// An authority, what it has signed, and files with that.
struct Site {
    folder: TempDir,
    authority: String,
    /// The certificate and key of a reader that the authority vouches for, and of one for whom another does.
    known: (String, String),
    foreign: (String, String),
}

struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.pem(), key.serialize_pem())
    }
}

impl Site {
    fn new() -> Self {
        let ours = Authority::new();
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
            known: ours.sign(),
            foreign: Authority::new().sign(),
            authority: ours.certificate.clone(),
        };
        let (certificate, key) = ours.sign();
        for (name, text) in [("crt", certificate), ("key", key), ("ca", ours.certificate)] {
            std::fs::write(site.file(name), text).unwrap();
        }
        site
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self, client_auth: ClientAuth) -> MetricsConfig {
        MetricsConfig {
            enabled: true,
            host: None,
            port: 0,
            ca_file: Some(self.file("ca")),
            cert_file: Some(self.file("crt")),
            key_file: Some(self.file("key")),
            client_auth,
        }
    }

    /// What a reader gets who shows a certificate, if any.
    async fn read(&self, client_auth: ClientAuth, shown: Option<&(String, String)>) -> String {
        let (certificate, acceptor) = keys(&self.config(client_auth)).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Answers::new().metrics(|| "figures".to_owned());
        let reading = async {
            let tcp = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let connector = TlsConnector::from(Arc::new(self.client(shown)));
            let mut text = String::new();
            if let Ok(mut stream) = connector.connect(name, tcp).await {
                let request =
                    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                // One who is refused learns it here or later.
                let _ = stream.write_all(request).await;
                let _ = stream.read_to_string(&mut text).await;
            }
            text
        };
        tokio::select! {
            text = reading => text,
            () = answers.serve_tls(listener, acceptor, &certificate) => unreachable!("it serves for ever"),
        }
    }

    fn client(&self, shown: Option<&(String, String)>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        match shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                )
                .unwrap(),
        }
    }
}

/// Whether readers get figures that show nothing, a certificate of another authority, one of ours.
async fn check(client_auth: ClientAuth, expected: [bool; 3]) {
    let site = Site::new();
    let shown = [None, Some(&site.foreign), Some(&site.known)];
    for (shown, expected) in shown.into_iter().zip(expected) {
        let text = site.read(client_auth, shown).await;
        let is_given = text.starts_with("HTTP/1.1 200") && text.ends_with("figures");
        assert_eq!(is_given, expected, "{client_auth:?} {shown:?}: {text}");
    }
}

#[tokio::test]
async fn readers_of_metrics_show_what_is_asked_for() {
    check(ClientAuth::NoClientCert, [true, true, true]).await;
    check(ClientAuth::RequireAnyClientCert, [false, true, true]).await;
    check(ClientAuth::VerifyClientCertIfGiven, [true, false, true]).await;
    check(ClientAuth::RequireAndVerifyClientCert, [false, false, true]).await;
}

#[test]
fn what_asks_for_tls_and_is_not_complete_is_said() {
    let site = Site::new();
    let check = |change: fn(&mut MetricsConfig), expected: &str| {
        let mut config = site.config(ClientAuth::RequireAndVerifyClientCert);
        change(&mut config);
        assert!(asks_for_tls(&config));
        assert_eq!(keys(&config).map(drop).unwrap_err().to_string(), expected);
    };
    check(
        |config| config.key_file = None,
        "PrometheusMetricsKeyFile is not set, which PrometheusMetricsCertFile asks for",
    );
    check(
        |config| config.cert_file = None,
        "PrometheusMetricsCertFile is not set, which PrometheusMetricsKeyFile asks for",
    );
    check(
        |config| config.ca_file = None,
        "PrometheusMetricsCAFile is not set, which PrometheusMetricsClientAuth asks for",
    );
    check(
        |config| (config.cert_file, config.key_file) = (None, None),
        "PrometheusMetricsCertFile is not set, which PrometheusMetricsCAFile asks for",
    );
}
