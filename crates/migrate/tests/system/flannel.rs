//! A cluster that is moved from flannel's network, on a real API server. Nobody runs pods there: a stand-in for the kubelets
//! and the controllers of `DaemonSets` says what those would.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod stand_in;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tortie_api::Resource;
use tortie_api::ip_pool::VxlanMode;
use tortie_client::Client;
use tortie_migrate::flannel::{self, NETWORK_LABEL, Outcome, Settings};
use tortie_store::{Key, Kind, Query};

use crate::cluster::Cluster;

const SUBNET: &str = "FLANNEL_NETWORK=10.244.0.0/16;FLANNEL_SUBNET=10.244.1.1/24;FLANNEL_MTU=1450;FLANNEL_IPMASQ=true";

fn settings(subnet: &str) -> Settings {
    let variables = [("POD_NODE_NAME", "n1"), ("FLANNEL_SUBNET_ENV", subnet)];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Settings::read(&BTreeMap::from(variables)).unwrap()
}

fn node(name: &str, number: u8) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {}, "annotations": {
            "flannel.alpha.coreos.com/backend-type": "vxlan",
            "flannel.alpha.coreos.com/backend-data": format!("{{\"VtepMAC\":\"56:1d:8d:30:79:0{number}\"}}"),
            "flannel.alpha.coreos.com/public-ip": format!("172.16.101.{number}"),
        }},
        "spec": {"podCIDR": format!("10.244.{number}.0/24")},
    })
}

fn daemonset(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": name}},
            "template": {"metadata": {"labels": {"k8s-app": name}}, "spec": spec},
        },
    })
}

fn pod(namespace: &str, name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "x"}]},
    })
}

fn set_up(cluster: &Cluster) {
    let config = |name: &str, key: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": {key: ""},
        })
    };
    let flannel = json!({"containers": [{"name": "kube-flannel", "image": "flannel"}]});
    let calico = json!({
        "nodeSelector": {NETWORK_LABEL: "calico"},
        "initContainers": [{
            "name": "install-cni", "image": "calico/cni",
            "env": [{"name": "CNI_CONF_NAME", "value": "10-calico.conflist"}],
        }],
        "containers": [{"name": "calico-node", "image": "calico/node"}],
    });
    cluster.apply(&[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-flannel"}}),
        node("n1", 1),
        node("n2", 2),
        config("flannel-migration-config", "flannel_subnet_env"),
        config("calico-config", "veth_mtu"),
        daemonset("kube-flannel", "kube-flannel-ds", &flannel),
        daemonset("kube-system", "calico-node", &calico),
        pod("default", "web", "n2"),
    ]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_moved_node_by_node() {
    let cluster = Cluster::start().await;
    set_up(&cluster);
    let client = Client::new(Arc::clone(&cluster.store));
    client.ensure_initialized("", "").await.unwrap();
    let kubelets = tokio::spawn(stand_in::run(cluster.client.clone()));

    let outcome = flannel::run(client.clone(), cluster.client.clone(), settings(SUBNET)).await;
    assert_eq!(outcome.unwrap(), Outcome::Done);
    kubelets.abort();

    let pool = client
        .get(&Key::global(Kind::IpPool, "default-ipv4-ippool"))
        .await
        .unwrap();
    let Resource::IpPool(pool) = pool else {
        panic!("{pool:?}");
    };
    assert_eq!(pool.spec.cidr, "10.244.0.0/16");
    assert_eq!(
        (pool.spec.block_size, pool.spec.vxlan_mode),
        (26, Some(VxlanMode::Always))
    );
    let felix = client
        .get(&Key::global(Kind::FelixConfiguration, "default"))
        .await
        .unwrap();
    let Resource::FelixConfiguration(felix) = felix else {
        panic!("{felix:?}");
    };
    let numbers = (
        felix.spec.vxlan_vni,
        felix.spec.vxlan_port,
        felix.spec.vxlan_mtu,
    );
    assert_eq!(numbers, (Some(1), Some(8472), Some(1450)));
    assert_eq!(felix.spec.vxlan_enabled, None);
    for (name, number) in [("n1", 1), ("n2", 2)] {
        let node = client.get(&Key::global(Kind::Node, name)).await.unwrap();
        let Resource::Node(node) = node else {
            panic!("{node:?}");
        };
        assert_eq!(
            node.spec.ipv4_vxlan_tunnel_addr,
            format!("10.244.{number}.0")
        );
        assert_eq!(
            node.spec.vxlan_tunnel_mac_addr,
            format!("56:1d:8d:30:79:0{number}")
        );
        let bgp = node.spec.bgp.unwrap_or_default();
        assert_eq!(bgp.ipv4_address, format!("172.16.101.{number}/32"));
    }
    let affinities = cluster
        .store
        .list(&Query::all(Kind::BlockAffinity))
        .await
        .unwrap();
    assert_eq!(affinities.items.len(), 8, "four blocks for each /24");

    let labels = cluster.kubectl("get nodes -o jsonpath={.items[*].metadata.labels}");
    assert!(!labels.contains("projectcalico.org/node-"), "{labels}");
    let unschedulable = cluster.kubectl("get nodes -o jsonpath={.items[*].spec.unschedulable}");
    assert_eq!(unschedulable, "");
    assert_eq!(
        cluster.kubectl("get daemonsets -A -o name"),
        "daemonset.apps/calico-node\n"
    );
    let selector =
        "get daemonset -n kube-system calico-node -o jsonpath={.spec.template.spec.nodeSelector}";
    assert!(!cluster.kubectl(selector).contains("calico"));
    assert_eq!(
        cluster.kubectl("get pods -n default -o name"),
        "",
        "its pod was evicted"
    );
    let mtu = "get configmap -n kube-system calico-config -o jsonpath={.data.veth_mtu}";
    assert_eq!(cluster.kubectl(mtu), "1450");

    let again = flannel::run(client, cluster.client.clone(), settings(SUBNET))
        .await
        .unwrap();
    assert!(matches!(again, Outcome::NotNeeded(_)), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_moved_is_left_alone() {
    let cluster = Cluster::start().await;
    set_up(&cluster);
    let client = Client::new(Arc::clone(&cluster.store));
    client.ensure_initialized("", "").await.unwrap();
    cluster.kubectl("annotate node n2 --overwrite flannel.alpha.coreos.com/backend-type=host-gw");
    let failed = flannel::run(client.clone(), cluster.client.clone(), settings(SUBNET)).await;
    let message = failed.unwrap_err().to_string();
    assert_eq!(
        message,
        "node n2: flannel's backend is \"host-gw\"; only vxlan can be moved"
    );
    let unschedulable = cluster.kubectl("get nodes -o jsonpath={.items[*].spec.unschedulable}");
    assert_eq!(unschedulable, "", "no node was taken out of service");

    let managed =
        "label daemonset -n kube-flannel kube-flannel-ds addonmanager.kubernetes.io/mode=Reconcile";
    cluster.kubectl(managed);
    let outcome = flannel::run(client, cluster.client.clone(), settings(SUBNET))
        .await
        .unwrap();
    let Outcome::NotNeeded(reason) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("add-on manager"), "{reason}");
}
