//! Services, node ports and ports with names.

use serde_json::json;

use super::{SHOP, allowed, ask, ask_for, denied, json as ask_json, pod, refused};

/// A service of the shop, with two databases behind it of which the second is for nobody.
fn world() -> String {
    let second =
        pod("shop/db-2", "n2", &["10.0.0.5"], "").replace("app: db-2", "app: db, no: body");
    let policy = "\
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: nobody, namespace: shop}
spec: {order: 1, selector: has(no), types: [Ingress], ingress: [{action: Deny}]}
";
    format!("{SHOP}{second}{policy}{}", service("selector: {app: db}"))
}

fn service(more: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: db, namespace: shop}}\n\
         spec:\n  type: NodePort\n  clusterIP: 10.96.0.7\n  clusterIPs: [10.96.0.7]\n  {more}\n  ports:\n  \
         - {{name: pg, port: 15432, targetPort: 5432, nodePort: 30432}}\n"
    )
}

/// What is behind the service, as a cluster tells it.
fn slice(addresses: &[&str]) -> String {
    let unready = "{addresses: [10.0.0.99], conditions: {ready: false}}".to_owned();
    let ready = addresses.iter();
    let ready = ready.map(|address| format!("{{addresses: ['{address}']}}"));
    let endpoints: Vec<String> = ready.chain([unready]).collect();
    format!(
        "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: db-1, namespace: shop, labels: {{kubernetes.io/service-name: db}}}}\naddressType: IPv4\n\
         endpoints: [{}]\nports: [{{name: pg, protocol: TCP, port: 5432}}]\n",
        endpoints.join(", ")
    )
}

#[test]
fn a_service_is_allowed_if_all_behind_it_are() {
    let only = format!("{SHOP}{}{}", service(""), slice(&["10.0.0.2"]));
    for to in [
        "svc/shop/db",
        "db.shop",
        "db.shop.svc",
        "db.shop.svc.cluster.local",
        "10.96.0.7",
    ] {
        for port in [
            &["--port", "15432", "-p", "TCP"][..],
            &["--port", "pg"],
            &[],
        ] {
            let text = allowed(&only, &[&["shop/api", to][..], port].concat());
            let first = "ALLOWED: shop/api (10.0.0.1) to service shop/db (10.96.0.7), TCP port 15432: allowed by its only backend\n";
            assert!(text.starts_with(first), "{to} {port:?}: {text}");
            denied(&only, &[&["blog/api", to][..], port].concat());
        }
    }
}

#[test]
fn each_backend_has_a_verdict() {
    // Without slices, those that the selector means are behind the service.
    let text = denied(&world(), &["shop/api", "svc/shop/db", "--port", "pg"]);
    for piece in [
        "PARTLY ALLOWED: shop/api (10.0.0.1) to service shop/db (10.96.0.7), TCP port 15432: allowed by 1 of 2 backends\n",
        "  ALLOWED shop/db (10.0.0.2), TCP port 5432  (ingress: Allow by rule 0 of",
        "  DENIED  shop/db-2 (10.0.0.5), TCP port 5432  (ingress: Deny by rule 0 of NetworkPolicy shop/nobody",
        "With shop/db-2\nTo allow it: rule 0 of NetworkPolicy shop/nobody must not deny it",
    ] {
        assert!(text.contains(piece), "no `{piece}` in {text}");
    }
    let answer = ask_json(2, &world(), &["shop/api", "10.96.0.7"]);
    assert_eq!(answer["verdict"], "Deny");
    assert_eq!(answer["service"], "shop/db");
    let backends = answer["backends"].as_array().unwrap();
    let of = |field: &str| {
        backends
            .iter()
            .map(|b| b[field].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(json!(of("to")), json!(["shop/db", "shop/db-2"]));
    assert_eq!(json!(of("verdict")), json!(["Allow", "Deny"]));
    assert_eq!(json!(of("port")), json!([5432, 5432]));
    assert_eq!(answer["ingress"]["endpoint"], "shop/db-2");
    let line = denied(&world(), &["shop/api", "svc/shop/db", "--short"]);
    assert!(
        line.starts_with(
            "PARTLY   shop/api -> svc/shop/db  (allowed by 1 of 2 backends; shop/db-2:"
        ),
        "{line}"
    );
}

#[test]
fn a_service_with_nothing_behind_it_lets_nobody_in() {
    let world = format!("{SHOP}{}{}", service(""), slice(&[]));
    let text = denied(&world, &["shop/api", "svc/shop/db"]);
    assert!(
        text.contains("DENIED: shop/api to service shop/db"),
        "{text}"
    );
    assert!(
        text.contains("nothing behind service shop/db is ready"),
        "{text}"
    );
    let answer = ask_json(2, &world, &["shop/api", "svc/shop/db"]);
    assert_eq!(answer["backends"], json!([]));
    assert_eq!(answer["because"], "nothing behind service shop/db is ready");
}

#[test]
fn a_port_of_a_node_leads_to_the_service() {
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n2}\nstatus: {addresses: [{type: InternalIP, address: 192.168.0.2}]}\n";
    let only = |more: &str| format!("{SHOP}{node}{}{}", service(more), slice(&["10.0.0.2"]));
    let through = ["-p", "TCP", "--port", "30432"];
    for to in ["192.168.0.2", "host/n2"] {
        // The node sends it on with its own address, which the policy of the database does not allow.
        let answer = ask_json(2, &only(""), &[&["203.0.113.7", to][..], &through].concat());
        assert_eq!(answer["service"], "shop/db", "{to}");
        assert_eq!(answer["backends"][0]["to"], "shop/db");
    }
    // Another port is the node's own.
    let answer = ask_json(
        0,
        &only(""),
        &["203.0.113.7", "host/n2", "-p", "TCP", "--port", "30433"],
    );
    assert_eq!(answer.get("service"), None);
    // A local service has nothing on this node.
    let local = only("externalTrafficPolicy: Local");
    let text = denied(&local, &[&["shop/api", "host/n2"][..], &through].concat());
    assert!(text.contains("externalTrafficPolicy is Local"), "{text}");
    // Policies for all that the node forwards see it before and after its destination is translated.
    let host = "---\napiVersion: projectcalico.org/v3\nkind: HostEndpoint\nmetadata: {name: n2-all, labels: {host: n2}}\nspec: {node: n2, interfaceName: '*'}\n";
    let open = "---\napiVersion: projectcalico.org/v3\nkind: NetworkPolicy\nmetadata: {name: open, namespace: shop}\nspec: {order: 1, selector: app == 'db', types: [Ingress], ingress: [{action: Allow}]}\n";
    let early = |port: u16| {
        format!(
            "{}{host}{open}---\napiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {{name: early}}\n\
         spec: {{selector: has(host), preDNAT: true, applyOnForward: true, types: [Ingress], ingress: [{{action: Deny, protocol: TCP, destination: {{ports: [{port}]}}}}]}}\n",
            only("")
        )
    };
    denied(
        &early(30432),
        &[&["203.0.113.7", "host/n2"][..], &through].concat(),
    );
    allowed(
        &early(5432),
        &[&["203.0.113.7", "host/n2"][..], &through].concat(),
    );
}

#[test]
fn ports_have_names() {
    let named = pod("shop/web", "n1", &["10.0.0.8"], "").replace(
        "image: i}",
        "image: i, ports: [{name: http, containerPort: 8080}, {name: dns, containerPort: 53, protocol: UDP}]}",
    );
    let world = format!("{SHOP}{named}");
    let text = allowed(&world, &["shop/api", "shop/web", "--port", "http"]);
    assert!(text.contains(", TCP port 8080\n"), "{text}");
    let text = allowed(
        &world,
        &["shop/api", "shop/web", "--port", "dns", "-p", "UDP"],
    );
    assert!(text.contains(", UDP port 53\n"), "{text}");
    refused(
        &world,
        &["shop/api", "shop/web", "--port", "htpp"],
        &["`shop/web` has no port named `htpp`: it has http, dns; did you mean `http`?"],
    );
    refused(
        &world,
        &["shop/api", "shop/web", "--port", "0"],
        &["port `0` must be a number from 1 to 65535, or the name of a port"],
    );
}

#[test]
fn what_is_no_service_is_named_with_what_is_near() {
    let world = world();
    refused(
        &world,
        &["shop/api", "svc/shop/bd"],
        &["there is no service `shop/bd`; did you mean `svc/shop/db`?"],
    );
    refused(
        &world,
        &["shop/api", "svc/shop/db", "--port", "80"],
        &["service `shop/db` has no port 80: it has pg (TCP 15432)"],
    );
    refused(
        &world,
        &["svc/shop/db", "shop/api"],
        &["which connections go to"],
    );
}

#[test]
fn a_service_in_a_batch_has_backends() {
    let folder = tempfile::tempdir().unwrap();
    let flows = folder.path().join("flows");
    std::fs::write(
        &flows,
        "{\"from\":\"shop/api\",\"to\":\"svc/shop/db\",\"port\":\"pg\"}\n",
    )
    .unwrap();
    let flows = flows.display().to_string();
    let output = ask_for(0, &world(), &["--batch", &flows, "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(answer["to"], "svc/shop/db");
    assert_eq!(answer["backends"].as_array().unwrap().len(), 2);
    let text = ask(&world(), &["--batch", &flows]).stdout;
    assert!(
        text.starts_with("PARTLY   shop/api -> svc/shop/db pg"),
        "{text}"
    );
}

#[test]
fn rules_for_services_know_what_is_behind_them() {
    let policy = "\
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: to-db, namespace: shop}
spec: {selector: app == 'api', types: [Egress], egress: [{action: Allow, destination: {services: {name: db, namespace: shop}}}]}
";
    let world = format!("{SHOP}{}{policy}", service("selector: {app: db}"));
    allowed(&world, &["shop/api", "svc/shop/db"]);
    denied(
        &world,
        &["shop/api", "blog/api", "-p", "TCP", "--port", "5432"],
    );
}
