//! Which packet a question means.

use super::{SHOP, allowed, denied, deny_all, json, pod, refused};

#[test]
fn an_address_of_a_running_pod_is_that_pod() {
    let answer = json(
        2,
        SHOP,
        &["10.0.0.3", "10.0.0.2", "-p", "TCP", "--port", "5432"],
    );
    assert_eq!(answer["egress"]["endpoint"], "blog/api");
    assert_eq!(answer["ingress"]["endpoint"], "shop/db");
    let answer = json(
        0,
        SHOP,
        &["fd01::1", "fd01::2", "-p", "TCP", "--port", "5432"],
    );
    assert_eq!(answer["egress"]["endpoint"], "shop/api");
}

#[test]
fn a_finished_pod_has_no_address() {
    for phase in ["Succeeded", "Failed"] {
        let gone = pod("shop/job", "n1", &["10.0.0.9"], "").replace("Running", phase);
        let world = format!("{SHOP}{gone}{}", deny_all("shop"));
        let answer = json(0, &world, &["blog/api", "10.0.0.9"]);
        assert_eq!(answer["ingress"]["endpoint"], serde_json::Value::Null);
        refused(
            &world,
            &["shop/job", "shop/api"],
            &["pod `shop/job` has no address"],
        );
        // The address may be another pod's by now.
        let next = pod("shop/next", "n1", &["10.0.0.9"], "");
        let answer = json(2, &format!("{world}{next}"), &["blog/api", "10.0.0.9"]);
        assert_eq!(answer["ingress"]["endpoint"], "shop/next");
    }
}

#[test]
fn dual_stack_pods_talk_ipv4_unless_told_otherwise() {
    let text = allowed(
        SHOP,
        &["shop/api", "shop/db", "-p", "TCP", "--port", "5432"],
    );
    assert!(
        text.contains("shop/api (10.0.0.1) to shop/db (10.0.0.2)"),
        "{text}"
    );
    let text = allowed(
        SHOP,
        &[
            "shop/api",
            "shop/db",
            "-p",
            "TCP",
            "--port",
            "5432",
            "--ip-version",
            "6",
        ],
    );
    assert!(
        text.contains("shop/api (fd01::1) to shop/db (fd01::2)"),
        "{text}"
    );
    refused(
        SHOP,
        &["shop/api", "blog/api", "--ip-version", "6"],
        &["`blog/api` has no IPv6 address"],
    );
    refused(
        SHOP,
        &["a/b", "c/d", "--ip-version", "5"],
        &["invalid value '5'"],
    );
}

#[test]
fn a_side_with_one_version_decides() {
    let six = pod("shop/six", "n1", &["fd01::6"], "");
    let four = pod("shop/four", "n1", &["10.0.0.4"], "");
    let world = format!("{SHOP}{six}{four}");
    let text = allowed(&world, &["shop/api", "shop/six"]);
    assert!(
        text.contains("shop/api (fd01::1) to shop/six (fd01::6)"),
        "{text}"
    );
    let text = allowed(&world, &["shop/api", "2001:db8::1"]);
    assert!(text.contains("shop/api (fd01::1) to 2001:db8::1"), "{text}");
    refused(
        &world,
        &["shop/four", "shop/six"],
        &["`shop/four` has only IPv4 and `shop/six` only IPv6"],
    );
    let ping = json(0, &world, &["shop/api", "shop/six", "--icmp-type", "128"]);
    assert_eq!(ping["verdict"], "Allow");
}

#[test]
fn policies_see_addresses_of_the_packet() {
    let world = format!(
        "{SHOP}---\napiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {{name: p}}\n\
         spec: {{selector: app == 'api', types: [Ingress], ingress: [{{action: Allow, source: {{nets: ['fd01::/16']}}}}]}}\n"
    );
    denied(&world, &["shop/db", "shop/api"]);
    allowed(&world, &["shop/db", "shop/api", "--ip-version", "6"]);
}

#[test]
fn the_address_of_a_service_is_pointed_out() {
    let world = format!(
        "{SHOP}---\napiVersion: v1\nkind: Service\nmetadata: {{name: db, namespace: shop}}\n\
         spec: {{clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7], ports: [{{port: 5432}}]}}\n"
    );
    let output = super::ask_for(0, &world, &["shop/api", "10.96.0.7"]);
    assert!(
        output.stderr.contains("service shop/db"),
        "{}",
        output.stderr
    );
}
