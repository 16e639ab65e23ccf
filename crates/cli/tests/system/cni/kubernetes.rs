//! Pods of a real API server, whose annotations have a say, with Kubernetes and with etcd as the datastore.

use std::process::Command;

use serde_json::{Value, json};
use tortie_testkit::KubeApiServer;

use crate::cni::site::{Container, POOLS, Site, addresses, run_in};

/// A node with an API server in its namespace.
pub(crate) struct Cluster {
    pub(crate) site: Site,
    server: KubeApiServer,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let cluster = Self::of_group("v1");
        // The nodes are Kubernetes' own here.
        let pools: Vec<&str> = POOLS
            .split("---\n")
            .filter(|part| part.contains("IPPool"))
            .collect();
        cluster.tortie(&["apply", "-f", "-"], &pools.join("---\n"));
        cluster
    }

    /// With resources of a group, and no pools.
    fn of_group(group: &str) -> Self {
        let site = Site::empty();
        let namespace = site.node.namespace();
        let server = namespace.run(KubeApiServer::start).unwrap().unwrap();
        let cluster = Self { site, server };
        let crds = cluster.tortie(&["crds", "--group", group], "");
        cluster.kubectl(&["apply", "-f", "-"], &crds);
        let established = "--for=condition=Established";
        cluster.kubectl(&["wait", established, "crd", "--all", "--timeout=60s"], "");
        let pools = r#"["other"]"#;
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
                "spec": {"podCIDRs": ["10.88.0.0/24"], "podCIDR": "10.88.0.0/24"}},
            {"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "shop", "annotations": {"cni.projectcalico.org/ipv4pools": pools}}},
        ]});
        cluster.kubectl(&["apply", "-f", "-"], &objects.to_string());
        cluster
    }

    fn kubeconfig(&self) -> String {
        self.server.kubeconfig().display().to_string()
    }

    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let namespace = self.site.node.namespace();
        let ran = namespace.run(|| self.server.kubectl_stdin(arguments, input));
        ran.unwrap().unwrap().into_stdout().unwrap()
    }

    #[track_caller]
    pub(crate) fn tortie(&self, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tortie"));
        command
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", self.kubeconfig());
        run_in(self.site.node.namespace(), command, input)
    }

    /// Makes a pod with annotations, and a container for it.
    fn pod(&self, name: &str, annotations: &[(&str, &str)]) -> Container {
        let annotations: serde_json::Map<String, Value> = annotations
            .iter()
            .map(|(key, value)| (format!("cni.projectcalico.org/{key}"), json!(value)))
            .collect();
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}, "annotations": annotations},
            "spec": {
                "nodeName": "n1", "serviceAccountName": "clerk",
                "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 80}]}],
            },
        });
        self.kubectl(&["apply", "-f", "-"], &pod.to_string());
        Container::of_pod(&format!("id-{name}"), "shop", name)
    }

    fn annotation(&self, pod: &str, name: &str) -> Value {
        let text = self.kubectl(&["get", "pod", "-n", "shop", pod, "-o", "json"], "");
        let pod: Value = serde_json::from_str(&text).unwrap();
        pod["metadata"]["annotations"][format!("cni.projectcalico.org/{name}")].clone()
    }

    /// Settings with Kubernetes as the datastore.
    pub(crate) fn settings(&self) -> Value {
        json!({
            "datastore_type": "kubernetes", "etcd_endpoints": "", "policy": {"type": "k8s"},
            "kubernetes": {"kubeconfig": self.kubeconfig()}, "calico_api_group": "crd.projectcalico.org/v1",
            "feature_control": {"ip_addrs_no_ipam": true, "floating_ips": true},
        })
    }
}

#[test]
fn pods_of_a_cluster_are_connected_as_their_annotations_ask() {
    let mut cluster = Cluster::new();
    let settings = cluster.settings();

    let plain = cluster.pod("plain", &[]);
    let found = addresses(&cluster.site.calico("ADD", &plain, &settings).unwrap());
    // From the namespace's pool.
    assert!(found[0].starts_with("10.66.0."), "{found:?}");
    cluster.site.assert_reachable(&plain, &found[0]);
    let network = format!("{}/32", found[0]);
    assert_eq!(cluster.annotation("plain", "podIP"), json!(network));
    assert_eq!(cluster.annotation("plain", "podIPs"), json!(network));
    assert_eq!(
        cluster.annotation("plain", "containerID"),
        json!("id-plain")
    );
    let again = addresses(&cluster.site.calico("ADD", &plain, &settings).unwrap());
    assert_eq!(found, again);
    let endpoints = cluster.tortie(&["get", "workloadendpoint", "-n", "shop", "-o", "json"], "");
    let endpoints: Value = serde_json::from_str(&endpoints).unwrap();
    assert_eq!(
        endpoints["items"][0]["spec"]["ipNetworks"],
        json!([network])
    );

    let pools = r#"["four"]"#;
    let both = cluster.pod(
        "both",
        &[("ipv4pools", pools), ("ipFamilies", r#"["IPv4", "IPv6"]"#)],
    );
    let found = addresses(&cluster.site.calico("ADD", &both, &settings).unwrap());
    assert!(
        found[0].starts_with("10.65.0.") && found[1].starts_with("fd00:65::"),
        "{found:?}"
    );
    let list = format!("{}/32,{}/128", found[0], found[1]);
    assert_eq!(cluster.annotation("both", "podIPs"), json!(list));

    let wishes = [
        ("ipAddrs", r#"["10.65.0.42"]"#),
        ("hwAddr", "1c:0c:0a:c0:ff:ee"),
    ];
    let particular = cluster.pod("particular", &wishes);
    for _ in 0..2 {
        let result = cluster.site.calico("ADD", &particular, &settings).unwrap();
        assert_eq!(addresses(&result), ["10.65.0.42"]);
        assert_eq!(result["interfaces"][1]["mac"], "1c:0c:0a:c0:ff:ee");
    }
    cluster.site.assert_reachable(&particular, "10.65.0.42");

    let unmanaged = cluster.pod("unmanaged", &[("ipAddrsNoIpam", r#"["10.99.0.1"]"#)]);
    let result = cluster.site.calico("ADD", &unmanaged, &settings).unwrap();
    assert_eq!(addresses(&result), ["10.99.0.1"]);
    cluster.site.assert_reachable(&unmanaged, "10.99.0.1");
    let refused = cluster.site.calico(
        "ADD",
        &unmanaged,
        &json!({
            "datastore_type": "kubernetes", "etcd_endpoints": "", "policy": {"type": "k8s"},
            "kubernetes": {"kubeconfig": cluster.kubeconfig()},
        }),
    );
    let (code, message) = refused.unwrap_err();
    assert_eq!(code, 7);
    assert!(message.contains("ip_addrs_no_ipam"), "{message}");

    let mut check = settings.clone();
    check["prevResult"] = cluster.site.calico("ADD", &both, &settings).unwrap();
    cluster.site.calico("CHECK", &both, &check).unwrap();
    for container in [&plain, &both, &particular, &unmanaged] {
        for _ in 0..2 {
            cluster.site.calico("DEL", container, &settings).unwrap();
        }
    }
    assert_eq!(cluster.annotation("plain", "podIP"), json!(""));
    assert_eq!(
        cluster.annotation("plain", "containerID"),
        json!("id-plain")
    );
    assert_eq!(cluster.site.interfaces(), Vec::<String>::new());
    assert_eq!(
        cluster.kubectl(&["get", "ipamhandles", "-o", "name"], ""),
        ""
    );

    let nobody = Container::of_pod("id-nobody", "shop", "nobody");
    let (_, message) = cluster.site.calico("ADD", &nobody, &settings).unwrap_err();
    assert!(message.contains("shop/nobody"), "{message}");
    cluster.site.calico("DEL", &nobody, &settings).unwrap();
    assert_eq!(cluster.site.interfaces(), Vec::<String>::new());
}

#[test]
fn endpoints_in_etcd_have_what_kubernetes_knows_of_the_pod() {
    let mut cluster = Cluster::new();
    cluster.site.tortie(&["apply", "-f", "-"], POOLS);
    let settings = json!({
        "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": cluster.kubeconfig()},
        "feature_control": {"floating_ips": true},
    });
    let wishes = [
        ("ipv4pools", r#"["10.65.0.0/26"]"#),
        ("floatingIPs", r#"["203.0.113.7"]"#),
        ("allowedSourcePrefixes", r#"["198.51.100.1/24"]"#),
    ];
    let container = cluster.pod("web-1", &wishes);
    let result = cluster.site.calico("ADD", &container, &settings).unwrap();
    let address = addresses(&result).remove(0);
    let endpoint = cluster.site.resources("workloadendpoint").remove(0);
    assert_eq!(endpoint["metadata"]["name"], "n1-k8s-web--1-eth0");
    assert_eq!(
        endpoint["metadata"]["labels"],
        json!({
            "app": "web", "projectcalico.org/namespace": "shop", "projectcalico.org/orchestrator": "k8s",
            "projectcalico.org/serviceaccount": "clerk",
        })
    );
    let spec = &endpoint["spec"];
    assert_eq!(spec["profiles"], json!(["kns.shop", "ksa.shop.clerk"]));
    assert_eq!(spec["serviceAccountName"], "clerk");
    assert_eq!(spec["ports"][0]["name"], "http");
    assert_eq!(
        spec["ipNATs"],
        json!([{"internalIP": address, "externalIP": "203.0.113.7"}])
    );
    assert_eq!(
        spec["allowSpoofedSourcePrefixes"],
        json!(["198.51.100.0/24"])
    );
    cluster.site.calico("DEL", &container, &settings).unwrap();
    cluster.site.assert_nothing_left();

    let host_local = json!({
        "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": cluster.kubeconfig()},
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "usePodCidr"}]],
            "dataDir": cluster.site.folder.path().join("host-local")},
    });
    let other = cluster.pod("other", &[]);
    let result = cluster.site.calico("ADD", &other, &host_local).unwrap();
    assert_eq!(addresses(&result), ["10.88.0.2"]);
    cluster.site.assert_reachable(&other, "10.88.0.2");
    cluster.site.calico("DEL", &other, &host_local).unwrap();
    cluster.site.assert_nothing_left();
}

#[test]
fn a_node_starts_and_connects_pods_with_resources_of_the_newer_group() {
    let mut cluster = Cluster::of_group("v3");
    let name_file = cluster.site.folder.path().join("nodename");
    for _ in 0..2 {
        let mut startup = Command::new(env!("CARGO_BIN_EXE_tortie"));
        startup
            .args(["node", "startup", "--node", "n1"])
            .env_clear()
            .env("DATASTORE_TYPE", "kubernetes")
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("CALICO_NODENAME_FILE", &name_file)
            .env("CALICO_IPV4POOL_CIDR", "10.67.0.0/24")
            .env("CALICO_IPV4POOL_VXLAN", "Always")
            .env("IP", "192.0.2.1/32");
        run_in(cluster.site.node.namespace(), startup, "");
    }
    assert_eq!(std::fs::read_to_string(&name_file).unwrap().trim(), "n1");
    let get = |kind: &str| -> Value {
        let text = cluster.kubectl(&["get", kind, "-o", "json"], "");
        serde_json::from_str(&text).unwrap()
    };
    let node = &get("nodes")["items"][0];
    let annotations = &node["metadata"]["annotations"];
    assert_eq!(annotations["projectcalico.org/IPv4Address"], "192.0.2.1/32");
    let tunnel = annotations["projectcalico.org/IPv4VXLANTunnelAddr"].as_str();
    assert!(
        tunnel.is_some_and(|address| address.starts_with("10.67.0.")),
        "{annotations}"
    );
    let pools = get("ippools.projectcalico.org");
    // The other one is for IPv6.
    assert_eq!(pools["items"].as_array().map(Vec::len), Some(2), "{pools}");
    assert_eq!(pools["items"][0]["spec"]["cidr"], "10.67.0.0/24");

    let mut settings = cluster.settings();
    settings["calico_api_group"] = json!("projectcalico.org/v3");
    settings["nodename"] = json!("");
    settings["nodename_file"] = json!(name_file);
    let pool = [("ipv4pools", r#"["10.67.0.0/24"]"#)];
    let pods: Vec<Container> = ["one", "two"].map(|name| cluster.pod(name, &pool)).into();
    for pod in &pods {
        let found = addresses(&cluster.site.calico("ADD", pod, &settings).unwrap());
        assert!(found[0].starts_with("10.67.0."), "{found:?}");
        cluster.site.assert_reachable(pod, &found[0]);
    }
    let handles = |cluster: &Cluster| {
        let names = cluster.kubectl(&["get", "ipamhandles.projectcalico.org", "-o", "name"], "");
        names.lines().count()
    };
    // Those of the pods and that of the tunnel.
    assert_eq!(handles(&cluster), 3);
    for pod in &pods {
        cluster.site.calico("DEL", pod, &settings).unwrap();
    }
    assert_eq!(handles(&cluster), 1);
    assert_eq!(cluster.site.interfaces(), Vec::<String>::new());
}

#[test]
fn an_installation_finds_out_which_group_the_resources_are_in() {
    for (group, expected) in [
        ("v1", "crd.projectcalico.org/v1"),
        ("v3", "projectcalico.org/v3"),
    ] {
        let cluster = Cluster::of_group(group);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display().to_string();
        let kubeconfig = cluster.kubeconfig();
        cluster.tortie(
            &[
                "cni",
                "install",
                "--root",
                &root,
                "--kubeconfig",
                &kubeconfig,
            ],
            "",
        );
        let file = folder.path().join("etc/cni/net.d/10-calico.conflist");
        let config: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(config["plugins"][0]["calico_api_group"], expected);
        let asked = [
            "--api-group",
            "crd.projectcalico.org/v1",
            "--conf-name",
            "asked.conflist",
        ];
        let mut words = vec!["cni", "install", "--root", &root];
        words.extend(asked);
        cluster.tortie(&words, "");
        let file = folder.path().join("etc/cni/net.d/asked.conflist");
        let config: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(
            config["plugins"][0]["calico_api_group"],
            "crd.projectcalico.org/v1"
        );
    }
}
