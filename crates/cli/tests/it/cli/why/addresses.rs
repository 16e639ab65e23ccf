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
fn icmpv6_means_ipv6() {
    let ping = |protocol| ["shop/api", "blog/api", "-p", protocol, "--icmp-type", "8"];
    allowed(SHOP, &ping("icmp"));
    refused(SHOP, &ping("icmpv6"), &["`blog/api` has no IPv6 address"]);
    let text = allowed(
        SHOP,
        &["shop/db", "shop/api", "-p", "icmpv6", "--icmp-type", "128"],
    );
    assert!(
        text.contains("shop/db (fd01::2) to shop/api (fd01::1), ICMPv6"),
        "{text}"
    );
    let four = ["shop/db", "shop/api", "-p", "icmpv6", "--ip-version", "4"];
    refused(SHOP, &four, &["ICMPv6 is a protocol of IPv6"]);
    // Where there is nothing but IPv6, ICMP is that of IPv6.
    let six = pod("shop/six", "n1", &["fd01::6"], "");
    let text = allowed(
        &format!("{SHOP}{six}"),
        &["shop/api", "shop/six", "-p", "icmp"],
    );
    assert!(text.contains("ICMPv6, all types"), "{text}");
}
