//! The certificates of a server that stands alone: an authority of its own, what it vouches for, and a kubeconfig with
//! which `kubectl` finds the server and is let in.
//!
//! # Invariants
//! - What is there and good is kept, so that clients need not be told anew.
//! - Files with secrets can be read by their owner alone, at every moment.
//! - A file is replaced as a whole or not at all.
//! - A clock that is wrong for a while makes nothing void: an authority that begins later is kept, and one that is replaced is
//!   kept beside the new one.

mod clients;
mod files;
mod issue;
mod names;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use tortie_error::Causes;
use tortie_serve::Authorities;

use self::files::Folder;
use self::issue::{Authority, Subject};

pub use self::clients::{Client, Issued, Lifetime, kubeconfig_for, write_secret};
pub use self::issue::{SelfIssued, issue_for_service};

/// The file with what tokens of service accounts are signed with.
const ACCOUNT_SECRET: &str = "service-account.key";

/// What is left of a certificate's time when another one is made.
const RENEWAL: Duration = Duration::from_hours(30 * 24);

/// How often a running server looks whether it is time for that: soon after a clock has been set right.
const INTERVAL: Duration = Duration::from_mins(1);

/// Why certificates cannot be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make the certificate of {subject}")]
    Issue {
        /// Whose.
        subject: String,
        /// Why not.
        #[source]
        source: rcgen::Error,
    },
    /// There is nobody to vouch for clients.
    #[error("there is no authority of a server in {}: start `tortie up` there first", folder.display())]
    NoAuthority {
        /// Where it should be.
        folder: PathBuf,
    },
    /// A certificate would outlive who vouches for it.
    #[error("the authority in {} ends at {end}, which is before {wanted}", folder.display())]
    TooLong {
        /// Where the authority is.
        folder: PathBuf,
        /// When it ends.
        end: Timestamp,
        /// When the certificate was to end.
        wanted: Timestamp,
    },
}

/// The files of a server that stands alone, all in one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The certificate of the authority.
    pub authority: PathBuf,
    /// The certificate of the server.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The certificate of the administrator.
    pub client_certificate: PathBuf,
    pub client_key: PathBuf,
    /// The token of the administrator.
    pub token: PathBuf,
    /// What tokens of service accounts are signed with.
    pub account_secret: PathBuf,
    /// How clients find the server and are let in.
    pub kubeconfig: PathBuf,
}

/// What the files are made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose {
    /// The folder. It is made if it is not there.
    pub folder: PathBuf,
    /// The server's address for the kubeconfig, such as `https://127.0.0.1:6443`.
    pub url: String,
    /// Names and addresses of the server beside those of the machine itself.
    pub names: Vec<String>,
}

/// Makes what is not there, and renews what is no longer good for long.
pub fn prepare(purpose: &Purpose) -> Result<Credentials, Error> {
    prepare_at(purpose, Timestamp::now())
}

fn prepare_at(purpose: &Purpose, now: Timestamp) -> Result<Credentials, Error> {
    let folder = Folder::open(&purpose.folder)?;
    let authority = Authority::prepare(&folder, now)?;
    let server = Subject {
        name: "kube-apiserver".to_owned(),
        groups: Vec::new(),
        alternatives: server_names(&purpose.names),
        is_server: true,
    };
    authority.prepare_pair(&folder, "server", &server)?;
    let administrator = Subject {
        name: "kubernetes-admin".to_owned(),
        groups: vec![crate::access::ADMINISTRATORS.to_owned()],
        alternatives: Vec::new(),
        is_server: false,
    };
    let (certificate, key) = authority.prepare_pair(&folder, "admin", &administrator)?;
    for name in ["token", ACCOUNT_SECRET] {
        if folder.read(name)?.is_none_or(|token| token.len() < 32) {
            let half = || uuid::Uuid::new_v4().simple().to_string();
            folder.write_secret(name, &(half() + &half()))?;
        }
    }
    let kubeconfig = Kubeconfig {
        url: &purpose.url,
        authority: authority.certificate(),
        user: &administrator.name,
        namespace: None,
        certificate: &certificate,
        key: &key,
    };
    let kubeconfig = kubeconfig.text();
    if folder.read("kubeconfig")?.as_deref() != Some(kubeconfig.as_str()) {
        folder.write_secret("kubeconfig", &kubeconfig)?;
    }
    let path = |name: &str| purpose.folder.join(name);
    Ok(Credentials {
        authority: path("ca.crt"),
        certificate: path("server.crt"),
        key: path("server.key"),
        client_certificate: path("admin.crt"),
        client_key: path("admin.key"),
        token: path("token"),
        account_secret: path(ACCOUNT_SECRET),
        kubeconfig: path("kubeconfig"),
    })
}

/// Renews certificates while the server runs, for ever, and lets in the clients of a new authority. The server reads its
/// own certificate again by itself.
pub async fn follow(purpose: Purpose, clients: Arc<Authorities>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(error) = renew(&purpose, &clients, Timestamp::now()) {
            tracing::error!(
                error = %Causes(&error),
                "Certificates cannot be renewed"
            );
        }
    }
}

fn renew(purpose: &Purpose, clients: &Authorities, now: Timestamp) -> Result<(), Error> {
    let credentials = prepare_at(purpose, now)?;
    let authority = credentials.read_authority()?;
    let replaced = clients.replace(authority.as_bytes());
    let replaced = replaced.map_err(|reason| Error::File {
        action: "use",
        path: credentials.authority.clone(),
        source: std::io::Error::other(reason),
    })?;
    if replaced {
        tracing::warn!(authority = %credentials.authority.display(), "Clients are now known by a new authority");
    }
    Ok(())
}

impl Credentials {
    /// What tokens of service accounts are signed with.
    pub fn read_account_secret(&self) -> Result<String, Error> {
        read(&self.account_secret)
    }

    /// The token of the administrator.
    pub fn read_token(&self) -> Result<String, Error> {
        read(&self.token)
    }

    /// The certificate of the authority in PEM.
    pub fn read_authority(&self) -> Result<String, Error> {
        read(&self.authority)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

/// What the server is called: on this machine, by others, and from within a cluster.
fn server_names(more: &[String]) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        IpAddr::from(Ipv4Addr::LOCALHOST).to_string(),
        IpAddr::from(Ipv6Addr::LOCALHOST).to_string(),
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
    ];
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().to_ascii_lowercase();
    names.extend([host].into_iter().chain(more.iter().cloned()));
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

/// How one client finds the server and is let in. Certificates and key are in PEM.
struct Kubeconfig<'a> {
    url: &'a str,
    authority: &'a str,
    user: &'a str,
    namespace: Option<&'a str>,
    certificate: &'a str,
    key: &'a str,
}

impl Kubeconfig<'_> {
    /// In YAML. Names are quoted as JSON quotes them, which YAML reads as well.
    fn text(&self) -> String {
        let Self { url, .. } = self;
        let [authority, certificate, key] =
            [self.authority, self.certificate, self.key].map(|pem| BASE64.encode(pem));
        let user = serde_json::json!(self.user);
        let namespace = self.namespace.map(|name| {
            let name = serde_json::json!(name);
            format!("    namespace: {name}\n")
        });
        let namespace = namespace.unwrap_or_default();
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: tortie
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: tortie
  context:
    cluster: tortie
    user: {user}
{namespace}current-context: tortie
"
        )
    }
}

#[cfg(test)]
mod tests;
