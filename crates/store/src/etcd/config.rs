//! How to reach etcd.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::error::{Error, Result};

/// How long the dialling of one endpoint may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection in use is probed this often…
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// …and given up if the probe is not answered within this.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach etcd. Its `Debug` form shows no secrets.
#[derive(Clone, Default)]
pub struct EtcdConfig {
    /// Where etcd listens: `https://host:2379`, one or more members of one cluster. The first that
    /// answers is used, and the next one when it no longer does.
    pub endpoints: Vec<String>,
    /// Name of the user; used only together with a password.
    pub username: String,
    /// Password of the user.
    pub password: String,
    /// The authorities whose certificates etcd may show. The system's if there is none here.
    pub ca: Option<Pem>,
    /// The certificate to show to etcd; needs the key as well.
    pub cert: Option<Pem>,
    /// The private key of the certificate.
    pub key: Option<Pem>,
}

/// PEM text, or the file it is in.
#[derive(Clone)]
pub enum Pem {
    /// The name of a file.
    File(PathBuf),
    /// The text itself.
    Inline(String),
}

// === impl EtcdConfig ===

impl EtcdConfig {
    /// Settings for these endpoints, without TLS certificates and without a user.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// User and password, if both are set.
    pub(super) fn credentials(&self) -> Option<(String, String)> {
        let is_complete = !self.username.is_empty() && !self.password.is_empty();
        is_complete.then(|| (self.username.clone(), self.password.clone()))
    }

    /// The endpoints, ready to be dialled. Reads certificate files.
    pub(super) fn to_endpoints(&self) -> Result<Vec<Endpoint>> {
        let texts: Vec<&str> = self
            .endpoints
            .iter()
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
            .collect();
        if texts.is_empty() {
            return Err(Error::message(
                "no etcd endpoints are given; set `etcdEndpoints`, such as `https://host:2379`",
            ));
        }
        let tls = self.to_tls()?;
        texts
            .into_iter()
            .map(|text| to_endpoint(text, &tls))
            .collect()
    }

    fn to_tls(&self) -> Result<ClientTlsConfig> {
        let mut kinds = [&self.ca, &self.cert, &self.key].into_iter().flatten();
        let first = kinds.next().map(Pem::is_file);
        if kinds.any(|pem| Some(pem.is_file()) != first) {
            return Err(Error::message(
                "etcd certificates are given both inline and as files; use one or the other",
            ));
        }
        let mut tls = ClientTlsConfig::new().timeout(DIAL_TIMEOUT);
        tls = match &self.ca {
            Some(ca) => tls.ca_certificate(Certificate::from_pem(ca.read("CA certificate")?)),
            None => tls.with_native_roots(),
        };
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Ok(tls.identity(Identity::from_pem(
                cert.read("certificate")?,
                key.read("key")?,
            ))),
            (None, None) => Ok(tls),
            _ => Err(Error::message(
                "an etcd certificate needs its key, and a key its certificate",
            )),
        }
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            endpoints,
            username,
            password,
            ca,
            cert,
            key,
        } = self;
        f.debug_struct("EtcdConfig")
            .field("endpoints", endpoints)
            .field("username", username)
            .field("password", &if password.is_empty() { "" } else { "…" })
            .field("ca", ca)
            .field("cert", cert)
            .field("key", key)
            .finish()
    }
}

// === impl Pem ===

impl Pem {
    fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    fn read(&self, what: &str) -> Result<Vec<u8>> {
        match self {
            Self::Inline(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => std::fs::read(path).map_err(|error| {
                Error::other(
                    format!("cannot read the etcd {what} {}", path.display()),
                    error,
                )
            }),
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Inline(_) => f.write_str("Inline(…)"),
        }
    }
}

fn to_endpoint(text: &str, tls: &ClientTlsConfig) -> Result<Endpoint> {
    let bad = |error: Box<dyn std::error::Error + Send + Sync>| {
        let message = format!("etcd endpoint `{text}` cannot be used; write `https://host:2379`");
        Error::other(message, error)
    };
    let is_tls = text.starts_with("https://");
    if !is_tls && !text.starts_with("http://") {
        return Err(bad("it does not start with `http://` or `https://`".into()));
    }
    let endpoint = Endpoint::from_shared(text.to_owned()).map_err(|error| bad(error.into()))?;
    // Not while idle: etcd closes connections that are probed without a call under way.
    let endpoint = endpoint
        .connect_timeout(DIAL_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    if !is_tls {
        return Ok(endpoint);
    }
    endpoint
        .tls_config(tls.clone())
        .map_err(|error| Error::other("the etcd certificates cannot be used", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: &EtcdConfig, expected: &str) {
        let message = config.to_endpoints().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn mistakes_are_told_before_anything_is_dialled() {
        check(&EtcdConfig::default(), "no etcd endpoints");
        check(&EtcdConfig::new([" "]), "no etcd endpoints");
        check(
            &EtcdConfig::new(["127.0.0.1:2379"]),
            "write `https://host:2379`",
        );
        let cert = Some(Pem::Inline(String::new()));
        let key = Some(Pem::File("/nonexistent".into()));
        let mixed = EtcdConfig {
            cert: cert.clone(),
            key: key.clone(),
            ..EtcdConfig::new(["https://a:1"])
        };
        check(&mixed, "both inline and as files");
        check(
            &EtcdConfig {
                cert,
                ..EtcdConfig::new(["https://a:1"])
            },
            "needs its key",
        );
        check(
            &EtcdConfig {
                ca: key,
                ..EtcdConfig::new(["https://a:1"])
            },
            "/nonexistent",
        );
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let config = EtcdConfig {
            password: "hunter2".to_owned(),
            key: Some(Pem::Inline("-----BEGIN".to_owned())),
            ..EtcdConfig::new(["https://a:1"])
        };
        let text = format!("{config:?}");
        assert!(
            !text.contains("hunter2") && !text.contains("BEGIN"),
            "{text}"
        );
    }
}
