//! Questions that cannot be answered.

use super::{SHOP, refused};

#[test]
fn an_unknown_pod_is_named_with_what_is_near() {
    refused(
        SHOP,
        &["shop/pai", "shop/db"],
        &["there is no pod `shop/pai`", "did you mean `shop/api`?"],
    );
    refused(
        SHOP,
        &["shop/api", "blog/db"],
        &["`blog/db`", "did you mean `shop/db`?"],
    );
    refused(
        SHOP,
        &["shop/api", "shp/db"],
        &["`shp/db`", "did you mean `shop/db`?"],
    );
    refused(
        SHOP,
        &["shop/api", "shop/nothing-like-it"],
        &["`shop/api`", "`shop/db`"],
    );
    refused(
        "kind: List\nitems: []\n",
        &["a/b", "c/d"],
        &["No resources specified"],
    );
}

#[test]
fn pods_of_a_deployment_are_near_its_name() {
    let pod = super::pod("shop/cart-7d9f-x2x", "n1", &["10.0.0.9"], "");
    refused(
        &format!("{SHOP}{pod}"),
        &["shop/api", "shop/cart"],
        &["did you mean `shop/cart-7d9f-x2x`?"],
    );
}

#[test]
fn a_name_without_a_namespace_is_refused() {
    refused(
        SHOP,
        &["api", "shop/db"],
        &["`api` is ambiguous", "`blog/api` or `shop/api`"],
    );
    refused(
        SHOP,
        &["shop/api", "db"],
        &["`db` must be", "did you mean `shop/db`?"],
    );
    refused(
        SHOP,
        &["shop/api", "n1"],
        &["`n1` must be", "did you mean `host/n1`?"],
    );
    refused(
        SHOP,
        &["shop/api", "10.0.0"],
        &["`10.0.0` must be NAMESPACE/POD"],
    );
}

#[test]
fn an_unknown_host_is_named_with_what_is_near() {
    refused(
        SHOP,
        &["host/n3", "shop/db"],
        &[
            "there is no node and no host endpoint `n3`",
            "`host/n1` or `host/n2`",
        ],
    );
}

#[test]
fn an_address_of_two_pods_is_ambiguous() {
    let twin = super::pod("shop/twin", "n2", &["10.0.0.1"], "");
    refused(
        &format!("{SHOP}{twin}"),
        &["10.0.0.1", "shop/db"],
        &["`10.0.0.1` is ambiguous", "`shop/api`", "`shop/twin`"],
    );
}

#[test]
fn ports_need_a_protocol_that_has_them() {
    refused(
        SHOP,
        &["shop/api", "shop/db", "--port", "80"],
        &["port 80 needs a protocol", "`TCP`, `UDP` or `SCTP`"],
    );
    refused(
        SHOP,
        &["shop/api", "shop/db", "--port", "80", "--protocol", "ICMP"],
        &["ICMP has no ports", "port 80"],
    );
    refused(
        SHOP,
        &[
            "shop/api",
            "shop/db",
            "--src-port",
            "80",
            "--protocol",
            "47",
        ],
        &["protocol 47 has no ports"],
    );
    refused(
        SHOP,
        &[
            "shop/api",
            "shop/db",
            "--icmp-type",
            "8",
            "--protocol",
            "TCP",
        ],
        &["protocol TCP has no ICMP type", "`ICMP` or `ICMPv6`"],
    );
    refused(
        SHOP,
        &["shop/api", "shop/db", "--protocol", "tpc"],
        &["`tpc` is not a protocol", "did you mean `TCP`"],
    );
    refused(
        SHOP,
        &["shop/api", "shop/db", "--protocol", "0"],
        &["`0` is not a protocol"],
    );
}

#[test]
fn a_question_has_two_sides() {
    refused(SHOP, &["shop/api"], &["<TO>"]);
    refused(SHOP, &[], &["<FROM>"]);
    refused(
        SHOP,
        &["a/b", "c/d", "--batch", "x"],
        &["cannot be used with"],
    );
}
