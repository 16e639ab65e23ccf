//! Policies, namespaces, service accounts and labels of pods.

use serde_json::{Value, json};

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually};

const POLICY: &str = "networkpolicies/shop/knp.default.web";

#[test]
fn objects_made_by_kubectl_end_in_the_right_resources_and_are_put_back() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    // From before the controllers were there: one to be made, one that nobody wants any more, and one of a person.
    site.policy("shop", "early", "client");
    let orphan = "networkpolicies/shop/knp.default.orphan";
    site.write(orphan, &own_policy("knp.default.orphan").to_string());
    site.store(&own_policy("mine"));
    let program = Program::start(&site, &[], &[]);
    site.await_stored("networkpolicies/shop/knp.default.early", |_| true);
    site.await_gone(orphan);
    policies(&site);
    profiles(&site);
    put_back(&site);
    assert!(site.stored("networkpolicies/shop/mine").is_some());
    at_rest(&site);
    assert!(program.terminate().success());
}

fn own_policy(name: &str) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": "all()"},
    })
}

fn policies(site: &Site) {
    site.policy("shop", "web", "client");
    let stored = site.await_stored(POLICY, |_| true);
    let spec = &stored["spec"];
    assert_eq!(
        spec["selector"],
        "projectcalico.org/orchestrator == 'k8s' && app == 'web'"
    );
    assert_eq!(spec["order"], 1000);
    assert_eq!(spec["tier"], "default");
    assert_eq!(spec["types"], json!(["Ingress"]));
    let rule = &spec["ingress"][0];
    assert_eq!(rule["action"], "Allow");
    assert_eq!(rule["protocol"], "TCP");
    assert_eq!(rule["destination"]["ports"], json!([80]));
    assert_eq!(
        rule["source"]["selector"],
        "projectcalico.org/orchestrator == 'k8s' && role == 'client'"
    );
    site.policy("shop", "web", "admin");
    let changed = site.await_stored(POLICY, says_admin);
    assert_eq!(changed["metadata"]["uid"], stored["metadata"]["uid"]);
    site.kubectl(&["delete", "networkpolicy", "web", "-n", "shop"]);
    site.await_gone(POLICY);
    site.policy("shop", "web", "admin");
    site.await_stored(POLICY, says_admin);
}

fn says_admin(policy: &Value) -> bool {
    policy["spec"]["ingress"][0]["source"]["selector"]
        .as_str()
        .is_some_and(|selector| selector.ends_with("role == 'admin'"))
}

fn profiles(site: &Site) {
    let shop = site.await_stored("profiles/kns.shop", |_| true);
    assert_eq!(shop["spec"]["ingress"][0]["action"], "Allow");
    assert_eq!(
        shop["spec"]["labelsToApply"]["pcns.projectcalico.org/name"],
        "shop"
    );
    site.kubectl(&["label", "namespace", "shop", "team=red"]);
    let labels =
        |profile: &Value, name: &str, value: &str| profile["spec"]["labelsToApply"][name] == value;
    site.await_stored("profiles/kns.shop", |profile| {
        labels(profile, "pcns.team", "red")
    });
    site.kubectl(&["create", "serviceaccount", "robot", "-n", "shop"]);
    let robot = site.await_stored("profiles/ksa.shop.robot", |_| true);
    assert_eq!(robot["spec"].get("ingress"), None);
    site.kubectl(&[
        "label",
        "serviceaccount",
        "robot",
        "-n",
        "shop",
        "kind=cron",
    ]);
    site.await_stored("profiles/ksa.shop.robot", |profile| {
        labels(profile, "pcsa.kind", "cron")
    });
    site.kubectl(&["delete", "serviceaccount", "robot", "-n", "shop"]);
    site.await_gone("profiles/ksa.shop.robot");
    site.kubectl(&["create", "namespace", "passing"]);
    site.await_stored("profiles/kns.passing", |_| true);
    // Nobody is there who would complete the deletion of a namespace: it goes as soon as it has no finalizer.
    site.kubectl(&["delete", "namespace", "passing", "--wait=false"]);
    let finalize = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "passing"}, "spec": {"finalizers": []},
    });
    let path = "/api/v1/namespaces/passing/finalize";
    let output = site.api.kubectl_stdin(
        &["replace", "--raw", path, "-f", "-"],
        &finalize.to_string(),
    );
    output.unwrap().into_stdout().unwrap();
    site.await_gone("profiles/kns.passing");
}

/// What a hand in etcd deletes, changes or breaks.
fn put_back(site: &Site) {
    site.erase(POLICY);
    let policy = site.await_stored(POLICY, says_admin);
    let mut wrong = policy.clone();
    wrong["spec"]["ingress"] = json!([]);
    wrong["metadata"]["labels"] = json!({"mine": "1"});
    site.write(POLICY, &wrong.to_string());
    let right = site.await_stored(POLICY, says_admin);
    assert_eq!(
        right["metadata"]["labels"]["mine"], "1",
        "labels are not ours"
    );
    site.write(POLICY, "this is no policy");
    assert!(eventually(|| {
        let key = format!("/calico/resources/v3/projectcalico.org/{POLICY}");
        let text = site
            .etcd
            .etcdctl(&["get", &key, "--print-value-only"])
            .unwrap();
        serde_json::from_str(&text).is_ok_and(|policy| says_admin(&policy))
    }));
    site.erase("profiles/kns.shop");
    site.await_stored("profiles/kns.shop", |profile| {
        profile["spec"]["labelsToApply"]["pcns.team"] == "red"
    });
}

/// Nothing is written while nothing changes.
fn at_rest(site: &Site) {
    let mut last = site.revision();
    let rests = eventually(|| {
        std::thread::sleep(std::time::Duration::from_secs(2));
        std::mem::replace(&mut last, site.revision()) == site.revision()
    });
    assert!(rests, "something is written again and again");
}

#[test]
fn labels_of_pods_are_those_of_their_endpoints() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]},
    });
    site.apply(&pod.to_string());
    let endpoint = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "WorkloadEndpoint",
        "metadata": {"namespace": "shop", "labels": {"app": "old"}},
        "spec": {
            "node": "n1", "orchestrator": "k8s", "pod": "web-0", "endpoint": "eth0", "interfaceName": "cali123",
            "ipNetworks": ["10.0.0.1/32"], "profiles": ["kns.shop"],
        },
    });
    site.store(&endpoint);
    let path = "workloadendpoints/shop/n1-k8s-web--0-eth0";
    assert!(site.stored(path).is_some());
    let program = Program::start(&site, &[], &[("ENABLED_CONTROLLERS", "workloadendpoint")]);
    // Until it has an address, the endpoint may be that of an earlier pod of the same name.
    program.await_words("Controller starts");
    assert_eq!(
        site.stored(path).unwrap()["metadata"]["labels"]["app"],
        "old"
    );
    let status = json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "phase": "Running"}});
    let arguments = [
        "patch",
        "pod",
        "web-0",
        "-n",
        "shop",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    site.kubectl(&[&arguments[..], &[&status.to_string()]].concat());
    let stored = site.await_stored(path, |endpoint| {
        endpoint["metadata"]["labels"]["app"] == "web"
    });
    assert_eq!(stored["spec"]["serviceAccountName"], "robot");
    assert_eq!(
        stored["metadata"]["labels"],
        json!({
            "app": "web", "projectcalico.org/namespace": "shop", "projectcalico.org/orchestrator": "k8s",
            "projectcalico.org/serviceaccount": "robot",
        })
    );
    assert_eq!(stored["spec"]["ipNetworks"], json!(["10.0.0.1/32"]));
    site.kubectl(&[
        "label",
        "pod",
        "web-0",
        "-n",
        "shop",
        "app=db",
        "--overwrite",
    ]);
    site.await_stored(path, |endpoint| {
        endpoint["metadata"]["labels"]["app"] == "db"
    });
    let mut wrong = stored.clone();
    wrong["metadata"]["labels"] = json!({});
    site.write(path, &wrong.to_string());
    site.await_stored(path, |endpoint| {
        endpoint["metadata"]["labels"]["app"] == "db"
    });
    // Endpoints come and go with the CNI plugin alone.
    site.erase(path);
    site.kubectl(&[
        "label",
        "pod",
        "web-0",
        "-n",
        "shop",
        "app=x",
        "--overwrite",
    ]);
    site.kubectl(&[
        "delete",
        "pod",
        "web-0",
        "-n",
        "shop",
        "--force",
        "--grace-period=0",
    ]);
    assert_eq!(site.stored(path), None);
    assert!(program.terminate().success());
}
