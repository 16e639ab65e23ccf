//! `tortie why` on a node that enforces: the kernel beside the model, and services.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, PORT, Pod, Site};
use crate::up::server::NODE;

/// A node where clients may use the web server, and others may not.
fn shop(variables: Vec<(&'static str, String)>) -> (Site, [Pod; 3]) {
    let site = Site::with(variables);
    site.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let pods = ["web", "client", "other"].map(|name| site.pod(name));
    site.apply(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "podSelector": {"matchLabels": {"role": "web"}},
            "ingress": [{
                "from": [{"podSelector": {"matchLabels": {"role": "client"}}}],
                "ports": [{"protocol": "TCP", "port": PORT}],
            }],
        },
    }));
    let [web, client, other] = &pods;
    site.await_connection(other, web, false);
    site.await_connection(client, web, true);
    (site, pods)
}

/// What is said about a connection with the web server, with the exit code.
fn ask(site: &Site, from: &str, port: &str) -> (Option<i32>, Value) {
    let question = ["why", from, "shop/web", "-p", "TCP", "--port", port];
    let output = site
        .up
        .try_tortie(&[&question[..], &["--live", "-o", "json"]].concat());
    let answer = serde_json::from_str(&output.stdout);
    let answer = answer.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), answer)
}

fn check(variables: Vec<(&'static str, String)>, dataplane: &str, chain: &str) -> Site {
    let (site, _pods) = shop(variables);
    let (code, answer) = ask(&site, "shop/client", "80");
    let live = &answer["live"];
    assert_eq!((code, &live["agrees"]), (Some(0), &json!(true)), "{live:#}");
    assert_eq!(
        (&live["node"], &live["dataplane"]),
        (&json!(NODE), &json!(dataplane))
    );
    let hits = live["hits"].as_array().unwrap();
    let ingress = hits.iter().find(|hit| hit["place"] == "ingress").unwrap();
    assert!(
        ingress["chain"].as_str().unwrap().starts_with(chain),
        "{live:#}"
    );
    let rule = &ingress["rules"][0];
    assert!(rule["packets"].as_u64() >= Some(1), "{live:#}");
    assert!(rule["text"].as_str().unwrap().contains("80"), "{live:#}");

    let (code, answer) = ask(&site, "shop/other", "80");
    let live = &answer["live"];
    assert_eq!((code, &live["agrees"]), (Some(2), &json!(true)), "{live:#}");
    let hits = live["hits"].as_array().unwrap();
    let ingress = hits.iter().find(|hit| hit["place"] == "ingress").unwrap();
    assert!(
        ingress["rules"][0]["packets"].as_u64() >= Some(1),
        "{live:#}"
    );

    let question = [
        "why",
        "shop/client",
        "shop/web",
        "-p",
        "TCP",
        "--port",
        "80",
        "--live",
    ];
    let text = site.up.tortie(&question);
    for piece in [
        format!("Kernel of node {NODE}, {dataplane}\n"),
        "  agrees with the model".to_owned(),
    ] {
        assert!(text.contains(&piece), "no `{piece}` in {text}");
    }
    site
}

#[test]
fn the_kernels_rules_stand_beside_the_model() {
    let site = check(Vec::new(), "nftables", "filter-cali-pi-");
    let elsewhere = site
        .up
        .try_tortie(&["why", "203.0.113.1", "203.0.113.2", "--live"]);
    assert_eq!(elsewhere.status.code(), Some(1));
    let message = format!("this machine is node {NODE}, and the packet passes no node");
    assert!(elsewhere.stderr.contains(&message), "{}", elsewhere.stderr);
}

#[test]
fn a_kernel_that_differs_is_told() {
    let legacy = vec![
        ("FELIX_NFTABLESMODE", "Disabled".to_owned()),
        ("FELIX_IPTABLESBACKEND", "Legacy".to_owned()),
    ];
    let site = check(legacy, "iptables", "cali-pi-");
    let rules = site.run("iptables-legacy -S");
    let chains = rules.lines().filter_map(|line| line.strip_prefix("-N "));
    for chain in chains.filter(|chain| chain.starts_with("cali-pi-")) {
        site.run(&format!("iptables-legacy -F {chain}"));
    }
    let (code, answer) = ask(&site, "shop/client", "80");
    let live = &answer["live"];
    assert_eq!(
        (code, &live["agrees"]),
        (Some(1), &json!(false)),
        "{live:#}"
    );
    let difference = live["differences"][0].as_str().unwrap();
    assert!(difference.starts_with("chain filter-cali-pi-"), "{live:#}");
}

#[test]
fn services_of_the_api_server_are_known() {
    let (site, _pods) = shop(Vec::new());
    site.apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"role": "web"}, "ports": [{"name": "http", "port": 8080, "targetPort": PORT}]},
    }));
    let ask = |from: &str| {
        let question = ["why", from, "svc/shop/web", "--port", "http", "-o", "json"];
        site.up.try_tortie(&question)
    };
    let end = Instant::now() + PATIENCE;
    // What is behind it is found out by a controller.
    while !ask("shop/client").status.success() {
        assert!(
            Instant::now() < end,
            "{:?}: {}",
            ask("shop/client"),
            site.up.log()
        );
        thread::sleep(Duration::from_millis(50));
    }
    let answer: Value = serde_json::from_str(&ask("shop/client").stdout).unwrap();
    assert_eq!(answer["backends"][0]["to"], "shop/web");
    assert_eq!(answer["backends"][0]["port"], PORT);
    assert_eq!(ask("shop/other").status.code(), Some(2));
}
