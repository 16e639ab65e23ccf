//! One rule of routes in each test: pools, blocks, subnets, and whether there are routes at all.

use super::*;
use crate::RoutesSent;
use tortie_api::ip_pool::IpPoolAllowedUse;
use tortie_config::{ProgramClusterRoutes, RouteSource};

#[test]
fn blocks_lead_to_their_nodes_and_pools_say_how() {
    let pool = pool("10.0.0.0/16", |pool| {
        pool.vxlan = EncapMode::Always;
        pool.masquerade = true;
    });
    let nodes = vec![
        node(LOCAL, "192.168.0.1/24"),
        node("node-b", "192.168.0.2/24"),
    ];
    let mut full = nodes.clone();
    full.extend([
        pool.clone(),
        block("10.0.0.0/26", Some(LOCAL), &[("10.0.0.1", LOCAL)]),
        block("10.0.1.0/26", Some("node-b"), &[("10.0.1.1", "node-b")]),
        workload(LOCAL, "w1", &["10.0.0.1/32"]),
        workload("node-b", "w2", &["10.0.1.1/32"]),
    ]);
    check(
        &[nodes, vec![pool], full],
        "route",
        &[
            "10.0.0.0/16 in Vxlan nat",
            "10.0.0.0/26 local-workload in Vxlan at node-a 192.168.0.1 nat",
            "10.0.0.1/32 local-workload in Vxlan at node-a 192.168.0.1 nat live",
            "10.0.1.0/26 remote-workload in Vxlan at node-b 192.168.0.2 nat",
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
        ],
    );
}

#[test]
fn a_borrowed_address_leads_to_the_node_that_uses_it() {
    let base = vec![
        vxlan_pool("10.0.0.0/16"),
        node(LOCAL, "192.168.0.1/24"),
        node("node-b", "192.168.0.2/24"),
    ];
    let before = [
        base.clone(),
        vec![block(
            "10.0.0.0/26",
            Some("node-c"),
            &[("10.0.0.1", "node-b")],
        )],
    ]
    .concat();
    let after = [
        base,
        vec![
            block(
                "10.0.0.0/26",
                Some("node-b"),
                &[
                    ("10.0.0.1", LOCAL),
                    ("10.0.0.2", "node-b"),
                    ("10.0.0.3", ""),
                    ("10.9.0.3", "node-c"),
                ],
            ),
            workload(LOCAL, "w1", &["10.0.0.1/32"]),
        ],
    ]
    .concat();
    check(
        &[before, after],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b 192.168.0.2",
            "10.0.0.1/32 remote-workload local-workload in Vxlan at node-a 192.168.0.1 live borrowed",
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
        ],
    );
}

/// Felix learns of it only when something else about the address changes.
#[test]
fn an_address_is_borrowed_as_soon_as_its_block_is_known() {
    let use_alone = vec![
        vxlan_pool("10.0.0.0/16"),
        workload(LOCAL, "w1", &["10.0.0.1/32"]),
    ];
    let with_block = [
        use_alone.clone(),
        vec![block("10.0.0.0/26", Some("node-b"), &[])],
    ]
    .concat();
    check(
        &[use_alone.clone(), with_block.clone()],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b",
            "10.0.0.1/32 remote-workload local-workload in Vxlan at node-a live borrowed",
        ],
    );
    check(
        &[with_block, use_alone],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.1/32 local-workload in Vxlan at node-a live",
        ],
    );
}

#[test]
fn a_block_without_node_leads_to_the_users_of_its_addresses() {
    check(
        &[vec![
            vxlan_pool("10.0.0.0/16"),
            block("10.0.0.0/26", None, &[("10.0.0.1", "node-b")]),
        ]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.1/32 remote-workload in Vxlan at node-b",
        ],
    );
}

#[test]
fn a_block_of_one_address_outdoes_the_allocation_in_it() {
    check(
        &[vec![
            vxlan_pool("10.0.0.1/32"),
            block("10.0.0.1/32", Some("node-b"), &[("10.0.0.1", "node-c")]),
        ]],
        "route",
        &["10.0.0.1/32 remote-workload in Vxlan at node-b"],
    );
}

#[test]
fn of_nested_blocks_the_inner_one_counts() {
    let outer = block("10.0.0.0/24", Some("node-b"), &[("10.0.0.1", "node-d")]);
    let inner = block("10.0.0.1/32", Some("node-c"), &[]);
    let pool = vxlan_pool("10.0.0.0/16");
    check(
        &[vec![pool.clone(), inner.clone()], vec![pool, outer, inner]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/24 remote-workload in Vxlan at node-b",
            "10.0.0.1/32 remote-workload in Vxlan at node-c borrowed",
        ],
    );
}

#[test]
fn same_subnet_needs_the_mode_and_the_local_subnet() {
    let rest = vec![
        cross_subnet_pool("10.0.0.0/16"),
        vxlan_pool("10.1.0.0/16"),
        node("node-b", "192.168.0.2/24"),
        node("node-c", "192.168.1.2/24"),
        block("10.0.0.0/26", Some("node-b"), &[]),
        block("10.0.1.0/26", Some("node-c"), &[]),
        block("10.1.0.0/26", Some("node-b"), &[]),
    ];
    let with = |local: &str| [rest.clone(), vec![node(LOCAL, local)]].concat();
    let expected = |b: &str, c: &str| {
        [
            "10.0.0.0/16 in Vxlan".to_owned(),
            format!("10.0.0.0/26 remote-workload in Vxlan at node-b 192.168.0.2{b}"),
            format!("10.0.1.0/26 remote-workload in Vxlan at node-c 192.168.1.2{c}"),
            "10.1.0.0/16 in Vxlan".to_owned(),
            "10.1.0.0/26 remote-workload in Vxlan at node-b 192.168.0.2".to_owned(),
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1".to_owned(),
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2".to_owned(),
            "192.168.1.2/32 remote-host in None at node-c 192.168.1.2".to_owned(),
        ]
    };
    for (subnet, b, c) in [
        ("192.168.0.1/24", " same-subnet", ""),
        ("192.168.0.1/16", " same-subnet", " same-subnet"),
        ("192.168.0.1/32", "", ""),
        ("192.168.0.1/0", "", ""),
    ] {
        let expected = expected(b, c);
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(
            &[rest.clone(), with("192.168.1.1/24"), with(subnet)],
            "route",
            &expected,
        );
    }
}

#[test]
fn a_change_of_another_nodes_address_reaches_its_routes() {
    let state = |address: &str| {
        vec![
            node(LOCAL, "192.168.0.1/24"),
            node("node-b", address),
            cross_subnet_pool("10.0.0.0/16"),
            block("10.0.0.0/26", Some("node-b"), &[]),
        ]
    };
    check(
        &[state("192.168.0.2/24"), state("192.168.7.2/24")],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b 192.168.7.2",
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1",
            "192.168.7.2/32 remote-host in None at node-b 192.168.7.2",
        ],
    );
}

#[test]
fn a_pool_for_load_balancers_is_no_pool_for_routes() {
    let balancers = pool("10.9.0.0/16", |pool| {
        pool.allowed_uses = vec![IpPoolAllowedUse::LoadBalancer];
        pool.masquerade = true;
    });
    let both = pool("10.8.0.0/16", |pool| {
        pool.allowed_uses = vec![IpPoolAllowedUse::LoadBalancer, IpPoolAllowedUse::Workload];
    });
    check(
        &[vec![vxlan_pool("10.0.0.0/16"), balancers, both]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.8.0.0/16 in NoEncap",
            "10.9.0.0/16 in None nat",
        ],
    );
}

#[test]
fn a_pool_inside_a_pool_overrides_its_kind_only() {
    let outer = pool("10.0.0.0/8", |pool| {
        pool.ipip = EncapMode::CrossSubnet;
        pool.masquerade = true;
    });
    let workload = workload(LOCAL, "w1", &["10.1.0.1/32"]);
    let node = node(LOCAL, "192.168.0.1/24");
    check(
        &[
            vec![outer.clone(), workload.clone(), node.clone()],
            vec![outer, vxlan_pool("10.1.0.0/16"), workload, node],
        ],
        "route",
        &[
            "10.0.0.0/8 in Ipip nat",
            "10.1.0.0/16 in Vxlan nat",
            "10.1.0.1/32 local-workload in Vxlan at node-a 192.168.0.1 same-subnet nat live",
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1",
        ],
    );
}

#[test]
fn routes_come_and_go_with_the_need_for_them() {
    let state = |pool: Update| vec![pool, node(LOCAL, "192.168.0.1/24")];
    let plain = || state(pool("10.0.0.0/16", |_| {}));
    let ipip = || state(pool("10.0.0.0/16", |pool| pool.ipip = EncapMode::Always));
    let vxlan = || state(vxlan_pool("10.0.0.0/16"));
    let host = "192.168.0.1/32 local-host in None at node-a 192.168.0.1";
    check(&[vxlan(), plain()], "route", &[]);
    check(
        &[plain(), vxlan()],
        "route",
        &["10.0.0.0/16 in Vxlan", host],
    );
    check(&[plain(), ipip()], "route", &["10.0.0.0/16 in Ipip", host]);

    let without_ipip = Config {
        cluster_routes: ProgramClusterRoutes::Disabled,
        ..Config::for_node(LOCAL)
    };
    check_with(&without_ipip, &[vxlan(), ipip()], "route", &[]);
    let with_plain = Config {
        cluster_routes: ProgramClusterRoutes::Enabled,
        ..Config::for_node(LOCAL)
    };
    check_with(
        &with_plain,
        &[plain()],
        "route",
        &["10.0.0.0/16 in NoEncap", host],
    );
    let handing_over = Config {
        routes_sent: RoutesSent::WithAnyPool,
        ..without_ipip
    };
    check_with(
        &handing_over,
        &[ipip()],
        "route",
        &["10.0.0.0/16 in Ipip", host],
    );
    check_with(&handing_over, &[ipip(), vec![]], "route", &[]);
    let bpf = Config {
        bpf_enabled: true,
        ..Config::for_node(LOCAL)
    };
    check_with(&bpf, &[plain()], "route", &["10.0.0.0/16 in NoEncap", host]);
    let forced = Config {
        vxlan_enabled: Some(true),
        ..Config::for_node(LOCAL)
    };
    check_with(
        &forced,
        &[plain()],
        "route",
        &["10.0.0.0/16 in NoEncap", host],
    );
}

#[test]
fn routes_from_workloads_need_no_blocks() {
    let config = Config {
        route_source: RouteSource::WorkloadIps,
        ..Config::for_node(LOCAL)
    };
    check_with(
        &config,
        &[vec![
            vxlan_pool("10.0.0.0/16"),
            node("node-b", "192.168.0.2/24"),
            block("10.0.0.0/26", Some("node-c"), &[]),
            workload("node-b", "w1", &["10.0.0.1/32", "fd00::1/128"]),
        ]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.1/32 remote-workload in Vxlan at node-b 192.168.0.2",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
            "fd00::1/128 remote-workload in None at node-b",
        ],
    );
}

#[test]
fn an_endpoint_that_is_not_admitted_has_no_route() {
    let spoofing = |prefixes: &[&str]| {
        let Update::WorkloadEndpoint(key, Some(mut endpoint)) =
            workload(LOCAL, "w1", &["10.0.0.1/32"])
        else {
            unreachable!()
        };
        endpoint.allow_spoofed_source_prefixes = prefixes.iter().map(|text| net(text)).collect();
        vec![
            vxlan_pool("10.0.0.0/16"),
            Update::WorkloadEndpoint(key, Some(endpoint)),
        ]
    };
    check(
        &[spoofing(&[]), spoofing(&["1.0.0.0/8"])],
        "route",
        &["10.0.0.0/16 in Vxlan"],
    );
}
