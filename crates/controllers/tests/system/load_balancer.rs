//! Addresses for services, with a real API server whose objects are the datastore too.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tortie_api::kube_controllers_configuration::AssignIps;
use tortie_controllers::load_balancer;
use tortie_operator::{Cache, CacheOptions};
use tortie_store::{Kind, Query};

use crate::cluster::Cluster;

struct Site {
    cluster: Cluster,
}

impl Site {
    async fn start() -> Self {
        let cluster = Cluster::start().await;
        Self { cluster }
    }

    /// Waits until the service has such addresses.
    async fn wait_for(
        &self,
        service: &str,
        mut is_right: impl FnMut(&[String]) -> bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for _ in 0..100 {
            let path = "jsonpath={.status.loadBalancer.ingress[*].ip}";
            let text = self
                .cluster
                .kubectl(&format!("get service {service} -o {path}"));
            found = text.split_whitespace().map(str::to_owned).collect();
            if is_right(&found) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("{service} has {found:?}");
    }

    /// Waits until so many have addresses.
    async fn wait_for_handles(&self, expected: usize) {
        for _ in 0..100 {
            if self.count(Kind::IpamHandle).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(self.count(Kind::IpamHandle).await, expected);
    }

    async fn count(&self, kind: Kind) -> usize {
        self.cluster
            .store
            .list(&Query::all(kind))
            .await
            .unwrap()
            .items
            .len()
    }

    fn manage(&self, assign: AssignIps) -> tokio::task::JoinHandle<()> {
        let services = Cache::start(
            self.cluster.client.clone(),
            load_balancer::service_options(),
        );
        let namespaces = Cache::start(self.cluster.client.clone(), CacheOptions::default());
        let store = Arc::clone(&self.cluster.store);
        tokio::spawn(load_balancer::manage(
            self.cluster.client.clone(),
            services,
            namespaces,
            store,
            assign,
        ))
    }
}

fn pool(name: &str, cidr: &str, mode: &str, namespaces: &str) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": { "name": name },
        "spec": { "cidr": cidr, "blockSize": 29, "nodeSelector": "all()", "allowedUses": ["LoadBalancer"],
            "assignmentMode": mode, "namespaceSelector": namespaces },
    })
}

fn service(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": "default", "annotations": annotations },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
    })
}

fn is_in(found: &[String], prefix: &str) -> bool {
    found.len() == 1 && found[0].starts_with(prefix)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_get_keep_change_and_lose_their_addresses() {
    let site = Site::start().await;
    let controller = site.manage(AssignIps::AllServices);
    site.cluster
        .apply(&[service("early", &json!({})), service("other", &json!({}))]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Without a pool nobody has an address; with one, all get one.
    site.wait_for("early", <[String]>::is_empty).await;
    site.cluster.apply(&[
        pool("auto", "172.16.1.0/24", "Automatic", ""),
        pool("manual", "172.16.2.0/24", "Manual", ""),
        pool("elsewhere", "172.16.0.0/24", "Automatic", "never == 'here'"),
    ]);
    let early = site
        .wait_for("early", |found| is_in(found, "172.16.1."))
        .await;
    let other = site
        .wait_for("other", |found| is_in(found, "172.16.1."))
        .await;
    assert_ne!(early, other);

    // A start anew changes nothing, also if a status was lost.
    controller.abort();
    let wrong = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "9.9.9.9" }] } } });
    let services: Api<Service> = Api::default_namespaced(site.cluster.client.clone());
    let parameters = PatchParams::default();
    services
        .patch_status("early", &parameters, &Patch::Merge(&wrong))
        .await
        .unwrap();
    let controller = site.manage(AssignIps::AllServices);
    site.wait_for("early", |found| found == early).await;
    assert_eq!(site.count(Kind::IpamHandle).await, 2);

    // Asked for: a pool, then an address, then nothing again.
    let asks = json!({ "projectcalico.org/ipv4pools": "[\"manual\"]" });
    site.cluster.apply(&[service("early", &asks)]);
    site.wait_for("early", |found| is_in(found, "172.16.2."))
        .await;
    let asks = json!({ "projectcalico.org/loadBalancerIPs": "[\"172.16.2.77\"]" });
    site.cluster.apply(&[service("early", &asks)]);
    site.wait_for("early", |found| found == ["172.16.2.77"])
        .await;
    site.cluster.apply(&[service("early", &json!({}))]);
    site.wait_for("early", |found| is_in(found, "172.16.1."))
        .await;
    assert_eq!(site.count(Kind::IpamHandle).await, 2);
    // One that cannot be given leaves the others alone.
    let asks = json!({ "projectcalico.org/loadBalancerIPs": format!("[{:?}]", other[0]) });
    site.cluster
        .apply(&[service("greedy", &asks), service("next", &json!({}))]);
    site.wait_for("next", |found| is_in(found, "172.16.1."))
        .await;
    site.wait_for("greedy", <[String]>::is_empty).await;
    site.cluster.kubectl("delete service greedy next");
    // Here block and handle are two writes; who ends between them leaves a handle without addresses.
    site.wait_for_handles(2).await;

    // One that is gone gives its address back, also while the controller is down and another takes its name.
    controller.abort();
    site.cluster.kubectl("delete service early");
    site.cluster.apply(&[service(
        "early",
        &json!({ "projectcalico.org/ipv4pools": "[\"manual\"]" }),
    )]);
    let _controller = site.manage(AssignIps::AllServices);
    site.wait_for("early", |found| is_in(found, "172.16.2."))
        .await;
    site.wait_for_handles(2).await;
    site.cluster
        .kubectl("patch service other -p {\"spec\":{\"type\":\"ClusterIP\"}}");
    site.cluster.kubectl("delete ippool auto manual elsewhere");
    site.wait_for("early", <[String]>::is_empty).await;
    site.wait_for_handles(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_ask_for_nothing_can_be_left_to_others() {
    let site = Site::start().await;
    site.cluster
        .apply(&[pool("auto", "172.16.1.0/24", "Automatic", "")]);
    let _controller = site.manage(AssignIps::RequestedServicesOnly);
    let asks = json!({ "projectcalico.org/ipv4pools": "[\"172.16.1.0/24\"]" });
    site.cluster
        .apply(&[service("plain", &json!({})), service("asks", &asks)]);
    site.wait_for("asks", |found| is_in(found, "172.16.1."))
        .await;
    site.wait_for("plain", <[String]>::is_empty).await;
    // It stops asking: its address goes back.
    site.cluster.apply(&[service("asks", &json!({}))]);
    site.wait_for("asks", <[String]>::is_empty).await;
    assert_eq!(site.count(Kind::IpamHandle).await, 0);
}
