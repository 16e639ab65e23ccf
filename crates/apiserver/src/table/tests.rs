use super::*;
use crate::registry::Registry;

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn find(plural: &str) -> ResourceType {
    let registry = Registry::standalone();
    let found = registry.types().iter().find(|found| found.plural == plural);
    found.unwrap().clone()
}

/// The cells of one object after its name, by column.
#[track_caller]
fn check(plural: &str, mut object: Value, expected: &[(&str, Value)]) {
    let resource = find(plural);
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:55:00Z");
    let table = table(&resource, [&object], &json!({}), Options::default(), now());
    let names: Vec<_> = items(&table["columnDefinitions"])
        .map(|column| column["name"].clone())
        .collect();
    let cells: Vec<_> = items(&table["rows"][0]["cells"]).cloned().collect();
    assert_eq!(names.len(), cells.len());
    let found: Vec<_> = names
        .iter()
        .map(|name| name.as_str().unwrap())
        .zip(cells)
        .collect();
    assert_eq!(found[0], ("Name", json!("x")));
    assert_eq!(&found[1..], expected);
}

fn text(text: &str) -> Value {
    json!(text)
}

#[test]
fn every_row_has_a_cell_for_each_column() {
    let registry = Registry::standalone();
    for resource in registry.types().iter().filter(|found| found.is_stored()) {
        let object = json!({"metadata": {"name": "x"}});
        let table = table(resource, [&object], &json!({}), Options::default(), now());
        let columns = items(&table["columnDefinitions"]).count();
        assert_eq!(
            items(&table["rows"][0]["cells"]).count(),
            columns,
            "{}",
            resource.kind
        );
        let ages = ["Age", "Created At", "Last Seen"];
        let tells_age = |column: &Value| ages.iter().any(|age| column["name"] == *age);
        assert!(items(&table["columnDefinitions"]).any(tells_age));
    }
}

#[test]
fn a_binding_shows_its_role_and_who_holds_it() {
    let binding = json!({
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "User", "name": "ann"},
            {"kind": "User", "name": "bob"},
            {"kind": "Group", "name": "shop"},
            {"kind": "ServiceAccount", "name": "web", "namespace": "shop"},
        ],
    });
    let expected = [
        ("Role", text("ClusterRole/view")),
        ("Age", text("5m")),
        ("Users", text("ann, bob")),
        ("Groups", text("shop")),
        ("ServiceAccounts", text("shop/web")),
    ];
    check("rolebindings", binding, &expected);
    let expected = [("Created At", text("2026-01-01T00:55:00Z"))];
    check("clusterroles", json!({}), &expected);
}

#[test]
fn a_tier_shows_the_columns_of_its_definition_and_its_age() {
    let tier = json!({
        "spec": {"order": 100, "defaultAction": "Pass"},
        "status": {"conditions": [{"type": "Ready", "reason": "TierIsReady"}]},
    });
    let expected = [
        ("Order", json!(100)),
        ("DefaultAction", text("Pass")),
        ("Status", text("TierIsReady")),
        ("Age", text("5m")),
    ];
    check("tiers", tier, &expected);
}

#[test]
fn missing_values_are_null_and_an_age_comes_once() {
    let expected = [
        ("Tier", text("default")),
        ("Order", Value::Null),
        ("Age", text("5m")),
    ];
    check(
        "globalnetworkpolicies",
        json!({"spec": {"tier": "default"}}),
        &expected,
    );
}

#[test]
fn lists_are_shown_as_json() {
    let status = json!({"spec": {"node": "a", "classes": ["Agent", "BGP"]}});
    let expected = [
        ("Node", text("a")),
        ("Classes", text(r#"["Agent","BGP"]"#)),
        ("Age", text("5m")),
    ];
    check("caliconodestatuses", status, &expected);
}

#[test]
fn nodes_services_and_slices_are_as_kubernetes_shows_them() {
    let node = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Debian"},
        },
    });
    let expected = [
        ("Status", text("Ready,SchedulingDisabled")),
        ("Roles", text("edge,worker")),
        ("Age", text("5m")),
        ("Version", text("v1.36.0")),
        ("Internal-IP", text("10.0.0.1")),
        ("External-IP", text("<none>")),
        ("OS-Image", text("Debian")),
        ("Kernel-Version", text("<unknown>")),
        ("Container-Runtime", text("<unknown>")),
    ];
    check("nodes", node, &expected);
    let service = json!({
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": "10.96.0.1",
            "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
            "selector": {"app": "web"},
        },
    });
    let expected = [
        ("Type", text("LoadBalancer")),
        ("Cluster-IP", text("10.96.0.1")),
        ("External-IP", text("<pending>")),
        ("Port(s)", text("80:30080/TCP,53/UDP")),
        ("Age", text("5m")),
        ("Selector", text("app=web")),
    ];
    check("services", service, &expected);
    let slice = json!({
        "addressType": "IPv4",
        "ports": [{"port": 80}],
        "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3", "10.0.0.4"]}],
    });
    let expected = [
        ("AddressType", text("IPv4")),
        ("Ports", text("80")),
        ("Endpoints", text("10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...")),
        ("Age", text("5m")),
    ];
    check("endpointslices", slice, &expected);
}

#[test]
fn small_kinds_are_as_kubernetes_shows_them() {
    let age = ("Age", text("5m"));
    let expected = [("Data", json!(2)), age.clone()];
    check(
        "configmaps",
        json!({"data": {"a": "1"}, "binaryData": {"b": "MQ=="}}),
        &expected,
    );
    let expected = [("Secrets", json!(0)), age.clone()];
    check("serviceaccounts", json!({}), &expected);
    let expected = [("Holder", text("me")), age.clone()];
    check(
        "leases",
        json!({"spec": {"holderIdentity": "me"}}),
        &expected,
    );
    let expected = [("Status", text("Active")), age];
    check(
        "namespaces",
        json!({"status": {"phase": "Active"}}),
        &expected,
    );
}

#[test]
fn selectors_are_one_line() {
    let registry = Registry::standalone();
    let resource = registry
        .find("networking.k8s.io", "v1", "networkpolicies")
        .unwrap();
    let check = |selector: Value, expected: &str| {
        let policy = json!({"metadata": {"name": "x"}, "spec": {"podSelector": selector}});
        let table = table(resource, [&policy], &json!({}), Options::default(), now());
        assert_eq!(table["rows"][0]["cells"][1], expected);
    };
    check(json!({}), "<none>");
    let expressions = json!([
        {"key": "b", "operator": "In", "values": ["1", "2"]},
        {"key": "c", "operator": "DoesNotExist"},
        {"key": "d", "operator": "Exists"},
    ]);
    check(
        json!({"matchLabels": {"a": "1"}, "matchExpressions": expressions}),
        "a=1,b in (1,2),!c,d",
    );
}

/// The cells Ready, Status and Restarts.
#[track_caller]
fn check_pod(pod: &Value, ready: &str, status: &str, restarts: &str) {
    let table = table(&find("pods"), [pod], &json!({}), Options::default(), now());
    let cells = &table["rows"][0]["cells"];
    assert_eq!(cells[1], ready, "{pod}");
    assert_eq!(cells[2], status, "{pod}");
    assert_eq!(cells[3], restarts, "{pod}");
}

#[test]
fn the_status_of_a_pod_comes_from_its_containers() {
    let pod = |status: Value| {
        json!({
            "metadata": {"name": "x"},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
            "status": status,
        })
    };
    check_pod(&pod(json!({"phase": "Pending"})), "0/2", "Pending", "0");
    let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
    let restarted = json!({
        "ready": true,
        "restartCount": 3,
        "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:30:00Z"}},
    });
    let both = json!({"phase": "Running", "containerStatuses": [running, restarted]});
    check_pod(&pod(both.clone()), "2/2", "Running", "3 (30m ago)");
    let mut leaving = pod(both);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:59:00Z");
    check_pod(&leaving, "2/2", "Terminating", "3 (30m ago)");
    leaving["status"]["reason"] = json!("NodeLost");
    check_pod(&leaving, "2/2", "Unknown", "3 (30m ago)");
    let crashing = json!({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    check_pod(
        &pod(json!({"phase": "Running", "containerStatuses": [running, crashing]})),
        "1/2",
        "CrashLoopBackOff",
        "2",
    );
    let completed = json!({"state": {"terminated": {"reason": "Completed", "exitCode": 0}}});
    check_pod(
        &pod(json!({"phase": "Running", "containerStatuses": [completed, running]})),
        "1/2",
        "NotReady",
        "0",
    );
    let failed = json!({"state": {"terminated": {"exitCode": 137, "signal": 9}}});
    check_pod(
        &pod(json!({"phase": "Failed", "containerStatuses": [failed]})),
        "0/2",
        "Signal:9",
        "0",
    );
}

#[test]
fn containers_that_come_first_are_shown_while_they_run() {
    let pod = |init: Value| {
        json!({
            "metadata": {"name": "x"},
            "spec": {
                "containers": [{"name": "a"}],
                "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            },
            "status": {
                "phase": "Pending",
                "initContainerStatuses": init,
                "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
            },
        })
    };
    let done = json!({"name": "i", "state": {"terminated": {"exitCode": 0}}});
    let sidecar = json!({"name": "s", "ready": true, "started": true, "restartCount": 1, "state": {"running": {}}});
    let running = json!({"name": "i", "restartCount": 4, "state": {"running": {}}});
    check_pod(&pod(json!([running, sidecar])), "0/2", "Init:0/2", "4");
    let broken = json!({"name": "i", "state": {"terminated": {"exitCode": 1}}});
    check_pod(&pod(json!([broken])), "0/2", "Init:ExitCode:1", "0");
    check_pod(&pod(json!([done, sidecar])), "1/2", "PodInitializing", "1");
}

#[test]
fn rows_hold_what_is_asked_of_their_objects() {
    let resource = find("pods");
    let pod = json!({"metadata": {"name": "x"}, "status": {"phase": "Succeeded"}});
    let make = |options: Options| {
        let metadata = json!({"resourceVersion": "7", "continue": "abc", "name": "x"});
        table(&resource, [&pod], &metadata, options, now())
    };
    let usual = make(Options::default());
    assert_eq!(usual["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(
        usual["metadata"],
        json!({"resourceVersion": "7", "continue": "abc"})
    );
    let object = &usual["rows"][0]["object"];
    assert_eq!(object["kind"], "PartialObjectMetadata");
    assert_eq!(object["metadata"], json!({"name": "x"}));
    assert_eq!(usual["rows"][0]["conditions"][0]["reason"], "Succeeded");
    let whole = make(Options {
        include: Include::Object,
        version: Version::V1Beta1,
        has_columns: false,
    });
    assert_eq!(whole["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(whole["rows"][0]["object"], pod);
    assert_eq!(whole["columnDefinitions"], json!([]));
    let none = make(Options {
        include: Include::None,
        ..Options::default()
    });
    assert_eq!(none["rows"][0].get("object"), None);
    assert_eq!(Include::parse("Metadata"), Some(Include::Metadata));
    assert_eq!(Include::parse("metadata"), None);
}
