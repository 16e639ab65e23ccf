//! What Kubernetes objects become, and the names computed for them, against recorded answers.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tortie_api::k8s::{self, Converted};
use tortie_api::names::{
    DEFAULT_VETH_PREFIX, EndpointIds, IpVersion, agent_key, veth_name, vtep_mac,
};

/// What a case expects of the errors of a conversion.
#[derive(PartialEq)]
enum Errors {
    /// They are recorded beside the partial result.
    Recorded,
    /// They are recorded only where there is no result.
    OnlyWithoutResult,
}

#[test]
fn conversions_of_kubernetes_objects() {
    check_all("k8s-policy-conversion.json", |case| {
        let input = |field: &str| case.get(field);
        if let Some(policy) = input("networkpolicy") {
            check(
                case,
                k8s::network_policy(&read(policy)),
                "KubernetesNetworkPolicy",
                &Errors::Recorded,
            )
        } else if let Some(policy) = input("clusternetworkpolicy") {
            let converted = k8s::cluster_network_policy(&read(policy));
            check(
                case,
                converted,
                "KubernetesClusterNetworkPolicy",
                &Errors::Recorded,
            )
        } else if let Some(pod) = input("pod") {
            let pod = read(pod);
            let is_valid = k8s::is_valid_workload_endpoint(&pod);
            expect(
                "isValidWorkloadEndpoint",
                &json!(is_valid),
                &case["isValidWorkloadEndpoint"],
            )?;
            expect(
                "isReadyPod",
                &json!(k8s::is_ready(&pod)),
                &case["isReadyPod"],
            )?;
            let converted = k8s::pod(&pod, DEFAULT_VETH_PREFIX);
            check(
                case,
                converted,
                "WorkloadEndpoint",
                &Errors::OnlyWithoutResult,
            )
        } else if let Some(namespace) = input("namespace") {
            check(
                case,
                k8s::namespace(&read(namespace)),
                "Profile",
                &Errors::Recorded,
            )
        } else if let Some(account) = input("serviceaccount") {
            check(
                case,
                k8s::service_account(&read(account)),
                "Profile",
                &Errors::Recorded,
            )
        } else {
            Err("the case has no object that is known".to_owned())
        }
    });
}

#[test]
fn computed_names() {
    check_all("names.json", |case| {
        let input = |field: &str| case["input"][field].as_str().unwrap_or_default();
        let actual = match case["what"].as_str().unwrap_or_default() {
            "vethName" => Ok(json!(veth_name(
                input("namespace"),
                input("pod"),
                DEFAULT_VETH_PREFIX
            ))),
            "vtepMAC" => Ok(json!({
                "ipv4": vtep_mac(input("node"), IpVersion::V4),
                "ipv6": vtep_mac(input("node"), IpVersion::V6),
            })),
            "workloadEndpointName" => {
                let ids = EndpointIds {
                    node: input("node").into(),
                    orchestrator: input("orchestrator").into(),
                    workload: input("workload").into(),
                    pod: input("pod").into(),
                    container_id: input("containerID").into(),
                    endpoint: input("endpoint").into(),
                };
                let name = if case["input"]["allowPrefix"] == true {
                    ids.name_prefix()
                } else {
                    ids.name()
                };
                name.map(Value::String).map_err(|error| error.to_string())
            }
            "parseWorkloadEndpointName" => {
                let ids = EndpointIds::parse(case["input"].as_str().unwrap_or_default());
                ids.map(|ids| to_json(&ids))
                    .map_err(|error| error.to_string())
            }
            "v1WorkloadEndpointKeyPath" => Ok(json!(agent_key(
                input("hostname"),
                input("orchestratorID"),
                input("workloadID"),
                input("endpointID"),
            ))),
            // The rest belongs to other crates.
            _ => return Ok(()),
        };
        match (actual, case.get("output")) {
            (Ok(actual), Some(expected)) => expect("output", &actual, expected),
            (Err(_), None) => Ok(()),
            (Ok(actual), None) => Err(format!("gave {actual} instead of an error")),
            (Err(error), Some(_)) => Err(format!("failed: {error}")),
        }
    });
}

/// Runs all cases of a file and reports all that differ.
fn check_all(file: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let cases = tortie_testkit::vectors(file);
    let failures: Vec<String> = cases
        .iter()
        .enumerate()
        .filter_map(|(index, case)| {
            Some(format!("case {index}: {}\n  of {case}", check(case).err()?))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn check<S: tortie_api::Spec>(
    case: &Value,
    converted: Converted<tortie_api::Object<S>>,
    key_kind: &str,
    errors: &Errors,
) -> Result<(), String> {
    let resource = converted
        .resource
        .as_ref()
        .map(tortie_api::Object::to_value);
    expect("calico", &json!(resource), &case["calico"])?;
    let Some(object) = converted.resource else {
        // Policies whose place is unclear are recorded as deleted, without an error.
        return if converted.problems.is_empty() {
            Err("no resource and no problem".into())
        } else {
            Ok(())
        };
    };
    let separator = if object.metadata.namespace.is_empty() {
        ""
    } else {
        "/"
    };
    let key = format!(
        "{}{separator}{}",
        object.metadata.namespace, object.metadata.name
    );
    expect("key", &json!(key), &case["key"])?;
    expect("keyKind", &json!(key_kind), &case["keyKind"])?;
    let is_recorded = case.get("error").is_some();
    if *errors == Errors::Recorded && is_recorded == converted.problems.is_empty() {
        return Err(format!(
            "error {} but problems {:?}",
            case["error"], converted.problems
        ));
    }
    Ok(())
}

fn expect(what: &str, actual: &Value, expected: &Value) -> Result<(), String> {
    if actual == expected {
        return Ok(());
    }
    Err(format!("{what}\n  is  {actual}\n  not {expected}"))
}

#[track_caller]
fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("the inputs of the vectors are Kubernetes objects")
}

fn to_json(ids: &EndpointIds) -> Value {
    json!({
        "node": ids.node,
        "orchestrator": ids.orchestrator,
        "workload": ids.workload,
        "pod": ids.pod,
        "containerID": ids.container_id,
        "endpoint": ids.endpoint,
    })
}
