//! An API server behind that of Kubernetes, which passes on requests for Calico's resources and says who sent them.
//!
//! ```text
//! kubectl ──▶ kube-apiserver ──▶ this server ──▶ any datastore
//!                  ▲   certificate of the front proxy, names of user and groups in headers
//!                  └── who may do what, whose a token is ──┘
//! ```

mod access;
mod configuration;
mod front_proxy;
mod read_only;
mod registration;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tortie_client::Client;
use tortie_serve::{Certificate, Clients, Limits};

use self::access::DelegatedAccess;
use self::configuration::Configuration;
use crate::audit::{self, Log};
use crate::http::{Api, Options};
use crate::registry::Registry;
use crate::server::certificates::{self, issue_for_service};
use crate::server::{self, Listener};
use crate::service::Service;
use crate::storage::CalicoStorage;

/// How a server behind that of Kubernetes is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its certificate. Without one it makes its own at each start, which suits a single server that registers itself.
    pub certificate: Option<CertificateFiles>,
    /// How the API server of Kubernetes reaches it.
    pub service: ServiceReference,
    /// Whether it tells the API server of Kubernetes that it is there, or leaves that to others.
    pub registers: bool,
    /// What clients may take.
    pub limits: Limits,
    /// Where requests are written down, if they are.
    pub audit: Option<audit::Settings>,
}

/// A certificate in files in PEM, which are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authority that vouches for it, for the registration. Without one, that part of a registration that is there
    /// stays as it is.
    pub authority: Option<PathBuf>,
}

/// A Service of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReference {
    pub namespace: String,
    pub name: String,
    pub port: u16,
}

impl Default for Settings {
    /// As Calico's manifest has it.
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::UNSPECIFIED, 5443).into(),
            certificate: None,
            service: ServiceReference {
                namespace: "calico-apiserver".to_owned(),
                name: "calico-api".to_owned(),
                port: 443,
            },
            registers: true,
            limits: crate::server::limits(),
            audit: None,
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not known how to recognise the API server of Kubernetes.
    #[error("cannot read the ConfigMap kube-system/extension-apiserver-authentication")]
    Configuration(#[source] Box<kube::Error>),
    /// What the `ConfigMap` says makes no sense.
    #[error("the ConfigMap kube-system/extension-apiserver-authentication: {0}")]
    Malformed(String),
    /// No certificate can be made.
    #[error(transparent)]
    Issue(#[from] certificates::Error),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The audit log cannot be written.
    #[error("cannot open the audit log {}", path.display())]
    Audit {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] tortie_serve::Error),
    /// It cannot listen.
    #[error(transparent)]
    Serve(#[from] server::Error),
}

/// A server whose address is taken.
pub struct Server {
    api: Arc<Api>,
    listener: Listener,
    configuration: Arc<Configuration>,
    client: kube::Client,
    registration: Option<registration::Registration>,
    limits: Limits,
}

/// Serves until `shutdown`.
pub async fn run(
    settings: Settings,
    client: kube::Client,
    store: Client,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let server = Server::bind(settings, client, store).await?;
    server.run(shutdown).await;
    Ok(())
}

impl Server {
    /// Takes the address, and learns how to recognise the API server of Kubernetes.
    pub async fn bind(
        settings: Settings,
        client: kube::Client,
        store: Client,
    ) -> Result<Self, Error> {
        let configuration = Configuration::read(&client).await?;
        let (certificate, authority) = certificate(&settings)?;
        let clients = Clients::Optional(configuration.authorities());
        let listener = Listener::tls(settings.address, Arc::new(certificate), clients).await?;
        let access = DelegatedAccess::new(client.clone(), Arc::clone(&configuration));
        let storage = Arc::new(CalicoStorage::new(store));
        let service = Service::new(Registry::aggregated(), storage);
        let registration = settings.registers.then_some(registration::Registration {
            service: settings.service,
            authority,
        });
        let audit = match &settings.audit {
            None => None,
            Some(audit) => Log::open(audit).map_err(|source| Error::Audit {
                path: audit.path.clone(),
                source,
            })?,
        };
        let options = Options {
            audit,
            ..Options::default()
        };
        Ok(Self {
            api: Api::new(service, Arc::new(access), options),
            listener,
            configuration,
            client,
            registration,
            limits: settings.limits,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }

    /// Serves until `shutdown`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let serving = server::serve(self.api, vec![self.listener], &self.limits, shutdown);
        let registering = async {
            if let Some(registration) = self.registration {
                registration.bring_about(&self.client).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = serving => {}
            () = Arc::clone(&self.configuration).follow(&self.client) => {}
            () = registering => {}
        }
    }
}

/// The certificate, and the authority that vouches for it, if that is known.
fn certificate(settings: &Settings) -> Result<(Certificate, Option<String>), Error> {
    let Some(files) = &settings.certificate else {
        let ServiceReference {
            namespace, name, ..
        } = &settings.service;
        let names = [
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.cluster.local"),
            "localhost".to_owned(),
            Ipv4Addr::LOCALHOST.to_string(),
        ];
        let issued = issue_for_service(&names)?;
        let certificate = Certificate::from_pem(issued.certificate, issued.key)?;
        return Ok((certificate, Some(issued.authority)));
    };
    let certificate = Certificate::load(files.certificate.clone(), files.key.clone())?;
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })
    };
    Ok((certificate, files.authority.as_ref().map(read).transpose()?))
}
