//! Objects in protobuf, as a real kube-apiserver writes them, are the same objects that it writes in JSON.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tortie_apiserver::protobuf::{MEDIA_TYPE, decode};
use tortie_testkit::KubeApiServer;

use crate::aggregated::support::{apply, client_of};

async fn get(client: &Client, path: &str, form: &str) -> Vec<u8> {
    let request = Request::get(path).header("accept", form);
    let request = request.body(Vec::new().into()).unwrap();
    let response = client.send(request).await.unwrap();
    assert!(response.status().is_success(), "{path}: {response:?}");
    let body = Body::new(response.into_body());
    to_bytes(body, 1 << 20).await.unwrap().to_vec()
}

/// Without members that say nothing.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[test]
fn objects_are_what_they_are_in_json() {
    let kubernetes = KubeApiServer::start().unwrap();
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(client_of(kubernetes.kubeconfig()));
    for (path, object) in objects() {
        apply(&kubernetes, &object);
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{path}/{name}");
        let (json, protobuf) = runtime.block_on(async {
            let json = get(&client, &path, "application/json").await;
            (json, get(&client, &path, MEDIA_TYPE).await)
        });
        let mut expected: Value = serde_json::from_slice(&json).unwrap();
        without_nulls(&mut expected);
        assert!(expected["metadata"]["managedFields"].is_array(), "{path}");
        assert_eq!(decode(&protobuf).unwrap(), expected, "{path}");
    }
}

fn objects() -> Vec<(&'static str, Value)> {
    let metadata = |name: &str| {
        json!({
            "name": name,
            "labels": {"app": "web", "empty": ""},
            "annotations": {"note": "ä"},
            "finalizers": ["example.org/hold"],
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1-2", "controller": false,
            }],
        })
    };
    let probe = json!({
        "httpGet": {"path": "/", "port": "http", "scheme": "HTTP", "httpHeaders": [{"name": "a", "value": ""}]},
        "initialDelaySeconds": 0, "timeoutSeconds": 2,
    });
    let selector = json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}],
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata("p"),
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "serviceAccountName": "s",
            "nodeName": "n",
            "nodeSelector": {"disk": "ssd"},
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}],
            "securityContext": {
                "runAsUser": 0, "runAsNonRoot": false, "supplementalGroups": [0, 5, 4_294_967],
                "sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "1 2"}],
            },
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
            }],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
                ]}},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": selector}},
                ]},
            },
            "dnsConfig": {"nameservers": ["10.0.0.2"], "options": [{"name": "ndots", "value": "1"}]},
            "initContainers": [{"name": "i", "image": "busybox", "command": ["true"]}],
            "containers": [{
                "name": "c", "image": "nginx", "args": ["a", ""], "tty": true,
                "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "protocol": "UDP"}],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": false}}},
                    {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                ],
                "envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "0"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": true}],
                "livenessProbe": probe,
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
                "securityContext": {"privileged": false, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
            }],
            "volumes": [
                {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                {"name": "host", "hostPath": {"path": "/var", "type": ""}},
                {"name": "all", "projected": {"defaultMode": 0, "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
                    {"configMap": {"name": "c", "items": [{"key": "k", "path": "p", "mode": 256}]}},
                    {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                ]}},
            ],
        },
    });
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata("np"),
        "spec": {
            "podSelector": selector, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{}, {
                "from": [{"podSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                "ports": [{"port": 80}, {"port": "http", "protocol": "UDP"}, {}],
            }],
            "egress": [{"to": [{"namespaceSelector": selector}]}],
        },
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1beta1", "kind": "EndpointSlice", "metadata": metadata("e"),
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": ["10.0.0.9"], "conditions": {"ready": false}, "hostname": "h",
            "targetRef": {"kind": "Pod", "name": "p", "namespace": "default"},
        }],
        "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata("svc"),
        "spec": {
            "type": "NodePort", "selector": {"app": "web"}, "externalIPs": ["192.0.2.1"],
            "sessionAffinity": "ClientIP", "publishNotReadyAddresses": true,
            "ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 81, "targetPort": 8081}],
        },
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": metadata("n"),
        "spec": {
            "podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"], "unschedulable": true, "providerID": "x://1",
            "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2024-01-02T03:04:05Z"}],
        },
        "status": {
            "capacity": {"cpu": "2", "memory": "2Gi"},
            "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2024-01-02T03:04:05Z"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [{"names": ["a"], "sizeBytes": 1}],
        },
    });
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("c"),
        "data": {"k": "v", "empty": ""}, "binaryData": {"b": "AAECAw=="}, "immutable": false,
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("s"),
        "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "registry"}],
    });
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata("l"),
        "spec": {
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "renewTime": "2024-01-02T03:04:05.000006Z",
        },
    });
    let role_group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata("r"),
        "rules": [{"apiGroups": ["", "apps"], "resources": ["pods", "pods/log"], "resourceNames": ["a"], "verbs": ["get", "*"]}],
    });
    let cluster_role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata("cr"),
        "rules": [{"nonResourceURLs": ["/metrics", "/api/*"], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata("rb"),
        "roleRef": {"apiGroup": role_group, "kind": "Role", "name": "r"},
        "subjects": [
            {"apiGroup": role_group, "kind": "User", "name": "ann"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
        ],
    });
    let cluster_binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata("crb"),
        "roleRef": {"apiGroup": role_group, "kind": "ClusterRole", "name": "cr"},
        "subjects": [{"apiGroup": role_group, "kind": "Group", "name": "shop"}],
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata("ns")});
    vec![
        ("/api/v1/namespaces", namespace),
        ("/api/v1/nodes", node),
        ("/api/v1/namespaces/default/serviceaccounts", account),
        ("/api/v1/namespaces/default/configmaps", config_map),
        ("/api/v1/namespaces/default/services", service),
        ("/api/v1/namespaces/default/pods", pod),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            policy,
        ),
        (
            "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices",
            slice,
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            lease,
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            role,
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            binding,
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            cluster_role,
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            cluster_binding,
        ),
    ]
}
