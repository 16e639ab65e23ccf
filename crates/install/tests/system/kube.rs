//! A real API server takes what the chart makes.

use tortie_testkit::KubeApiServer;

use crate::{NAMESPACE, render};

#[test]
fn an_api_server_takes_all_objects() {
    let cluster = KubeApiServer::start().unwrap();
    for fields in [
        &[][..],
        &[
            "bgp.enabled=true",
            "metrics.enabled=true",
            "metrics.tlsSecret=metrics",
        ],
    ] {
        let rendered = render(fields);
        for part in [
            vec![rendered.namespace],
            rendered.definitions,
            rendered.objects,
        ] {
            let list =
                serde_json::json!({"apiVersion": "v1", "kind": "List", "items": part}).to_string();
            // It checks fields against the schemas that the server publishes.
            let args = ["apply", "--server-side", "--validate=true", "-f", "-"];
            cluster
                .kubectl_stdin(&args, &list)
                .unwrap()
                .into_stdout()
                .unwrap();
        }
        let args = [
            "get",
            "daemonset",
            "tortie-node",
            "-n",
            NAMESPACE,
            "-o",
            "name",
        ];
        let found = cluster.kubectl(&args).unwrap().into_stdout().unwrap();
        assert_eq!(found.trim(), "daemonset.apps/tortie-node");
    }
}
