//! The API server and the datastore's socket, which others reach through the data folder.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use ipnet::IpNet;
use tortie_apiserver::access::{TokenAccess, Tokens};
use tortie_apiserver::audit::{self, Log};
use tortie_apiserver::http::{Api, DEFAULT_MEMORY, Options};
use tortie_apiserver::server::certificates::{self, Credentials, Purpose};
use tortie_apiserver::server::{self, Listener};
use tortie_apiserver::standalone::{self, SERVICE_NETWORK, Standalone};
use tortie_serve::{Authorities, Certificate, Clients};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Store, socket};

use super::OwnFile;
use super::parts::Parts;

/// Where processes of this machine reach the API server, in the data folder.
pub(in crate::commands) const API_SOCKET: &str = "api.sock";

/// How the API server is to be.
pub(in crate::commands) struct ApiServer {
    /// Where clients come to.
    pub(in crate::commands) listener: TcpListener,
    /// How many bytes requests may hold at a time.
    pub(in crate::commands) memory: usize,
    /// Where requests are written down.
    pub(in crate::commands) audit: Option<audit::Settings>,
    /// Where services get their addresses from.
    pub(in crate::commands) service_cidr: IpNet,
}

impl ApiServer {
    /// With the usual settings.
    pub(in crate::commands) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            memory: DEFAULT_MEMORY,
            audit: None,
            service_cidr: SERVICE_NETWORK.into(),
        }
    }

    /// Starts it on a store, with its files in a folder.
    pub(in crate::commands) async fn start(
        self,
        parts: &mut Parts,
        folder: &Path,
        store: &Arc<EmbeddedStore>,
    ) -> Result<Credentials> {
        let address = self.listener.local_addr()?;
        let Standalone { service, roles } = standalone::open_with(store, self.service_cidr).await?;
        let purpose = Purpose {
            folder: folder.to_owned(),
            url: format!("https://{address}"),
            names: vec![address.ip().to_string()],
        };
        let credentials = certificates::prepare(&purpose)?;
        let certificate =
            Certificate::load(credentials.certificate.clone(), credentials.key.clone())?;
        let authorities = Authorities::from_pem(credentials.read_authority()?.as_bytes());
        let authorities = Arc::new(authorities.map_err(anyhow::Error::msg)?);
        let clients = Clients::Optional(vec![Arc::clone(&authorities)]);
        let tcp = tokio::net::TcpListener::from_std(self.listener)?;
        let listener = Listener::tls_on(tcp, Arc::new(certificate), clients)?;
        let socket = folder.join(API_SOCKET);
        let local = socket::bind(&socket)?;
        let own_socket = OwnFile(socket);
        let access = TokenAccess::new(&credentials.read_token()?, roles);
        let secret = credentials.read_account_secret()?;
        let tokens = Tokens::new(secret.as_bytes(), Arc::clone(&service) as _);
        let tokens = Arc::new(tokens);
        let access = access
            .with_authorities(Arc::clone(&authorities))
            .with_tokens(Arc::clone(&tokens));
        let audit = match self.audit {
            None => None,
            Some(audit) => Log::open(&audit)
                .with_context(|| format!("cannot open the audit log {}", audit.path.display()))?,
        };
        let options = Options {
            memory: self.memory,
            audit,
            tokens: Some(tokens),
            ..Options::default()
        };
        let forgetting = Arc::clone(&service).forget_events();
        let api = Api::new(service, Arc::new(access), options);
        let closed = parts.closed();
        parts.start_server("API server", async move {
            let listeners = vec![listener, Listener::Socket(local)];
            let limits = server::limits();
            tokio::select! {
                () = server::serve(api, listeners, &limits, closed) => {}
                () = certificates::follow(purpose, authorities) => {}
                () = forgetting => {}
            }
            drop(own_socket);
            Ok(())
        });
        Ok(credentials)
    }
}

/// Serves a store to other commands, at the socket beside its file. The socket goes with what this gives.
pub(in crate::commands) fn serve_store(
    parts: &mut Parts,
    file: &Path,
    store: &Arc<EmbeddedStore>,
) -> Result<OwnFile> {
    let socket: PathBuf = socket::path_beside(file);
    let listener = socket::bind(&socket)?;
    let (served, closed) = (Arc::clone(store) as Arc<dyn Store>, parts.closed());
    parts.start_server("datastore", async move {
        socket::serve(served, listener, closed).await;
        Ok(())
    });
    Ok(OwnFile(socket))
}
