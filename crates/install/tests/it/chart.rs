//! The objects that follow from values.

use serde_json::Value;
use tortie_install::{Chart, Release, Rendered, Values};

fn render(fields: &[&str]) -> Rendered {
    let values = Values::new([], fields.iter().copied()).expect("values");
    let release = Release {
        namespace: "tortie-system".to_owned(),
    };
    let chart = Chart::new().expect("a chart");
    chart.render(&values, &release).expect("objects")
}

fn object<'a>(rendered: &'a Rendered, kind: &str, name: &str) -> &'a Value {
    let mut all = rendered.all();
    let found = all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

fn containers(rendered: &Rendered) -> Vec<&str> {
    let node = object(rendered, "DaemonSet", "tortie-node");
    let containers = node["spec"]["template"]["spec"]["containers"].as_array();
    let names = containers
        .expect("containers")
        .iter()
        .map(|one| one["name"].as_str());
    names.map(|name| name.expect("a name")).collect()
}

#[test]
fn a_node_runs_bird_where_bgp_is_asked_for() {
    assert_eq!(containers(&render(&[])), ["agent", "addresses", "cni"]);
    let rendered = render(&["bgp.enabled=true,bgp.asNumber=64513"]);
    assert_eq!(containers(&rendered), ["agent", "addresses", "cni", "bgp"]);
    let data = &object(&rendered, "ConfigMap", "tortie-node")["data"];
    assert_eq!(data["AS"], "64513");
    assert_eq!(data["CALICO_NETWORKING_BACKEND"], "bird");
}

#[test]
fn with_etcd_there_are_no_definitions_and_no_rights_on_custom_resources() {
    let rendered = render(&[
        "datastore.type=etcd,datastore.etcd.endpoints=https://etcd:2379,datastore.etcd.tlsSecret=etcd",
    ]);
    assert_eq!(rendered.definitions, Vec::<Value>::new());
    let text = serde_json::to_string(&rendered.objects).expect("JSON");
    assert!(!text.contains("projectcalico.org"), "{text}");
    let data = &object(&rendered, "ConfigMap", "tortie-datastore")["data"];
    assert_eq!(data["ETCD_CA_CERT_FILE"], "/calico-secrets/etcd-ca");
    let node = object(&rendered, "DaemonSet", "tortie-node");
    for container in node["spec"]["template"]["spec"]["containers"]
        .as_array()
        .expect("containers")
    {
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        assert!(
            mounts
                .iter()
                .any(|mount| mount["mountPath"] == "/calico-secrets"),
            "{container}"
        );
    }
}

#[test]
fn the_group_is_the_same_everywhere() {
    for (group, other, version) in [
        ("projectcalico.org", "crd.projectcalico.org", "v3"),
        ("crd.projectcalico.org", "projectcalico.org", "v1"),
    ] {
        let rendered = render(&[&format!("datastore.apiGroup={group}")]);
        let data = &object(&rendered, "ConfigMap", "tortie-datastore")["data"];
        assert_eq!(data["CALICO_API_GROUP"], format!("{group}/{version}"));
        let role = object(&rendered, "ClusterRole", "tortie-node");
        let rules = role["rules"].as_array().expect("rules");
        let has = |group: &str| rules.iter().any(|rule| rule["apiGroups"][0] == group);
        assert!(has(group) && !has(other));
        assert!(
            rendered
                .definitions
                .iter()
                .all(|one| one["spec"]["group"] == group)
        );
    }
}

#[test]
fn nobody_may_do_everything() {
    let rendered = render(&["bgp.enabled=true"]);
    for object in rendered.all() {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let text = rule.to_string();
            assert!(
                !text.contains("\"*\""),
                "{}: {text}",
                object["metadata"]["name"]
            );
            let reads_secrets = text.contains("\"secrets\"");
            assert!(!reads_secrets || object["kind"] == "Role", "{text}");
        }
        assert!(!object.to_string().contains("cluster-admin"));
    }
}

#[test]
fn only_the_agent_is_privileged_and_nothing_is_written_into_images() {
    let rendered = render(&["bgp.enabled=true"]);
    for (kind, name) in [
        ("DaemonSet", "tortie-node"),
        ("Deployment", "tortie-controllers"),
    ] {
        let spec = &object(&rendered, kind, name)["spec"]["template"]["spec"];
        let all = ["initContainers", "containers"].map(|field| spec[field].as_array());
        for container in all.into_iter().flatten().flatten() {
            let context = &container["securityContext"];
            let is_agent = container["name"] == "agent";
            assert_eq!(context["privileged"] == true, is_agent, "{container}");
            assert_eq!(context["readOnlyRootFilesystem"], true, "{container}");
            assert!(
                is_agent || context["capabilities"]["drop"][0] == "ALL",
                "{container}"
            );
        }
    }
    let spec = &object(&rendered, "Deployment", "tortie-controllers")["spec"]["template"]["spec"];
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
}

/// The image runs as nobody if nothing is said, and folders of the node are root's.
#[test]
fn what_nodes_write_is_mounted_and_theirs() {
    let rendered = render(&["bgp.enabled=true"]);
    let spec = &object(&rendered, "DaemonSet", "tortie-node")["spec"]["template"]["spec"];
    assert_eq!(spec["securityContext"]["runAsUser"], 0);
    let containers = spec["containers"].as_array().expect("containers");
    let bgp = containers
        .iter()
        .find(|one| one["name"] == "bgp")
        .expect("bgp");
    let mounts = bgp["volumeMounts"].as_array().expect("mounts");
    // BIRD's configuration and its socket.
    for folder in ["/var/lib/tortie", "/var/run/calico"] {
        assert!(
            mounts.iter().any(|mount| mount["mountPath"] == folder),
            "{folder}"
        );
    }
}

#[test]
fn a_value_cannot_become_something_else() {
    let tricky = "x\"\n  privileged: true # {{ .Values }}";
    let values = Values::new(
        [(
            "file",
            &*format!(
                "image: {{pullSecrets: [{tricky:?}]}}\nnode: {{env: {{FELIX_A: {tricky:?}}}}}"
            ),
        )],
        [],
    );
    let release = Release {
        namespace: "n".to_owned(),
    };
    let rendered = Chart::new()
        .expect("a chart")
        .render(&values.expect("values"), &release);
    let rendered = rendered.expect("objects");
    let node = object(&rendered, "DaemonSet", "tortie-node");
    assert_eq!(
        node["spec"]["template"]["spec"]["imagePullSecrets"][0]["name"],
        tricky
    );
    assert_eq!(
        object(&rendered, "ConfigMap", "tortie-node")["data"]["FELIX_A"],
        tricky
    );
}
