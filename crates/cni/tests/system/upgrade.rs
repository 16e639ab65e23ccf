//! Addresses that `host-local` gave to pods of a real API server are taken over.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_api::crd::{self, Group};
use tortie_cni::upgrade::{Places, upgrade};
use tortie_cni::{Datastore, NetworkConfig};
use tortie_ipam::{Ipam, attribute};
use tortie_store::{Key, Kind, Resource};
use tortie_testkit::KubeApiServer;

const NODE: &str = "n1";

fn apply(server: &KubeApiServer, objects: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
    let applied = server.kubectl_stdin(&["apply", "--validate=false", "-f", "-"], &list);
    applied.unwrap().into_stdout().unwrap();
}

async fn cluster(server: &KubeApiServer) -> Datastore {
    apply(server, &crd::manifests(Group::V3));
    let wait = ["wait", "crd", "--all", "--for=condition=Established"];
    server.kubectl(&wait).unwrap().into_stdout().unwrap();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        "spec": {"podCIDRs": ["10.88.0.0/24"], "podCIDR": "10.88.0.0/24"}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": NODE, "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i"}]}});
    apply(server, &[node, pod]);
    let status = json!({"status": {"podIP": "10.88.0.7", "podIPs": [{"ip": "10.88.0.7"}]}});
    let patch = [
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    let status = status.to_string();
    let patch: Vec<&str> = patch.into_iter().chain([status.as_str()]).collect();
    server.kubectl(&patch).unwrap().into_stdout().unwrap();
    let config = json!({"name": "net", "datastore_type": "kubernetes",
        "kubernetes": {"kubeconfig": server.kubeconfig()},
        "calico_api_group": "projectcalico.org/v3"});
    let config = NetworkConfig::parse(config.to_string().as_bytes()).unwrap();
    let datastore = Datastore::open(&config, &|_| None).await.unwrap();
    let create = async |kind: Kind, name: &str, spec: Value| {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let resource = Resource::decode_stored(kind, &object).unwrap();
        datastore.client.store().create(resource).await.unwrap();
    };
    let pool = json!({"cidr": "10.88.0.0/16", "blockSize": 26, "nodeSelector": "all()"});
    create(Kind::IpPool, "pool", pool).await;
    create(
        Kind::ClusterInformation,
        "default",
        json!({"datastoreReady": true}),
    )
    .await;
    datastore
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_pods_and_the_tunnel_are_taken_over() {
    let server = KubeApiServer::start().unwrap();
    let datastore = cluster(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("host-local");
    fs::write(&program, "").unwrap();
    let places = Places {
        allocations: folder.path().join("data"),
        programs: vec![program.clone(), folder.path().join("never-there")],
        settling: Duration::ZERO,
    };
    let ipam = Ipam::new(Arc::clone(datastore.client.store()));

    // Nothing was ever given out.
    upgrade(&datastore, NODE, &places).await.unwrap();
    assert!(program.exists());

    fs::create_dir(&places.allocations).unwrap();
    for (name, content) in [
        ("10.88.0.7", "c0ffee\r\neth0"),
        ("10.88.0.8", "of a container that is gone"),
        ("last_reserved_ip.0", "10.88.0.8"),
        ("lock", ""),
        ("not-an-address", ""),
    ] {
        fs::write(places.allocations.join(name), content).unwrap();
    }
    let error = upgrade(&datastore, NODE, &places).await.unwrap_err();
    assert!(error.to_string().contains("not-an-address"), "{error}");
    let information = Key::global(Kind::ClusterInformation, "default");
    let ready = async || {
        let found = datastore.client.store().get(&information).await.unwrap();
        found.to_value()["spec"]["datastoreReady"].clone()
    };
    assert_eq!(ready().await, json!(false), "nobody may assign meanwhile");

    fs::remove_file(places.allocations.join("not-an-address")).unwrap();
    upgrade(&datastore, NODE, &places).await.unwrap();
    assert_eq!(ready().await, json!(true));
    assert!(!places.allocations.exists() && !program.exists());
    let held = ipam.ips_by_handle("k8s-pod-network.c0ffee").await.unwrap();
    assert_eq!(held, ["10.88.0.7".parse::<std::net::IpAddr>().unwrap()]);
    let holder = ipam.assignment(held[0]).await.unwrap();
    assert_eq!(holder.attributes[attribute::POD], "web");
    assert_eq!(holder.attributes[attribute::NAMESPACE], "default");
    assert!(ipam.assignment("10.88.0.8".parse().unwrap()).await.is_err());
    let tunnel = ipam.assignment("10.88.0.1".parse().unwrap()).await.unwrap();
    assert_eq!(tunnel.attributes[attribute::TYPE], attribute::IPIP_TUNNEL);
    let node = datastore
        .client
        .store()
        .get(&Key::global(Kind::Node, NODE))
        .await;
    let node = node.unwrap().to_value();
    assert_eq!(node["spec"]["bgp"]["ipv4IPIPTunnelAddr"], "10.88.0.1");

    // An empty folder is no reason to disturb anybody.
    fs::create_dir(&places.allocations).unwrap();
    upgrade(&datastore, NODE, &places).await.unwrap();
    assert!(!places.allocations.exists());

    // Affinities as old versions wrote them are brought in order.
    let labels = r#"{"metadata":{"labels":null}}"#;
    let names = server.kubectl(&["get", "blockaffinities", "-o", "name"]);
    let names = names.unwrap().into_stdout().unwrap();
    let patch = ["patch", names.trim(), "--type=merge", "-p", labels];
    server.kubectl(&patch).unwrap().into_stdout().unwrap();
    assert_eq!(ipam.upgrade_host("another").await.unwrap(), 0);
    assert_eq!(ipam.upgrade_host(NODE).await.unwrap(), 1);
    assert_eq!(ipam.upgrade_host(NODE).await.unwrap(), 0);
}
