//! Without a cluster: an API server on the embedded datastore, and everything else on top of it.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tortie_bgp::speaker::Farewell;
use tortie_client::Client;
use tortie_store::shared::Shared;

use super::api::{API_SOCKET, ApiServer, serve_store};
use super::bgp::Bgp;
use super::parts::Parts;
use super::surroundings::{Surroundings, inherited_listener, listen};
use super::{OwnFile, READY, local_client, node, systemd};
use crate::args::{Global, Part, Up};
use crate::commands::agent::node_name;
use crate::commands::pod::{NETWORK_FILE, Site};
use crate::config::{data_file, data_folder, embedded};

pub(super) async fn run(args: &Up, global: &Global) -> Result<()> {
    let folder = data_folder(global);
    let file = data_file(global);
    let environment = tortie_config::from_environment(std::env::vars_os());
    let name = node_name(args.node.as_deref(), &environment)?;
    let Shared::Own(store) = embedded(&file, args.quota << 20).await? else {
        bail!(
            "another process serves the store {}, and `up` needs it for itself",
            file.display()
        );
    };
    let _process = OwnFile::of_process(&folder)?;
    let has_own_network = args.inside.parent.is_some();
    let (surroundings, listener) = if has_own_network {
        (Surroundings::own_network(global)?, inherited_listener()?)
    } else {
        (Surroundings::machine(global), listen(args.listen)?)
    };

    let mut parts = Parts::new();
    let server = ApiServer {
        listener,
        memory: args.memory_budget << 20,
        audit: args.audit.settings(),
        service_cidr: args.service_cidr,
    };
    let credentials = server.start(&mut parts, &folder, &store).await?;
    let _socket = serve_store(&mut parts, &file, &store)?;

    let client = Client::new(Arc::clone(&store) as _);
    let cluster = local_client::through(&folder.join(API_SOCKET));
    let network = folder.join(NETWORK_FILE);
    let text = surroundings.network(&name, &folder, &file).to_string();
    fs::write(&network, text).with_context(|| format!("writing {}", network.display()))?;
    let _network = OwnFile(network);
    let mut registration = node::Registration::new(&client, &cluster, &name)?;
    if has_own_network {
        registration = registration.alone();
    }
    registration.begin().await?;
    let site = Site::new(folder.clone(), Arc::clone(&store) as _, cluster.clone());
    site.remove_dead().await;
    if !args.without.contains(&Part::Controllers) {
        let backend = tortie_client::connect::Backend::Embedded;
        let status_file = folder.join("controllers.json");
        parts.start_controllers(client.clone(), backend, cluster.clone(), true, status_file);
    }
    if !args.without.contains(&Part::Agent) {
        parts.keep_place(client.clone(), name.clone(), registration);
        let farewell = if has_own_network {
            Farewell::Withdraw
        } else {
            Farewell::Stay
        };
        parts.start_bgp(Bgp {
            node: name.clone(),
            store: Arc::clone(&store) as _,
            cluster: Some(cluster.clone()),
            workloads: surroundings.workloads(),
            folders: surroundings.bird.clone(),
            farewell,
        });
        let store = Arc::clone(&store) as _;
        let cluster = Some(cluster);
        parts.start_agent(name, store, cluster, "embedded", args, surroundings)?;
    }
    systemd::notify_ready();
    let mut out = anstream::stdout();
    writeln!(
        out,
        "{READY} Kubeconfig: {}",
        credentials.kubeconfig.display()
    )?;
    parts.run().await
}
