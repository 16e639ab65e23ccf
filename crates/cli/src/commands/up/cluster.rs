//! On a cluster that is there: the agent, and the controllers where Kubernetes is known.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Result;
use tortie_agent::startup::Registration;
use tortie_bgp::speaker::Farewell;
use tortie_client::connect::{self, Connection};
use tortie_variables as variables;

use super::bgp::Bgp;
use super::parts::Parts;
use super::surroundings::Surroundings;
use super::{OwnFile, READY, systemd};
use crate::args::{Global, Part, Up};
use crate::commands::agent::node_name;
use crate::commands::node::startup;
use crate::config::{await_with, cluster, data_folder};

pub(super) async fn run(args: &Up, global: &Global) -> Result<()> {
    let environment = tortie_config::from_environment(std::env::vars_os());
    let node = node_name(args.node.as_deref(), &environment)?;
    let Connection {
        client,
        cluster: kubernetes,
        backend,
        ..
    } = await_with(global, &connect::environment).await?;
    let folder = data_folder(global);
    let _process = OwnFile::of_process(&folder)?;
    let settings = startup::settings(Some(&node))?;
    let facts = startup::facts(kubernetes.as_ref()).await;
    startup::place(&client, &settings, facts.as_ref()).await?;
    let mut parts = Parts::new();
    if !args.without.contains(&Part::Agent) {
        let registration = Registration {
            client: client.clone(),
            settings,
            is_kubernetes: kubernetes.is_some(),
        };
        parts.keep_place(client.clone(), node.clone(), registration);
        let (store, name) = (Arc::clone(client.store()), backend.datastore_type().name());
        let machine = Surroundings {
            tells_kubernetes: true,
            ..Surroundings::machine(global)
        };
        parts.start_bgp(Bgp {
            node: node.clone(),
            store: Arc::clone(&store),
            cluster: kubernetes.clone(),
            workloads: machine.workloads(),
            folders: machine.bird.clone(),
            farewell: Farewell::Stay,
        });
        parts.start_agent(node, store, kubernetes.clone(), name, args, machine)?;
    }
    // etcd alone has no Kubernetes that could be followed.
    let has_kubeconfig =
        std::env::var_os(variables::KUBECONFIG).is_some_and(|file| !file.is_empty());
    if !args.without.contains(&Part::Controllers) && (kubernetes.is_some() || has_kubeconfig) {
        let kubernetes = cluster(kubernetes, global).await?;
        let status_file = folder.join("controllers.json");
        parts.start_controllers(client, backend, kubernetes, false, status_file);
    }
    systemd::notify_ready();
    writeln!(anstream::stdout(), "{READY}")?;
    parts.run().await
}
