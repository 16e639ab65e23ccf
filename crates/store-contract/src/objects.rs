//! One object of each kind, with most of what the kind can hold.

use serde_json::{Value, json};
use tortie_api::{API_VERSION, Kind, Resource};

use crate::Subject;

/// A rich object. Its name follows from its content where Calico wants that.
pub(super) fn rich(subject: &Subject, kind: Kind) -> Resource {
    let own = subject.name(&kind.as_str().to_lowercase());
    let (spec, status) = content(kind);
    let name = match kind {
        Kind::IpamBlock => "192-168-77-0-30".to_owned(),
        Kind::BlockAffinity => "node-1-192-168-77-0-30".to_owned(),
        Kind::IpamHandle => "net.0a1b".to_owned(),
        Kind::WorkloadEndpoint => "node--1-k8s-pod--1-eth0".to_owned(),
        Kind::ClusterInformation | Kind::IpamConfiguration | Kind::KubeControllersConfiguration => {
            "default".to_owned()
        }
        _ => own,
    };
    let mut metadata = json!({
        "name": name,
        "uid": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": { "app": "a" },
        "annotations": { "example.com/note": "ä\u{1f600} \"quoted\" \\ \n" },
    });
    if kind.is_namespaced() {
        metadata["namespace"] = subject.namespaces()[0].clone().into();
    }
    let mut object = json!({
        "apiVersion": API_VERSION, "kind": kind.as_str(), "metadata": metadata, "spec": spec,
    });
    if !status.is_null() {
        object["status"] = status;
    }
    let mut resource =
        Resource::decode_strict(&object).unwrap_or_else(|problems| panic!("{kind}: {problems}"));
    // Kubernetes applies the defaults of the CRDs; without them the round trip would change the object.
    resource.set_defaults();
    resource
}

/// Spec and status; the latter null where the kind has none.
fn content(kind: Kind) -> (Value, Value) {
    let none = Value::Null;
    match kind {
        Kind::BgpConfiguration => (bgp_configuration(), none),
        Kind::BgpFilter => (bgp_filter(), none),
        Kind::BgpPeer => (bgp_peer(), none),
        Kind::BlockAffinity => {
            let cidr = "192.168.77.0/30";
            let spec = json!({ "state": "confirmed", "node": "node-1", "type": "host", "cidr": cidr, "deleted": false });
            (spec, none)
        }
        Kind::CalicoNodeStatus => (
            json!({ "node": "node-1", "classes": ["Agent", "BGP"], "updatePeriodSeconds": 10 }),
            none,
        ),
        Kind::ClusterInformation => {
            let guid = "0123456789abcdef0123456789abcdef";
            (
                json!({ "clusterGUID": guid, "clusterType": "k8s,bgp", "datastoreReady": true }),
                none,
            )
        }
        Kind::FelixConfiguration => {
            let spec = json!({
                "logSeverityScreen": "Debug",
                "iptablesRefreshInterval": "1m30s",
                "failsafeInboundHostPorts": [{ "protocol": "TCP", "port": 22 }],
                "bpfEnabled": true,
            });
            (spec, none)
        }
        Kind::NetworkPolicy | Kind::StagedNetworkPolicy => (policy(), none),
        Kind::GlobalNetworkPolicy | Kind::StagedGlobalNetworkPolicy => {
            let mut spec = policy();
            spec["namespaceSelector"] = "has(a)".into();
            spec["applyOnForward"] = true.into();
            (spec, none)
        }
        Kind::StagedKubernetesNetworkPolicy => {
            let spec = json!({
                "stagedAction": "Set",
                "podSelector": { "matchLabels": { "a": "b" } },
                "ingress": [{ "from": [{ "podSelector": {} }], "ports": [{ "port": 80, "protocol": "TCP" }] }],
                "policyTypes": ["Ingress"],
            });
            (spec, none)
        }
        Kind::GlobalNetworkSet | Kind::NetworkSet => {
            (json!({ "nets": ["10.0.0.0/8", "fd00::/8"] }), none)
        }
        Kind::HostEndpoint => (host_endpoint(), none),
        Kind::IpamBlock => (ipam_block(), none),
        Kind::IpamConfiguration => (
            json!({ "strictAffinity": true, "autoAllocateBlocks": true, "maxBlocksPerHost": 4 }),
            none,
        ),
        Kind::IpamHandle => (
            json!({ "handleID": "net.0a1b", "block": { "192.168.77.0/30": 2 }, "deleted": false }),
            none,
        ),
        Kind::IpPool => {
            let spec = json!({
                "cidr": "192.168.76.0/24", "blockSize": 26, "vxlanMode": "CrossSubnet", "natOutgoing": true,
                "nodeSelector": "all()", "allowedUses": ["Workload", "Tunnel"],
            });
            (spec, json!({ "conditions": [condition()] }))
        }
        Kind::IpReservation => (json!({ "reservedCIDRs": ["192.168.76.8/32"] }), none),
        Kind::KubeControllersConfiguration => {
            let spec = json!({
                "logSeverityScreen": "Info",
                "healthChecks": "Enabled",
                "controllers": { "node": { "syncLabels": "Enabled", "leakGracePeriod": "15m" } },
            });
            (spec, json!({ "environmentVars": { "A": "b" } }))
        }
        Kind::LiveMigration => (json!({}), none),
        Kind::Node => {
            let spec = json!({
                "bgp": { "asNumber": 64512, "ipv4Address": "10.0.0.1/24" },
                "addresses": [{ "address": "10.0.0.1", "type": "InternalIP" }],
                "orchRefs": [{ "nodeName": "n", "orchestrator": "k8s" }],
            });
            (spec, json!({ "podCIDRs": ["192.168.0.0/24"] }))
        }
        Kind::Profile => {
            let spec = json!({ "ingress": [{ "action": "Allow" }], "labelsToApply": { "a": "b" } });
            (spec, none)
        }
        Kind::Tier => (
            json!({ "order": 12.5, "defaultAction": "Pass" }),
            json!({ "conditions": [condition()] }),
        ),
        Kind::WorkloadEndpoint => (workload_endpoint(), none),
    }
}

fn policy() -> Value {
    json!({
        "tier": "default",
        "order": 10.25,
        "selector": "app == 'a' && has(b)",
        "types": ["Ingress", "Egress"],
        "ingress": [{
            "action": "Allow",
            "protocol": "TCP",
            "source": { "selector": "c in { 'd', 'e' }", "notNets": ["10.1.0.0/16"] },
            "destination": { "ports": [80, "8000:8100", "named"] },
        }],
        "egress": [
            { "action": "Log" },
            { "action": "Deny", "ipVersion": 6, "protocol": 132 },
            { "action": "Pass", "protocol": "ICMP", "icmp": { "type": 8, "code": 0 } },
        ],
    })
}

fn bgp_configuration() -> Value {
    json!({
        "logSeverityScreen": "Info",
        "nodeToNodeMeshEnabled": false,
        "asNumber": 64512,
        "serviceClusterIPs": [{ "cidr": "10.96.0.0/12" }],
        "communities": [{ "name": "c", "value": "64512:100" }],
        "prefixAdvertisements": [{ "cidr": "10.0.0.0/24", "communities": ["c"] }],
    })
}

fn bgp_filter() -> Value {
    json!({
        "exportV4": [{ "action": "Accept", "matchOperator": "In", "cidr": "10.0.0.0/8" }],
        "importV6": [{ "action": "Reject", "matchOperator": "NotEqual", "cidr": "fd00::/8" }],
    })
}

fn bgp_peer() -> Value {
    json!({
        "nodeSelector": "all()",
        "peerIP": "10.0.0.254",
        "asNumber": 64513,
        "filters": ["f"],
        "password": { "secretKeyRef": { "name": "s", "key": "k" } },
        "keepOriginalNextHop": true,
    })
}

fn host_endpoint() -> Value {
    json!({
        "node": "node-1",
        "interfaceName": "eth0",
        "expectedIPs": ["10.0.0.1", "fd00::1"],
        "profiles": ["p"],
        "ports": [{ "name": "ssh", "protocol": "TCP", "port": 22 }],
    })
}

fn workload_endpoint() -> Value {
    json!({
        "orchestrator": "k8s",
        "node": "node-1",
        "pod": "pod-1",
        "endpoint": "eth0",
        "containerID": "0a1b",
        "ipNetworks": ["10.0.0.5/32"],
        "interfaceName": "cali0a1b2c3d4e5",
        "profiles": ["kns.ns"],
        "ports": [{ "name": "http", "protocol": "TCP", "port": 80 }],
    })
}

fn ipam_block() -> Value {
    json!({
        "cidr": "192.168.77.0/30",
        "affinity": "host:node-1",
        "affinityClaimTime": "2026-01-02T03:04:05Z",
        "allocations": [0, null, null, 1],
        "unallocated": [2, 1],
        "attributes": [
            {
                "handle_id": "net.0a1b",
                "secondary": { "node": "node-1", "pod": "p" },
                "alternateOwnerAttrs": { "pod": "q" },
            },
            { "releasedAt": "2026-01-02T03:04:05Z" },
        ],
        "sequenceNumber": 1_767_225_600_000_000_001_u64,
        "sequenceNumberForAllocation": { "0": 1_767_225_600_000_000_000_u64 },
        "deleted": false,
        "strictAffinity": false,
    })
}

fn condition() -> Value {
    json!({
        "type": "Ready",
        "status": "True",
        "reason": "AllGood",
        "message": "as it should be",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    })
}
