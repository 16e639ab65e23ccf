//! A demo that keeps running: others reach its API and its datastore as those of a `tortie up`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Namespace, Node as KubernetesNode, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::{from_value, json};

use super::cast::{IpVersion, NODE, namespace_objects};
use super::node::Node;
use crate::args::{Demo, DemoDataplane};
use crate::commands::pod::PodRecord;
use crate::commands::up::{
    API_SOCKET, ApiServer, OwnFile, Parts, client_through, inherited_listener, serve_store,
};

/// Serves the demo's API and datastore from the folder of its data file, and tells how to use them, until `end`.
pub(super) async fn keep(
    args: &Demo,
    node: &Node,
    file: &Path,
    end: impl Future<Output = ()>,
) -> Result<()> {
    let folder = file.parent().context("the data file is in no folder")?;
    let _process = OwnFile::of_process(folder)?;
    let mut parts = Parts::new();
    let server = ApiServer::new(inherited_listener()?);
    server.start(&mut parts, folder, &node.store).await?;
    let _socket = serve_store(&mut parts, file, &node.store)?;
    let cluster = client_through(&folder.join(API_SOCKET));
    create_objects(&cluster, node, IpVersion::used(args.ipv6)).await?;
    let status_file = folder.join("controllers.json");
    let backend = tortie_client::connect::Backend::Embedded;
    parts.start_controllers(node.client.clone(), backend, cluster, true, status_file);
    for pod in &node.pods {
        PodRecord::of_thread(pod.role.namespace, pod.role.name, pod.thread)?.write(folder)?;
    }
    tell(args, node, folder, &mut anstream::stderr())?;
    parts.run_until(end).await
}

/// Tells Kubernetes' clients what there is.
async fn create_objects(cluster: &kube::Client, node: &Node, versions: &[IpVersion]) -> Result<()> {
    let options = PostParams::default();
    let nodes: Api<KubernetesNode> = Api::all(cluster.clone());
    let object = from_value(json!({"metadata": {"name": NODE}}))?;
    nodes.create(&options, &object).await?;
    let namespaces: Api<Namespace> = Api::all(cluster.clone());
    for namespace in namespace_objects() {
        namespaces.create(&options, &namespace).await?;
    }
    for pod in &node.pods {
        let object = pod.role.object(versions);
        let pods: Api<Pod> = Api::namespaced(cluster.clone(), pod.role.namespace);
        let mut created = pods.create(&options, &object).await?;
        created.status = object.status;
        pods.replace_status(pod.role.name, &options, &created)
            .await?;
    }
    Ok(())
}

/// Tells how to get at everything from another terminal.
fn tell(args: &Demo, node: &Node, folder: &Path, out: &mut impl Write) -> Result<()> {
    let process = std::process::id();
    let enter = if args.inside.own_users {
        "nsenter -U --preserve-credentials -n"
    } else {
        "nsenter -n"
    };
    let rules = match args.dataplane {
        DemoDataplane::Nftables => "nft list ruleset",
        DemoDataplane::Iptables => "iptables-save",
    };
    let folder = folder.display();
    writeln!(
        out,
        "\nEverything keeps running until Ctrl-C. In another terminal:\n"
    )?;
    writeln!(
        out,
        "  export TORTIE_DATA_DIR={folder} KUBECONFIG={folder}/kubeconfig\n"
    )?;
    for line in [
        "tortie pod list",
        "tortie pod connect shop/frontend shop/backend:8080",
        "tortie pod connect elsewhere/stranger shop/database:5432",
        "tortie get networkpolicy -A",
        "tortie why shop/frontend shop/database --protocol TCP --port 5432",
        "kubectl get pods -A -o wide",
        "kubectl delete networkpolicies.projectcalico.org -n shop --all",
    ] {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\n  {enter} -t {process} {rules}")?;
    writeln!(out, "  {enter} -t {process} ip route")?;
    for pod in &node.pods {
        writeln!(out, "  tortie pod exec {} -- sh", pod.role.full_name())?;
    }
    out.flush()?;
    Ok(())
}
