//! What the datastore holds.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Key, Precondition, Store as _};

pub(crate) const NODE: &str = "bench";
pub(crate) const CLIENT: &str = "10.65.0.2";
pub(crate) const SERVER: &str = "10.65.0.3";
pub(crate) const PORT: u16 = 7777;

const RULES_IN_A_POLICY: usize = 500;
const MEMBERS_IN_A_SET: usize = 10_000;

/// The datastore, as a user writes to it.
pub(crate) struct Store {
    runtime: tokio::runtime::Runtime,
    store: Arc<EtcdStore>,
}

impl Store {
    pub(crate) fn connect(endpoint: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let config = EtcdConfig {
            endpoints: vec![endpoint.to_owned()],
            ..EtcdConfig::default()
        };
        let store = runtime.block_on(EtcdStore::connect(&config)).unwrap();
        let this = Self {
            runtime,
            store: Arc::new(store),
        };
        this.put_all([
            resource(
                Kind::ClusterInformation,
                "",
                "default",
                &json!({"datastoreReady": true}),
            ),
            resource(
                Kind::Tier,
                "",
                "default",
                &json!({"order": 1_000_000, "defaultAction": "Deny"}),
            ),
            resource(
                Kind::Profile,
                "",
                "open",
                &json!({"ingress": [{"action": "Allow"}], "egress": [{"action": "Allow"}]}),
            ),
        ]);
        this
    }

    /// Writes resources, many at a time; those that exist are replaced.
    pub(crate) fn put_all(&self, resources: impl IntoIterator<Item = Resource>) {
        let writes = stream::iter(resources).map(|resource| self.put(resource));
        let writes = writes.buffer_unordered(32).for_each(async |()| {});
        self.runtime.block_on(writes);
    }

    async fn put(&self, mut resource: Resource) {
        match self.store.create(resource.clone()).await {
            Ok(_) => {}
            Err(tortie_store::Error::AlreadyExists(_)) => {
                let there = self.store.get(&Key::of(&resource)).await.unwrap();
                let revision = there.metadata().resource_version.clone();
                resource.metadata_mut().resource_version = revision;
                self.store.update(resource).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The two pods that packets go between.
    pub(crate) fn probe_pods(&self) {
        self.put_all([
            pod(
                NODE,
                "client",
                CLIENT,
                "caliclient",
                json!({"role": "client"}),
            ),
            pod(
                NODE,
                "server",
                SERVER,
                "caliserver",
                json!({"role": "server"}),
            ),
        ]);
    }

    pub(crate) fn remote_endpoints(&self, count: usize) {
        self.put_all((0..count).map(|index| {
            let node = format!("remote{}", index % 100);
            let address = format!("10.66.{}.{}", index / 250, index % 250 + 1);
            let interface = format!("calir{index:08}");
            pod(
                &node,
                &format!("remote-{index}"),
                &address,
                &interface,
                labels(index),
            )
        }));
    }

    pub(crate) fn local_endpoints(&self, count: usize) {
        self.put_all((0..count).map(|index| {
            let address = format!("10.65.{}.{}", index / 250 + 1, index % 250 + 1);
            let interface = format!("calil{index:08}");
            pod(
                NODE,
                &format!("local-{index}"),
                &address,
                &interface,
                labels(index),
            )
        }));
    }

    pub(crate) fn policies(&self, count: usize) {
        self.put_all((0..count).map(|index| {
            let rule = |port: usize, app: usize| {
                json!({
                    "action": "Allow",
                    "protocol": "TCP",
                    "source": {"selector": format!("app == 'app-{}'", app % 100)},
                    "destination": {"ports": [port]},
                })
            };
            let spec = json!({
                "order": 1000 + index,
                "selector": format!("app == 'app-{}'", index % 100),
                "types": ["Ingress"],
                "ingress": [rule(80, index), rule(443, index + 1), rule(8080, index + 2)],
            });
            policy(&format!("policy-{index}"), &spec)
        }));
    }

    /// Allows or denies the packets between the two pods.
    pub(crate) fn probe_policy(&self, is_allowed: bool) {
        let action = if is_allowed { "Allow" } else { "Deny" };
        self.put_all([policy(
            "probe",
            &json!({
                "order": 1,
                "selector": "role == 'server'",
                "types": ["Ingress"],
                "ingress": [{"action": action, "protocol": "UDP", "destination": {"ports": [PORT]}}],
            }),
        )]);
    }

    pub(crate) fn rules(&self, count: usize, is_allowed: bool) {
        let policies = 0..count / RULES_IN_A_POLICY;
        self.put_all(policies.map(|index| rules_policy(index, count, is_allowed)));
    }

    pub(crate) fn remove_rules(&self) {
        for index in 0..25 {
            let key = Key::global(Kind::GlobalNetworkPolicy, format!("default.rules-{index}"));
            let always = Precondition::default();
            let deleted = self.store.delete(&key, &always);
            self.runtime.block_on(deleted).unwrap();
        }
    }

    /// Lets packets from members of the large set through.
    pub(crate) fn set_policy(&self) {
        self.put_all([policy(
            "members",
            &json!({
                "order": 1,
                "selector": "role == 'server'",
                "types": ["Ingress"],
                "ingress": [{"action": "Allow", "source": {"selector": "list == 'large'"}}],
            }),
        )]);
    }
}

/// Policies with so many rules for the server; the last of them lets the packets through.
pub(crate) fn prepared_rules(count: usize) -> (Vec<Resource>, Vec<Resource>) {
    let mut all: Vec<Resource> = (0..count / RULES_IN_A_POLICY)
        .map(|index| rules_policy(index, count, true))
        .collect();
    let last = all.split_off(all.len() - 1);
    (all, last)
}

/// The last policy with one rule changed, so that the packets do not come through any more.
pub(crate) fn prepared_rule_change() -> Vec<Resource> {
    vec![rules_policy(24, 12_500, false)]
}

/// Network sets that make one large set together, and the last of them, which may hold the client.
pub(crate) fn prepared_sets(count: usize, has_client: bool) -> (Vec<Resource>, Vec<Resource>) {
    let mut sets: Vec<Resource> = (0..count / MEMBERS_IN_A_SET)
        .map(|index| {
            let first = index * MEMBERS_IN_A_SET;
            let is_last = index + 1 == count / MEMBERS_IN_A_SET;
            // A hundred members come and go with the client.
            let left_out = if is_last && !has_client { 100 } else { 0 };
            let members = first..first + MEMBERS_IN_A_SET - left_out;
            let mut nets: Vec<String> = members
                .map(|n| format!("172.{}.{}.{}", 16 + n / 62_500, n / 250 % 250, n % 250 + 1))
                .collect();
            if is_last && has_client {
                nets.pop();
                nets.push(CLIENT.to_owned());
            }
            let mut set = resource(
                Kind::GlobalNetworkSet,
                "",
                &format!("set-{index}"),
                &json!({"nets": nets}),
            );
            let labels = [("list".to_owned(), "large".to_owned())];
            set.metadata_mut().labels = labels.into_iter().collect();
            set
        })
        .collect();
    let last = sets.split_off(sets.len() - 1);
    (sets, last)
}

fn rules_policy(index: usize, count: usize, is_allowed: bool) -> Resource {
    let first = index * RULES_IN_A_POLICY;
    let rules = (first..first + RULES_IN_A_POLICY).map(|rule| {
        let is_probe = rule + 1 == count && is_allowed;
        let net = if is_probe {
            format!("{CLIENT}/32")
        } else {
            format!("192.{}.{}.0/24", rule / 250, rule % 250)
        };
        json!({"action": "Allow", "protocol": "UDP", "source": {"nets": [net]}, "destination": {"ports": [PORT]}})
    });
    let rules: Vec<Value> = rules.collect();
    policy(
        &format!("rules-{index}"),
        &json!({
            "order": index,
            "selector": "role == 'server'",
            "types": ["Ingress"],
            "ingress": rules,
        }),
    )
}

fn labels(index: usize) -> Value {
    json!({"app": format!("app-{}", index % 100), "tier": format!("tier-{}", index % 4)})
}

fn policy(name: &str, spec: &Value) -> Resource {
    resource(
        Kind::GlobalNetworkPolicy,
        "",
        &format!("default.{name}"),
        spec,
    )
}

fn pod(node: &str, name: &str, address: &str, interface: &str, labels: Value) -> Resource {
    let escaped = name.replace('-', "--");
    let mut resource = resource(
        Kind::WorkloadEndpoint,
        "default",
        &format!("{node}-k8s-{escaped}-eth0"),
        &json!({
            "node": node,
            "orchestrator": "k8s",
            "pod": name,
            "endpoint": "eth0",
            "interfaceName": interface,
            "ipNetworks": [format!("{address}/32")],
            "profiles": ["open"],
        }),
    );
    resource.metadata_mut().labels = serde_json::from_value(labels).unwrap();
    resource
}

fn resource(kind: Kind, namespace: &str, name: &str, spec: &Value) -> Resource {
    let object = json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": kind.to_string(),
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    });
    Resource::decode_stored(kind, &object).unwrap_or_else(|error| panic!("{object}: {error:?}"))
}
