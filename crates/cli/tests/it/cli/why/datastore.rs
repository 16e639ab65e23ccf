//! Worlds that are in a datastore.

use tortie_testkit::KubeApiServer;

use crate::cli::program::Tortie;

const EMBEDDED: &str = "\
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
spec: {addresses: [{address: 192.168.0.1, type: InternalIP}]}
---
apiVersion: projectcalico.org/v3
kind: Profile
metadata: {name: kns.shop}
spec: {labelsToApply: {pcns.projectcalico.org/name: shop}, ingress: [{action: Allow}], egress: [{action: Allow}]}
---
apiVersion: projectcalico.org/v3
kind: WorkloadEndpoint
metadata: {name: n1-k8s-web-eth0, namespace: shop, labels: {app: web, projectcalico.org/namespace: shop, projectcalico.org/orchestrator: k8s}}
spec: {node: n1, orchestrator: k8s, pod: web, endpoint: eth0, interfaceName: cali1, ipNetworks: [10.0.0.1/32], profiles: [kns.shop]}
---
apiVersion: projectcalico.org/v3
kind: WorkloadEndpoint
metadata: {name: n1-k8s-db-eth0, namespace: shop, labels: {app: db, projectcalico.org/namespace: shop, projectcalico.org/orchestrator: k8s}}
spec: {node: n1, orchestrator: k8s, pod: db, endpoint: eth0, interfaceName: cali2, ipNetworks: [10.0.0.2/32], profiles: [kns.shop]}
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec: {selector: app == 'db', types: [Ingress], ingress: [{action: Allow, protocol: TCP, destination: {ports: [5432]}}]}
";

#[test]
fn the_embedded_datastore_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    tortie.ok_with_input(&["apply", "-f", "-"], EMBEDDED);
    let port = |port| {
        let output = tortie.run(&["why", "shop/web", "shop/db", "-p", "TCP", "--port", port]);
        (output.code, output.stdout)
    };
    let (code, text) = port("5432");
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("rule 0 of NetworkPolicy shop/db in tier default"),
        "{text}"
    );
    assert_eq!(port("22").0, 2);
    let text = tortie.ok(&["why", "host/n1", "shop/web"]);
    assert!(text.contains("host/n1 (192.168.0.1)"), "{text}");
    assert_eq!(
        tortie.ok(&["why", "--endpoints", "np/shop/db"]),
        "shop/db\n"
    );
    let unknown = tortie.run(&["why", "shop/wbe", "shop/db"]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.stderr.contains("did you mean `shop/web`?"),
        "{}",
        unknown.stderr
    );
}

const CLUSTER: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {project: shop}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: shop}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop, labels: {app: db}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: shop}
spec: {nodeName: n1, hostNetwork: true, containers: [{name: c, image: i}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec: {podSelector: {matchLabels: {app: db}}, ingress: [{from: [{namespaceSelector: {matchLabels: {project: shop}}}]}]}
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec: {selector: app == 'web', types: [Egress], egress: [{action: Allow, protocol: TCP, destination: {selector: app == 'db', ports: [5432]}}]}
";

#[test]
fn a_cluster_is_asked_for_pods_and_policies_of_its_own() {
    let server = KubeApiServer::start().unwrap();
    let kubeconfig = server.kubeconfig().display().to_string();
    let tortie = Tortie::with_variables(vec![("KUBECONFIG", kubeconfig)]);
    let kubectl = |arguments: &[&str], input: &str| {
        let output = server.kubectl_stdin(arguments, input).unwrap();
        assert!(output.success(), "{arguments:?}: {}", output.stderr);
    };
    kubectl(&["apply", "-f", "-"], &tortie.ok(&["crds"]));
    kubectl(
        &[
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ],
        "",
    );
    kubectl(&["apply", "-f", "-"], CLUSTER);
    for (pod, address) in [
        ("web", "10.0.0.1"),
        ("db", "10.0.0.2"),
        ("agent", "192.168.0.1"),
    ] {
        let status = serde_json::json!({"status": {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": "192.168.0.1"}});
        let status = status.to_string();
        let patch = [
            "patch",
            "pod",
            pod,
            "-n",
            "shop",
            "--subresource=status",
            "-p",
            &status,
        ];
        kubectl(&patch, "");
    }
    let code = |from: &str, to: &str, port: &str| {
        let output = tortie.run(&["why", from, to, "-p", "TCP", "--port", port]);
        assert_eq!(output.stderr, "", "{from} {to}");
        output.code
    };
    assert_eq!(code("shop/web", "shop/db", "5432"), 0);
    assert_eq!(code("shop/web", "shop/db", "22"), 2);
    assert_eq!(code("shop/web", "shop/agent", "5432"), 2);
    assert_eq!(code("shop/db", "shop/web", "80"), 0);
    let text = tortie.run(&["why", "shop/db", "shop/agent"]).stdout;
    assert!(text.contains("shop/agent (192.168.0.1)"), "{text}");
    assert_eq!(
        tortie.ok(&["why", "--endpoints", "np/shop/db"]),
        "shop/db\n"
    );
}
