//! Without a cluster: an API server on the embedded datastore, and everything else on top of it.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tortie_apiserver::access::TokenAccess;
use tortie_apiserver::audit::Log;
use tortie_apiserver::http::{Api, Options};
use tortie_apiserver::server::certificates::{self, Credentials, Purpose};
use tortie_apiserver::server::{self, Listener};
use tortie_apiserver::standalone::{self, Standalone};
use tortie_operator::tls::{Authorities, Certificate, Clients};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::shared::Shared;
use tortie_store::{Client, Store, socket};

use super::parts::Parts;
use super::{OwnFile, local_client, node, systemd};
use crate::args::{Global, Part, Up};
use crate::commands::agent::node_name;
use crate::config::{data_file, data_folder, embedded};

/// Where processes of this machine reach the API server, in the data folder.
const API_SOCKET: &str = "api.sock";

pub(super) async fn run(args: &Up, global: &Global) -> Result<()> {
    let folder = data_folder(global);
    let file = data_file(global);
    let environment = tortie_agent::config::from_environment(std::env::vars_os());
    let name = node_name(args.node.as_deref(), &environment)?;
    let Shared::Own(store) = embedded(&file, args.quota << 20).await? else {
        bail!(
            "another process serves the store {}, and `up` needs it for itself",
            file.display()
        );
    };
    let _process = OwnFile::of_process(&folder)?;

    let mut parts = Parts::new();
    let credentials = serve(&mut parts, args, &folder, &store).await?;
    let socket = socket::path_beside(&file);
    let listener = socket::bind(&socket)?;
    let _socket = OwnFile(socket);
    let (served, stopped) = (Arc::clone(&store) as Arc<dyn Store>, parts.stopped());
    parts.start("datastore", async move {
        socket::serve(served, listener, stopped).await;
        Ok(())
    });

    let client = Client::new(Arc::clone(&store) as _);
    let cluster = local_client::through(&folder.join(API_SOCKET));
    let registration = node::Registration::new(&client, &cluster, &name)?;
    registration.begin().await?;
    if !args.without.contains(&Part::Controllers) {
        let backend = tortie_controllers::Backend::Other;
        let status_file = folder.join("controllers.json");
        parts.start_controllers(client.clone(), backend, cluster.clone(), true, status_file);
    }
    if !args.without.contains(&Part::Agent) {
        parts.keep_place(client.clone(), name.clone(), registration);
        let store = Arc::clone(&store) as _;
        parts.start_agent(name, store, Some(cluster), "embedded", args)?;
    }
    systemd::notify_ready();
    let mut out = anstream::stdout();
    writeln!(
        out,
        "Ready. Kubeconfig: {}",
        credentials.kubeconfig.display()
    )?;
    parts.run().await
}

/// Starts the API server.
async fn serve(
    parts: &mut Parts,
    args: &Up,
    folder: &Path,
    store: &Arc<EmbeddedStore>,
) -> Result<Credentials> {
    let listen = args.listen;
    let opened = standalone::open_with(store, args.service_cidr).await?;
    let Standalone { service, roles } = opened;
    let mut purpose = Purpose {
        folder: folder.to_owned(),
        url: format!("https://{listen}"),
        names: vec![listen.ip().to_string()],
    };
    let credentials = certificates::prepare(&purpose)?;
    let certificate = Certificate::load(credentials.certificate.clone(), credentials.key.clone())?;
    let authorities = Authorities::from_pem(credentials.read_authority()?.as_bytes());
    let authorities = Arc::new(authorities.map_err(anyhow::Error::msg)?);
    let clients = Clients::Optional(vec![Arc::clone(&authorities)]);
    let listener = Listener::tls(listen, Arc::new(certificate), clients).await?;
    if let Some(address) = listener.address().filter(|address| *address != listen) {
        // Any free port was asked for.
        purpose.url = format!("https://{address}");
        certificates::prepare(&purpose)?;
    }
    let socket = folder.join(API_SOCKET);
    let local = socket::bind(&socket)?;
    let own_socket = OwnFile(socket);
    let access = TokenAccess::new(&credentials.read_token()?, roles);
    let access = access.with_authorities(Arc::clone(&authorities));
    let audit = match args.audit.settings() {
        None => None,
        Some(audit) => Log::open(&audit)
            .with_context(|| format!("cannot open the audit log {}", audit.path.display()))?,
    };
    let options = Options {
        memory: args.memory_budget << 20,
        audit,
        ..Options::default()
    };
    let api = Api::new(service, Arc::new(access), options);
    let stopped = parts.stopped();
    parts.start("API server", async move {
        let listeners = vec![listener, Listener::Socket(local)];
        let limits = server::limits();
        tokio::select! {
            () = server::serve(api, listeners, &limits, stopped) => {}
            () = certificates::follow(purpose, authorities) => {}
        }
        drop(own_socket);
        Ok(())
    });
    Ok(credentials)
}
