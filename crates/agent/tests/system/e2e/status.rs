//! What `/status` tells.

use serde_json::{Value, json};
use tortie_agent::NodeStatus;
use tortie_api::Kind;

use crate::e2e::flow::eventually;
use crate::e2e::objects::{policy, resource};
use crate::e2e::planes::Plane;
use crate::e2e::setting::{NODE, Setting};

on_both_data_planes!(the_status_of_a_node_is_served);

/// What the agent answers on the node, once it listens.
fn ask(setting: &Setting, path: &str) -> String {
    let patient = "--silent --show-error --fail --retry 20 --retry-delay 1 --retry-connrefused";
    setting.run("curl", &format!("{patient} http://localhost:9099{path}"))
}

fn the_status_of_a_node_is_served(plane: Plane) {
    let setting = Setting::new();
    let configure = |spec: &Value| resource(Kind::FelixConfiguration, "", "default", spec);
    setting.put(configure(&json!({"bpfEnabled": true})));
    let bad = json!({"selector": "all()", "ingress": [{"action": "Allow", "source": {"selector": "a =="}}]});
    setting.put(policy("bad", &bad));
    let agent = setting.start_agent(plane, &[("healthenabled", "true")]);

    let text = ask(&setting, "/status");
    let status: NodeStatus = serde_json::from_str(&text).unwrap();
    assert_eq!(status.node, NODE);
    assert_eq!(status.versions.tortie, env!("CARGO_PKG_VERSION"));
    assert!(!status.versions.kernel.is_empty(), "{text}");
    assert_eq!(
        (status.ready, &status.problems),
        (true, &Vec::new()),
        "{text}"
    );
    assert_eq!(
        (&*status.datastore.state, status.datastore.ready),
        ("inSync", true)
    );
    let since = status.datastore.in_sync_since.as_ref().unwrap();
    assert!(since.ends_with('Z'), "{since}");
    let dataplane = match plane {
        Plane::Nftables => "nftables",
        _ => "iptables",
    };
    assert_eq!(status.dataplane, dataplane);
    assert_eq!(status.refused, []);
    let last = status.last_apply.as_ref().unwrap();
    assert!(last >= since, "{text}");
    assert_eq!((status.endpoints, status.policies), (0, 0), "{text}");
    let [invalid] = &status.invalid[..] else {
        panic!("one object cannot be used: {text}");
    };
    assert_eq!(
        (&*invalid.what, &*invalid.name),
        ("GlobalNetworkPolicy", "default.bad")
    );
    assert!(
        invalid
            .reason
            .ends_with("; it denies what it decides about"),
        "{text}"
    );
    let named = |status: &NodeStatus| -> Vec<String> {
        let all = status.without_effect.iter();
        all.map(|one| format!("{} {}", one.what, one.name))
            .collect()
    };
    assert_eq!(named(&status), ["parameter BPFEnabled"], "{text}");
    assert_eq!(status.without_effect[0].value.as_deref(), Some("true"));
    let metrics = agent.metrics.text();
    for figure in [
        "tortie_parameters_without_effect 1",
        r#"tortie_parameter_without_effect{parameter="BPFEnabled"} 1"#,
    ] {
        assert!(metrics.contains(figure), "{figure} in {metrics}");
    }
    assert_eq!(ask(&setting, "/readiness"), "ok\n");

    setting.put(configure(&json!({})));
    eventually("the rest", &Vec::<String>::new(), || {
        named(&agent.report.status())
    });
    let metrics = agent.metrics.text();
    assert!(!metrics.contains("{parameter="), "{metrics}");
}
