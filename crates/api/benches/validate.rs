//! Reading, completing and checking policies, at three sizes.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use divan::{Bencher, counter::ItemsCount};
use serde_json::{Value, json};
use tortie_api::Resource;

fn main() {
    divan::main();
}

fn policies(count: usize) -> Vec<Value> {
    (0..count)
        .map(|i| {
            json!({
                "apiVersion": "projectcalico.org/v3",
                "kind": "NetworkPolicy",
                "metadata": {"name": format!("policy-{i}"), "namespace": format!("ns-{}", i % 100)},
                "spec": {
                    "order": i,
                    "selector": format!("app == 'app-{}' && has(tier)", i % 50),
                    "types": ["Ingress", "Egress"],
                    "ingress": [
                        {"action": "Allow", "protocol": "TCP", "source": {"selector": "role == 'client'"},
                         "destination": {"ports": [80, 443, "8080:8090"]}},
                        {"action": "Deny", "source": {"nets": ["10.0.0.0/8", "192.168.0.0/16"]}},
                    ],
                    "egress": [
                        {"action": "Allow", "protocol": "UDP", "destination": {
                            "namespaceSelector": "projectcalico.org/name == 'kube-system'", "ports": [53]}},
                    ],
                },
            })
        })
        .collect()
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 10)]
fn decode_default_and_validate(bencher: Bencher<'_, '_>, count: usize) {
    let policies = policies(count);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        for policy in &policies {
            let mut resource = Resource::decode_strict(policy).unwrap();
            resource.set_defaults();
            resource.validate().unwrap();
        }
    });
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 10)]
fn validate(bencher: Bencher<'_, '_>, count: usize) {
    let resources: Vec<Resource> = policies(count)
        .iter()
        .map(|policy| {
            let mut resource = Resource::decode_strict(policy).unwrap();
            resource.set_defaults();
            resource
        })
        .collect();
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        for resource in &resources {
            resource.validate().unwrap();
        }
    });
}
