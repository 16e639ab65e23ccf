//! One rule at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tortie_api::{ClusterInformation, IpPool, IpReservation, IpamBlock};

use super::super::allocation::Tenant;
use super::super::cached_node::CachedNode;
use super::super::pod::uses;
use super::super::scan::{Grace, Lookup, View};
use super::super::state::State;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

#[derive(Default)]
struct Cluster {
    pods: BTreeMap<String, Value>,
    nodes: BTreeMap<String, Value>,
    machines: Option<BTreeSet<String>>,
}

impl View for Cluster {
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<crate::pod::Pod>> {
        let pod = self.pods.get(&format!("{namespace}/{name}"))?;
        Some(Arc::new(
            serde_json::from_value(pod.clone()).expect("a pod"),
        ))
    }

    fn node(&self, name: &str) -> Option<Arc<CachedNode>> {
        let node = self.nodes.get(name)?;
        Some(Arc::new(
            serde_json::from_value(node.clone()).expect("a node"),
        ))
    }

    fn has_machine(&self, machine: &Tenant) -> Option<bool> {
        let machines = self.machines.as_ref()?;
        Some(machines.contains(&*machine.name))
    }
}

/// A state with one block of `n1` whose addresses are held by these.
fn state_of(holders: &[Value]) -> State {
    let mut state = State::new();
    state.set_block(block("10.0.0.0/29", "n1", holders));
    set_node(&mut state, "n1");
    state
}

fn block(cidr: &str, node: &str, holders: &[Value]) -> IpamBlock {
    let size: usize = 8;
    let held = holders.len();
    let allocations: Vec<Option<usize>> = (0..size).map(|at| (at < held).then_some(at)).collect();
    let unallocated: Vec<usize> = (held..size).collect();
    let numbers: BTreeMap<String, u64> = (0..held).map(|at| (at.to_string(), 7)).collect();
    serde_json::from_value(json!({
        "apiVersion": "projectcalico.org/v3", "kind": "IPAMBlock",
        "metadata": { "name": cidr.replace(['.', '/'], "-") },
        "spec": {
            "cidr": cidr, "affinity": format!("host:{node}"),
            "allocations": allocations, "unallocated": unallocated, "attributes": holders,
            "sequenceNumber": 9, "sequenceNumberForAllocation": numbers,
            "deleted": false, "strictAffinity": false,
        },
    }))
    .expect("a block")
}

fn holder(handle: &str, attributes: &Value) -> Value {
    json!({ "handle_id": handle, "secondary": attributes })
}

fn pod_holder(handle: &str, pod: &str) -> Value {
    holder(
        handle,
        &json!({ "node": "n1", "namespace": "default", "pod": pod }),
    )
}

fn set_node(state: &mut State, name: &str) {
    let node = json!({
        "metadata": { "name": name },
        "spec": { "orchRefs": [{ "nodeName": name, "orchestrator": "k8s" }] },
    });
    state.set_node(&serde_json::from_value(node).expect("a node"));
}

fn cluster(nodes: &[&str]) -> Cluster {
    Cluster {
        nodes: nodes
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "metadata": { "name": name } })))
            .collect(),
        ..Cluster::default()
    }
}

fn pod(node: &str, address: &str) -> Value {
    json!({
        "metadata": { "name": "p", "namespace": "default" },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "podIP": address, "podIPs": [{ "ip": address }], "phase": "Running" },
    })
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

/// Looks at everything at this minute. Gives the nodes that are gone, and what can be released.
fn look(
    state: &mut State,
    cluster: &Cluster,
    grace: Grace,
    minute: i64,
) -> (Vec<Arc<str>>, Vec<String>) {
    state.all_dirty = true;
    let nodes = state.nodes_to_check();
    let unknown = state.unknown(&nodes).into_iter();
    let looked_up: HashMap<_, _> = unknown.map(|node| (node, Lookup::Absent)).collect();
    let now = start() + SignedDuration::from_mins(minute);
    let gone = state.scan(&nodes, &looked_up, cluster, grace, now);
    let released = state.releasable(cluster, &HashSet::new());
    let released = released.iter().map(|place| place.1.to_string()).collect();
    (gone, released)
}

const FIFTEEN: Grace = Grace::For(SignedDuration::from_mins(15));

#[test]
fn an_address_of_a_pod_that_is_gone_is_released_after_the_grace_period() {
    let mut state = state_of(&[pod_holder("h1", "a")]);
    let cluster = cluster(&["n1"]);
    for minute in [0, 8, 15] {
        assert!(look(&mut state, &cluster, FIFTEEN, minute).1.is_empty());
    }
    assert_eq!(look(&mut state, &cluster, FIFTEEN, 16).1, ["10.0.0.0"]);
}

#[test]
fn without_a_grace_period_only_addresses_of_nodes_that_are_gone_are_released() {
    for grace in [Grace::Off, Grace::For(SignedDuration::ZERO)] {
        let mut state = state_of(&[pod_holder("h1", "a")]);
        let n1 = cluster(&["n1"]);
        look(&mut state, &n1, grace, 0);
        assert!(look(&mut state, &n1, grace, 10_000).1.is_empty());
        let readings = state.readings();
        let candidates = readings.pools["no_ippool"].candidates.get("n1").copied();
        let expected = (grace != Grace::Off).then_some(1.0);
        assert_eq!(candidates, expected);

        let (gone, released) = look(&mut state, &cluster(&[]), grace, 10_001);
        assert_eq!(released, ["10.0.0.0"]);
        assert_eq!(gone, [Arc::from("n1")]);
    }
}

#[test]
fn a_pod_that_comes_back_in_time_keeps_its_address() {
    let mut state = state_of(&[pod_holder("h1", "a")]);
    let mut cluster = cluster(&["n1"]);
    look(&mut state, &cluster, FIFTEEN, 0);
    cluster
        .pods
        .insert("default/a".into(), pod("n1", "10.0.0.0"));
    look(&mut state, &cluster, FIFTEEN, 14);
    cluster.pods.clear();
    for minute in [16, 31] {
        assert!(look(&mut state, &cluster, FIFTEEN, minute).1.is_empty());
    }
    assert_eq!(look(&mut state, &cluster, FIFTEEN, 32).1, ["10.0.0.0"]);
}

#[test]
fn all_addresses_of_a_handle_go_together() {
    let mut state = state_of(&[pod_holder("h1", "a"), pod_holder("h1", "a")]);
    let mut cluster = cluster(&["n1"]);
    cluster
        .pods
        .insert("default/a".into(), pod("n1", "10.0.0.0"));
    look(&mut state, &cluster, FIFTEEN, 0);
    assert!(look(&mut state, &cluster, FIFTEEN, 20).1.is_empty());
    cluster.pods.clear();
    look(&mut state, &cluster, FIFTEEN, 21);
    let (_, released) = look(&mut state, &cluster, FIFTEEN, 40);
    assert_eq!(released, ["10.0.0.0", "10.0.0.1"]);
}

#[test]
fn an_address_that_was_given_again_is_not_suspect() {
    let mut state = state_of(&[pod_holder("h1", "a")]);
    let cluster = cluster(&["n1"]);
    look(&mut state, &cluster, FIFTEEN, 0);
    let mut again = block("10.0.0.0/29", "n1", &[pod_holder("h1", "a")]);
    let numbers = &mut again.spec.sequence_number_for_allocation;
    numbers.insert("0".into(), 8);
    state.set_block(again);
    assert!(look(&mut state, &cluster, FIFTEEN, 16).1.is_empty());
    assert_eq!(look(&mut state, &cluster, FIFTEEN, 32).1, ["10.0.0.0"]);
}

#[test]
fn tunnels_go_last_and_only_once_the_datastore_has_no_such_node() {
    let tunnel = holder("t", &json!({ "node": "n1", "type": "vxlanTunnelAddress" }));
    let mut state = state_of(&[tunnel, pod_holder("h1", "a")]);
    let mut used = cluster(&[]);
    used.pods.insert("default/a".into(), pod("n1", "10.0.0.1"));
    let nobody = cluster(&[]);
    assert_eq!(
        look(&mut state, &nobody, FIFTEEN, 0),
        (vec![], vec!["10.0.0.1".into()])
    );
    state.remove_node("n1");
    assert_eq!(look(&mut state, &used, FIFTEEN, 1), (vec![], vec![]));
    let (gone, released) = look(&mut state, &nobody, FIFTEEN, 2);
    assert_eq!(released, ["10.0.0.0", "10.0.0.1"]);
    assert_eq!(gone.len(), 1);
}

#[test]
fn addresses_of_unknown_origin_stay_and_keep_their_node() {
    let other = holder("x", &json!({ "node": "n1" }));
    let windows = holder("windows-reserved-ipam-handle", &json!({ "node": "n1" }));
    let mut state = state_of(&[windows.clone(), other]);
    state.remove_node("n1");
    let nobody = cluster(&[]);
    assert_eq!(look(&mut state, &nobody, FIFTEEN, 0), (vec![], vec![]));
    state.set_block(block("10.0.0.0/29", "n1", &[windows]));
    let (gone, released) = look(&mut state, &nobody, FIFTEEN, 1);
    assert_eq!((gone.len(), released.len()), (1, 0));
}

#[test]
fn a_virtual_machine_that_is_stopped_keeps_its_address_until_it_is_deleted() {
    let mut state = state_of(&[holder("net.vmi.default.vm", &json!({}))]);
    let mut cluster = cluster(&["n1"]);
    cluster.machines = Some(["vm".to_owned()].into());
    look(&mut state, &cluster, FIFTEEN, 0);
    assert!(look(&mut state, &cluster, FIFTEEN, 100).1.is_empty());
    cluster.machines = Some(BTreeSet::new());
    look(&mut state, &cluster, FIFTEEN, 100);
    assert!(look(&mut state, &cluster, FIFTEEN, 110).1.is_empty());
    assert_eq!(look(&mut state, &cluster, FIFTEEN, 116).1, ["10.0.0.0"]);
}

#[test]
fn virtual_machines_have_at_least_five_minutes_and_count_as_there_in_doubt() {
    let machine =
        json!({ "node": "n1", "namespace": "default", "pod": "launcher", "vmi-name": "vm" });
    let mut state = state_of(&[holder("h", &machine)]);
    let mut cluster = cluster(&["n1"]);
    look(&mut state, &cluster, FIFTEEN, 0);
    assert!(look(&mut state, &cluster, Grace::Off, 100).1.is_empty());
    cluster.machines = Some(BTreeSet::new());
    look(&mut state, &cluster, Grace::For(MINUTE), 100);
    assert!(
        look(&mut state, &cluster, Grace::For(MINUTE), 105)
            .1
            .is_empty()
    );
    assert_eq!(
        look(&mut state, &cluster, Grace::For(MINUTE), 106).1.len(),
        1
    );
    cluster.machines = Some(["vm".to_owned()].into());
    assert!(
        look(&mut state, &cluster, Grace::For(MINUTE), 200)
            .1
            .is_empty()
    );
}

#[test]
fn nodes_that_are_not_of_kubernetes_or_cannot_be_looked_up_are_left_alone() {
    let mut state = state_of(&[pod_holder("h1", "a")]);
    let foreign = json!({ "metadata": { "name": "n1" } });
    state.set_node(&serde_json::from_value(foreign).expect("a node"));
    assert_eq!(
        look(&mut state, &cluster(&[]), FIFTEEN, 0),
        (vec![], vec![])
    );
    state.remove_node("n1");
    let nodes = state.nodes_to_check();
    let gone = state.scan(&nodes, &HashMap::new(), &cluster(&[]), FIFTEEN, start());
    assert!(gone.is_empty() && state.confirmed.is_empty());
    assert!(state.dirty.contains("n1"), "it is looked at again");
}

#[test]
fn a_node_keeps_one_empty_block_and_all_while_it_is_moved_from_flannel() {
    let mut state = state_of(&[]);
    state.set_block(block("10.0.0.8/29", "n1", &[]));
    state.set_block(block("10.0.0.16/29", "n1", &[]));
    let mut cluster = cluster(&["n1"]);
    let at = |minute| start() + SignedDuration::from_mins(minute);
    assert!(state.unused_blocks(&cluster, FIFTEEN, at(0)).is_empty());
    let labels = json!({ "metadata": { "name": "n1", "labels": {
        "projectcalico.org/node-network-during-migration": "flannel" } } });
    let moved = cluster
        .nodes
        .insert("n1".into(), labels)
        .expect("it was there");
    assert!(state.unused_blocks(&cluster, FIFTEEN, at(20)).is_empty());
    cluster.nodes.insert("n1".into(), moved);
    assert!(state.unused_blocks(&cluster, FIFTEEN, at(21)).is_empty());
    assert!(state.unused_blocks(&cluster, FIFTEEN, at(36)).is_empty());
    let unused = state.unused_blocks(&cluster, FIFTEEN, at(37));
    assert_eq!(unused.len(), 2);
    assert!(
        state
            .unused_blocks(&cluster, Grace::Off, at(100))
            .is_empty()
    );
}

#[test]
fn the_datastore_is_left_alone_while_it_is_locked_or_gone() {
    let mut state = State::new();
    let mut information = ClusterInformation::default();
    state.set_information(Some(&information));
    assert!(!state.is_locked);
    information.spec.datastore_ready = Some(false);
    state.set_information(Some(&information));
    assert!(state.is_locked);
    information.spec.datastore_ready = Some(true);
    state.set_information(Some(&information));
    assert!(!state.is_locked);
    state.set_information(None);
    assert!(state.is_locked);
}

#[test]
fn what_a_pod_uses() {
    let address: IpAddr = "10.0.0.1".parse().expect("an address");
    let check = |pod: Value, expected: bool| {
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        assert_eq!(uses(&pod, address, Some("n1")), expected, "{pod:?}");
    };
    check(pod("n1", "10.0.0.1"), true);
    check(pod("n1", "10.0.0.2"), false);
    check(pod("n2", "10.0.0.1"), false);
    check(
        json!({ "metadata": { "name": "p", "namespace": "d" } }),
        true,
    );
    let mut evicted = pod("n1", "10.0.0.1");
    evicted["status"]["phase"] = json!("Failed");
    evicted["status"]["reason"] = json!("Evicted");
    check(evicted, false);
    let mut done = pod("n1", "10.0.0.1");
    done["status"]["phase"] = json!("Succeeded");
    check(done, false);
}

#[test]
fn figures_are_told_by_pool_and_node() {
    let mut state = state_of(&[
        pod_holder("h1", "a"),
        holder(
            "h2",
            &json!({ "node": "n2", "namespace": "default", "pod": "b" }),
        ),
        holder("h3", &json!({})),
    ]);
    let pool = json!({ "metadata": { "name": "pool" }, "spec": { "cidr": "10.0.0.0/24" } });
    let pool: IpPool = serde_json::from_value(pool).expect("a pool");
    state.pools.set(&pool);
    let reserved =
        json!({ "metadata": { "name": "r" }, "spec": { "reservedCIDRs": ["10.0.0.240/28"] } });
    let reserved: IpReservation = serde_json::from_value(reserved).expect("a reservation");
    state.pools.set_reservation(reserved);
    let metrics = super::super::metrics::Metrics::default();
    metrics.set(state.readings());
    let net: IpNet = "10.0.0.0/29".parse().expect("a network");
    metrics.reclaimed(&state, (net, net.addr()));
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(metrics));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
    for line in [
        "ipam_allocations_in_use{ippool=\"pool\",node=\"n1\"} 1.0",
        "ipam_allocations_in_use{ippool=\"pool\",node=\"unknown_node\"} 1.0",
        "ipam_allocations_borrowed{ippool=\"pool\",node=\"n1\"} 0.0",
        "ipam_allocations_borrowed{ippool=\"pool\",node=\"n2\"} 1.0",
        "ipam_blocks{ippool=\"pool\",node=\"n1\"} 1.0",
        "ipam_allocations_gc_candidates{ippool=\"pool\",node=\"n1\"} 0.0",
        "# TYPE ipam_allocations_gc_reclamations counter",
        "ipam_allocations_gc_reclamations{ippool=\"pool\",node=\"n1\"} 1.0",
        "ipam_ippool_size{ippool=\"pool\"} 256.0",
        "ipam_ippool_reserved{ippool=\"pool\"} 16.0",
        "ipam_allocations_per_node{node=\"n2\"} 1.0",
        "ipam_blocks_per_node{node=\"n1\"} 1.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
