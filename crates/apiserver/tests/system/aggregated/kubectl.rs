//! The daily life of resources, with kubectl through the API server of Kubernetes.

use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::aggregated::support::{Cluster, Datastore, eventually, policy, tier};

#[test]
fn resources_are_found_and_live_as_any_others() {
    let mut cluster = Cluster::start();
    let service = cluster.run(&["get", "apiservice", "v3.projectcalico.org", "-o", "json"]);
    let service: Value = serde_json::from_str(&service).unwrap();
    assert_eq!(service["spec"]["groupPriorityMinimum"], 1500);
    assert_eq!(service["spec"]["versionPriority"], 200);
    eventually("Kubernetes finds the group", || {
        let arguments = [
            "api-resources",
            "--api-group=projectcalico.org",
            "-o",
            "name",
        ];
        let found = cluster.run(&arguments);
        let is_there = found.contains("globalnetworkpolicies.projectcalico.org");
        is_there.then_some(()).ok_or(found)
    });
    life_of_objects(&cluster);
    mistakes(&cluster);
    read_only(&cluster);
    watches(&mut cluster);
}

fn life_of_objects(cluster: &Cluster) {
    cluster.apply(&tier("gold"));
    let table = cluster.run(&["get", "tiers", "gold", "--no-headers"]);
    assert!(table.starts_with("gold"), "{table}");
    cluster.apply(&policy("gold", "default", "web"));
    let resource = "networkpolicies.projectcalico.org";
    let order = r#"{"spec": {"order": 7}}"#;
    cluster.run(&["patch", resource, "web", "--type=merge", "-p", order]);
    let order = [
        "get",
        resource,
        "web",
        "-o",
        "jsonpath={.spec.order} {.spec.tier}",
    ];
    assert_eq!(cluster.run(&order), "7 gold");
    cluster.run(&["label", resource, "web", "app=shop"]);
    let selected = cluster.run(&["get", resource, "-A", "-l", "app=shop", "-o", "name"]);
    assert_eq!(selected, "networkpolicy.projectcalico.org/web\n");
    let global = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy",
        "metadata": {"name": "deny"}, "spec": {"order": 1, "types": ["Ingress"]},
    });
    cluster.apply(&global);
    let short = cluster.run(&["get", "gnp", "-o", "name"]);
    assert_eq!(short, "globalnetworkpolicy.projectcalico.org/deny\n");

    // What is there is Calico's, in Calico's place.
    let stored = cluster
        .kubernetes
        .etcd()
        .etcdctl(&["get", "--prefix", "--keys-only", "/calico"]);
    let stored = stored.unwrap();
    let path = "/calico/resources/v3/projectcalico.org/networkpolicies/default/web";
    assert!(stored.contains(path), "{stored}");

    let busy = cluster.refused(&["delete", "tier", "gold"]);
    assert!(busy.contains("gold"), "{busy}");
    cluster.run(&["delete", resource, "web"]);
    cluster.run(&["delete", "gnp", "--all"]);
    cluster.run(&["delete", "tier", "gold"]);
    let gone = cluster.refused(&["get", "tier", "gold"]);
    assert!(
        gone.contains("tiers.projectcalico.org \"gold\" not found"),
        "{gone}"
    );
}

/// What is wrong with an object is told field by field.
fn mistakes(cluster: &Cluster) {
    let mut wrong = policy("default", "default", "wrong");
    wrong["spec"]["selector"] = json!("all(");
    wrong["spec"]["ingress"] = json!([{"action": "Maybe"}]);
    let resource = ApiResource {
        group: "projectcalico.org".to_owned(),
        version: "v3".to_owned(),
        api_version: "projectcalico.org/v3".to_owned(),
        kind: "NetworkPolicy".to_owned(),
        plural: "networkpolicies".to_owned(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let wrong: DynamicObject = serde_json::from_value(wrong).unwrap();
    let created = cluster
        .runtime
        .block_on(api.create(&PostParams::default(), &wrong));
    let Err(kube::Error::Api(status)) = created else {
        panic!("{created:?}");
    };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = status.details.as_ref().map(|details| &details.causes);
    let fields: Vec<_> = causes
        .unwrap()
        .iter()
        .map(|cause| cause.field.as_str())
        .collect();
    assert!(
        fields.contains(&"spec.ingress[0].action"),
        "{fields:?}: {status:?}"
    );
}

fn read_only(cluster: &Cluster) {
    let information = cluster.run(&["get", "clusterinformation", "default", "-o", "name"]);
    assert!(information.contains("default"), "{information}");
    let refused = cluster.refused(&["delete", "clusterinformation", "default"]);
    let text =
        "Delete is not supported on resources of kind \"clusterinformations.projectcalico.org\"";
    assert!(refused.contains(text), "{refused}");
}

/// A watch tells what happens, and ends when the server does.
fn watches(cluster: &mut Cluster) {
    let kubernetes = Arc::clone(&cluster.kubernetes);
    let watching = std::thread::spawn(move || {
        let arguments = ["get", "tiers", "--watch-only", "--no-headers", "-o", "name"];
        kubernetes.kubectl(&arguments).unwrap()
    });
    // It is not told when the watch has begun.
    std::thread::sleep(std::time::Duration::from_secs(2));
    cluster.apply(&tier("silver"));
    cluster.run(&["delete", "tier", "silver"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!watching.is_finished());
    cluster.stop();
    let output = watching.join().unwrap();
    let told: Vec<_> = output.stdout.lines().collect();
    assert_eq!(told, ["tier.projectcalico.org/silver"; 2], "{output:?}");
    eventually(
        "the address is free again",
        || match std::net::TcpStream::connect(cluster.address) {
            Ok(_) => Err("somebody listens".to_owned()),
            Err(_) => Ok(()),
        },
    );
}

/// Some kinds come from custom resources and from Kubernetes' own objects, and still have one list and one watch.
#[test]
fn custom_resources_of_the_older_group_are_served_too() {
    let mut cluster = Cluster::start_on(Datastore::Kubernetes);
    cluster.apply(&tier("gold"));
    cluster.apply(&policy("gold", "default", "web"));
    let stored = cluster.run(&["get", "networkpolicies.crd.projectcalico.org", "-o", "name"]);
    assert_eq!(stored.lines().count(), 1, "{stored}");
    let profiles = cluster.run(&["get", "profiles.projectcalico.org", "-o", "name"]);
    assert!(profiles.contains("kns.default"), "{profiles}");

    let watch = |resource: &'static str| {
        let kubernetes = Arc::clone(&cluster.kubernetes);
        std::thread::spawn(move || {
            let arguments = [
                "get",
                resource,
                "--watch-only",
                "--no-headers",
                "-o",
                "name",
            ];
            kubernetes.kubectl(&arguments).unwrap().stdout
        })
    };
    let policies = watch("networkpolicies.projectcalico.org");
    let profiles = watch("profiles.projectcalico.org");
    std::thread::sleep(std::time::Duration::from_secs(2));
    // Both sources, in turns.
    for round in 0..3 {
        cluster.apply(&policy("gold", "default", &format!("calico-{round}")));
        cluster.apply(&json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": format!("native-{round}"), "namespace": "default"},
            "spec": {"podSelector": {}},
        }));
        cluster.run(&["create", "namespace", &format!("shop-{round}")]);
        let account = format!("seller-{round}");
        cluster.run(&["create", "serviceaccount", &account]);
    }
    let order = r#"{"spec": {"order": 7}}"#;
    let patch = ["patch", "networkpolicies.projectcalico.org", "calico-1"];
    cluster.run(&[&patch[..], &["--type=merge", "-p", order]].concat());
    std::thread::sleep(std::time::Duration::from_secs(2));
    cluster.stop();
    let told = |output: String| {
        let names = output
            .lines()
            .map(|line| line.rsplit('/').next().unwrap().to_owned());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        told(policies.join().unwrap()),
        [
            "calico-0",
            "calico-1",
            "calico-1",
            "calico-2",
            "knp.default.native-0",
            "knp.default.native-1",
            "knp.default.native-2",
        ]
    );
    assert_eq!(
        told(profiles.join().unwrap()),
        [
            "kns.shop-0",
            "kns.shop-1",
            "kns.shop-2",
            "ksa.default.seller-0",
            "ksa.default.seller-1",
            "ksa.default.seller-2",
        ]
    );
}
