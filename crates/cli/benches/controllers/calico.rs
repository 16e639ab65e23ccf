//! What nodes and the CNI plugin have written to Calico's etcd in a large cluster.

use serde_json::{Value, json};

use crate::large_cluster::{
    BORN, base_of, namespace, node_address, node_name, object, pod_address, pod_labels, pod_name,
    uid,
};

const RESOURCES: &str = "/calico/resources/v3/projectcalico.org";

/// Keys and values.
pub(crate) fn objects(nodes: usize, pods: usize) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for number in 0..nodes {
        let name = node_name(number);
        let spec = json!({
            "bgp": {"ipv4Address": format!("{}/16", node_address(number))},
            "orchRefs": [{"nodeName": name, "orchestrator": "k8s"}],
        });
        let node = object("projectcalico.org/v3", "Node", None, &name, &spec);
        all.push((format!("{RESOURCES}/nodes/{name}"), node));
        all.push(block(number, nodes, pods));
    }
    for number in 0..pods {
        let (namespace, pod) = (namespace(number), pod_name(number));
        let node = node_name(number % nodes.max(1));
        let name = format!(
            "{}-k8s-{}-eth0",
            node.replace('-', "--"),
            pod.replace('-', "--")
        );
        let spec = json!({
            "node": node, "orchestrator": "k8s", "pod": pod, "endpoint": "eth0", "containerID": uid(&pod),
            "serviceAccountName": "default", "interfaceName": format!("cali{number:011}"),
            "ipNetworks": [format!("{}/32", pod_address(number, nodes))],
            "profiles": [format!("kns.{namespace}"), format!("ksa.{namespace}.default")],
        });
        let mut endpoint = object(
            "projectcalico.org/v3",
            "WorkloadEndpoint",
            Some(&namespace),
            &name,
            &spec,
        );
        let mut labels = pod_labels(number);
        labels["projectcalico.org/namespace"] = namespace.as_str().into();
        labels["projectcalico.org/orchestrator"] = "k8s".into();
        labels["projectcalico.org/serviceaccount"] = "default".into();
        endpoint["metadata"]["labels"] = labels;
        all.push((
            format!("{RESOURCES}/workloadendpoints/{namespace}/{name}"),
            endpoint,
        ));
    }
    all
}

/// A node's block with the addresses of its pods.
fn block(node: usize, nodes: usize, pods: usize) -> (String, Value) {
    let [first, second, third, fourth] = base_of(node);
    let mut allocations = vec![Value::Null; 64];
    let (mut attributes, mut unallocated) = (Vec::new(), Vec::new());
    for (index, allocation) in allocations.iter_mut().enumerate() {
        let number = node + index * nodes;
        if number >= pods {
            unallocated.push(index);
            continue;
        }
        *allocation = attributes.len().into();
        let pod = pod_name(number);
        attributes.push(json!({
            "handle_id": format!("k8s-pod-network.{}", uid(&pod)),
            "secondary": {"namespace": namespace(number), "node": node_name(node), "pod": pod, "timestamp": BORN},
        }));
    }
    let cidr = format!("{first}.{second}.{third}.{fourth}");
    let value = json!({
        "cidr": format!("{cidr}/26"), "affinity": format!("host:{}", node_name(node)), "allocations": allocations,
        "unallocated": unallocated, "attributes": attributes, "deleted": false, "sequenceNumber": 1,
    });
    (
        format!("/calico/ipam/v2/assignment/ipv4/block/{cidr}-26"),
        value,
    )
}
