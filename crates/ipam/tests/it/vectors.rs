//! What Calico's own library does with addresses, step by step, compared with what this one does: on etcd every key and
//! value at the end, on the embedded datastore every answer.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tortie_ipam::{AssignIp, Assignment, AutoAssign, Error, Holder, Ipam, Owner, ReleaseIp};
use tortie_store::embedded::EmbeddedStore;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Kind, Resource, Store};
use tortie_testkit::{Etcd, vectors};

use crate::model::gate::Gate;

const IPAM: &str = "/calico/ipam/";
const HANDLES: &str = "/calico/ipam/v2/handle/";

/// Blocks are made at whole seconds here, so that the rest of a sequence number is the number of changes.
const NANOSECONDS: u64 = 1_000_000_000;

#[tokio::test]
async fn steps_and_final_state_on_etcd_are_those_of_calico() {
    let cases = vectors("ipam.json");
    let etcd = Etcd::shared();
    // Several objects at once, and one after the other as on Kubernetes.
    let runs = cases.iter().enumerate();
    let runs =
        runs.flat_map(|(number, case)| [true, false].map(|together| (number, case, together)));
    for (number, case, together) in runs {
        etcd.etcdctl(&["del", "--prefix", "/calico/"]).unwrap();
        let store = EtcdStore::connect(&EtcdConfig::new([etcd.endpoint()]))
            .await
            .unwrap();
        let store: Arc<dyn Store> = Arc::new(Gate::new(Arc::new(store), together, usize::MAX));
        run(number, case, &store).await;
        let found = normalised(&state(etcd));
        let expected = expected_state(&case["final"]);
        let keys: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
        for key in keys {
            assert_eq!(found.get(key), expected.get(key), "case {number}: {key}");
        }
    }
}

#[tokio::test]
async fn steps_on_the_embedded_datastore_are_those_of_calico() {
    for (number, case) in vectors("ipam.json").iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        run(number, case, &store).await;
    }
}

async fn run(number: usize, case: &Value, store: &Arc<dyn Store>) {
    set_up(&case["setup"], store).await;
    let clock = || Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let ipam = Ipam::with_clock(Arc::clone(store), Arc::new(clock));
    for (step, operation) in case["ops"].as_array().unwrap().iter().enumerate() {
        let found = carry_out(&ipam, operation).await;
        let mut expected = Map::new();
        for field in ["result", "error"] {
            if let Some(value) = operation.get(field) {
                expected.insert(field.to_owned(), value.clone());
            }
        }
        assert_eq!(
            found,
            Value::Object(expected),
            "case {number}, step {step}: {operation}"
        );
    }
}

/// Calico's IPAM does not obey the configuration that the cases set, which is another object than that of its IPAM.
async fn set_up(setup: &Value, store: &Arc<dyn Store>) {
    let list = |name: &str| setup[name].as_array().cloned().unwrap_or_default();
    let create = async |kind: Kind, name: &str, labels: &Value, spec: Value| {
        let mut object = json!({ "metadata": { "name": name }, "spec": spec });
        if labels.is_object() {
            object["metadata"]["labels"] = labels.clone();
        }
        let resource = Resource::decode_stored(kind, &object).unwrap();
        store.create(resource).await.unwrap();
    };
    for node in list("nodes") {
        create(
            Kind::Node,
            node["name"].as_str().unwrap(),
            &node["labels"],
            json!({}),
        )
        .await;
    }
    for pool in list("pools") {
        let mut spec = pool.clone();
        spec["allowedUses"] = json!(["Workload", "Tunnel"]);
        create(
            Kind::IpPool,
            pool["name"].as_str().unwrap(),
            &Value::Null,
            spec,
        )
        .await;
    }
    if let Some(reserved) = setup.get("reservedCIDRs") {
        let spec = json!({ "reservedCIDRs": reserved });
        create(Kind::IpReservation, "reserved", &Value::Null, spec).await;
    }
}

async fn carry_out(ipam: &Ipam, operation: &Value) -> Value {
    let text = |name: &str| operation[name].as_str().unwrap_or_default();
    let count = |name: &str| u32::try_from(operation[name].as_u64().unwrap_or(0)).unwrap();
    let handle = || Some(text("handle").to_owned());
    let attributes = serde_json::from_value(operation["attrs"].clone()).unwrap_or_default();
    match text("op") {
        "autoAssign" => {
            let request = AutoAssign {
                num4: count("num4"),
                num6: count("num6"),
                handle: handle(),
                attributes,
                ..AutoAssign::on(text("host"))
            };
            let (assigned, error) = match ipam.auto_assign(&request).await {
                Ok(assigned) => (assigned, None),
                Err(error) => (error.assigned().cloned().unwrap_or_default(), Some(error)),
            };
            let nets = |found: &Assignment| {
                json!(
                    found
                        .addresses
                        .iter()
                        .map(IpNet::to_string)
                        .collect::<Vec<_>>()
                )
            };
            answer(
                Some(json!({ "v4": nets(&assigned.v4), "v6": nets(&assigned.v6) })),
                error,
            )
        }
        "assignIP" => {
            let request = AssignIp {
                handle: handle(),
                attributes,
                ..AssignIp::on(text("host"), text("ip").parse().unwrap())
            };
            answer(None, ipam.assign_ip(&request).await.err())
        }
        "releaseIPs" => {
            let requests = operation["ips"].as_array().unwrap().iter();
            let requests: Vec<ReleaseIp> = requests
                .map(|request| ReleaseIp {
                    address: request["ip"].as_str().unwrap().parse().unwrap(),
                    handle: Some(request["handle"].as_str().unwrap().to_owned()),
                    sequence_number: None,
                })
                .collect();
            let (released, error) = match ipam.release(&requests).await {
                Ok(released) => (released, None),
                Err(error) => (error.released().cloned().unwrap_or_default(), Some(error)),
            };
            let sorted = |mut texts: Vec<String>| {
                texts.sort();
                json!(texts)
            };
            let done = released
                .released
                .iter()
                .map(|request| request.address.to_string());
            let unallocated = released.unallocated.iter().map(ToString::to_string);
            answer(
                Some(
                    json!({ "released": sorted(done.collect()), "unallocated": sorted(unallocated.collect()) }),
                ),
                error,
            )
        }
        "releaseByHandle" => answer(None, ipam.release_by_handle(text("handle")).await.err()),
        "ipsByHandle" => match ipam.ips_by_handle(text("handle")).await {
            Ok(addresses) => {
                let mut texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                texts.sort();
                answer(Some(json!(texts)), None)
            }
            Err(error) => answer(Some(json!([])), Some(error)),
        },
        "getAssignmentAttributes" => match ipam.assignment(text("ip").parse().unwrap()).await {
            Ok(Holder {
                handle, attributes, ..
            }) => answer(
                Some(json!({ "handle_id": handle, "secondary": attributes })),
                None,
            ),
            Err(error) => answer(None, Some(error)),
        },
        "releaseHostAffinities" => {
            let must_be_empty = operation["mustBeEmpty"].as_bool().unwrap();
            let owner = Owner::host(text("host"));
            answer(
                None,
                ipam.release_host_affinities(&owner, must_be_empty)
                    .await
                    .err(),
            )
        }
        other => panic!("{other}"),
    }
}

fn answer(result: Option<Value>, error: Option<Error>) -> Value {
    let mut answer = Map::new();
    answer.extend(result.map(|result| ("result".to_owned(), result)));
    answer.extend(error.map(|error| ("error".to_owned(), json!(error.to_string()))));
    Value::Object(answer)
}

fn state(etcd: &Etcd) -> BTreeMap<String, Value> {
    let text = etcd.etcdctl(&["get", "--prefix", IPAM]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    lines
        .chunks(2)
        .map(|pair| (pair[0].to_owned(), serde_json::from_str(pair[1]).unwrap()))
        .collect()
}

/// Times without their values, and sequence numbers from the creation of the block on.
fn normalised(state: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut state = state.clone();
    for (_, block) in state
        .iter_mut()
        .filter(|(key, _)| key.contains("/assignment/"))
    {
        if block["affinity_claim_time"].is_string() {
            block["affinity_claim_time"] = json!("<time>");
        }
        let since_creation = |number: &Value| json!(number.as_u64().unwrap() % NANOSECONDS);
        block["sequenceNumber"] = since_creation(&block["sequenceNumber"]);
        for number in block["sequenceNumberForAllocation"]
            .as_object_mut()
            .unwrap()
            .values_mut()
        {
            *number = since_creation(number);
        }
    }
    state
}

/// What Calico left, but for handles: it counts the addresses that were wanted of a block, even if the block had fewer.
/// Here a handle counts what it has.
fn expected_state(state: &Value) -> BTreeMap<String, Value> {
    let mut state: BTreeMap<String, Value> = serde_json::from_value(state.clone()).unwrap();
    let mut held: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (_, block) in state.iter().filter(|(key, _)| key.contains("/assignment/")) {
        for index in block["allocations"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
        {
            let attribute = &block["attributes"][usize::try_from(index).unwrap()];
            if let Some(handle) = attribute["handle_id"].as_str() {
                let cidr = block["cidr"].as_str().unwrap();
                *held
                    .entry((handle.to_owned(), cidr.to_owned()))
                    .or_default() += 1;
            }
        }
    }
    state.retain(|key, value| {
        let Some(handle) = key.strip_prefix(HANDLES) else {
            return true;
        };
        let blocks = value["block"].as_object_mut().unwrap();
        blocks.retain(|cidr, count| {
            let held = held.remove(&(handle.to_owned(), cidr.clone())).unwrap_or(0);
            assert!(count.as_u64().unwrap() >= held, "{handle} in {cidr}");
            *count = json!(held);
            held > 0
        });
        !blocks.is_empty()
    });
    assert!(held.is_empty(), "{held:?}");
    state
}
