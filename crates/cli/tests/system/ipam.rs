//! `tortie ipam` on a real etcd: what it shows, what it finds, what it releases and what it refuses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod setting;

use setting::{Setting, pod};

/// The number that the last line of a check tells.
fn problems(printed: &str) -> usize {
    let line = printed
        .lines()
        .find(|line| line.starts_with("Check complete"))
        .unwrap();
    let number = line.split(' ').find_map(|word| word.parse().ok());
    number.unwrap()
}

#[test]
fn a_table_shows_how_full_pools_and_blocks_are() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/16", 24);
    for number in 0..4 {
        setting.assign(&pod(&format!("p{number}")));
    }
    let block = setting.block();
    let printed = setting.tortie("ipam show --show-blocks");
    let width = block.len().max("10.65.0.0/16".len());
    let border = format!(
        "+----------+{}+-----------+------------+--------------+",
        "-".repeat(width + 2)
    );
    let expected = [
        border.clone(),
        format!(
            "| GROUPING | {:^width$} | IPS TOTAL | IPS IN USE |   IPS FREE   |",
            "CIDR"
        ),
        border.clone(),
        format!(
            "| IP Pool  | {:width$} |     65536 | 4 (0%)     | 65532 (100%) |",
            "10.65.0.0/16"
        ),
        format!("| Block    | {block:width$} |       256 | 4 (2%)     | 252 (98%)    |"),
        border,
        String::new(),
    ]
    .join("\n");
    assert_eq!(printed, expected);
    assert!(!setting.tortie("ipam show").contains("Block"));
}

#[test]
fn an_address_has_a_holder_or_none() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    let address = setting.assign(&pod("web"));
    let printed = setting.tortie(&format!("ipam show --ip {address}"));
    assert!(
        printed.starts_with(&format!("IP {address} is in use\nHandle ID: net.web\n")),
        "{printed}"
    );
    assert!(printed.contains("  pod: web\n"), "{printed}");
    assert_eq!(
        setting.tortie("ipam show --ip 10.65.0.250"),
        "10.65.0.250 is not assigned\n"
    );
}

#[test]
fn a_healthy_cluster_has_no_problems() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    for name in ["a", "b"] {
        let address = setting.assign(&pod(name));
        setting.endpoint(name, &address);
    }
    assert_eq!(problems(&setting.tortie("ipam check")), 0);
}

/// Every sort of problem is seeded once, and that one is found and no other.
#[test]
fn each_sort_of_problem_is_found_alone() {
    type Seed = fn(&Setting) -> String;
    let seeds: [(&str, Seed); 8] = [
        ("leaked: pod default/gone does not exist", |setting| {
            setting.assign(&pod("gone"))
        }),
        ("leaked: no workload has it", |setting| {
            setting.assign(&setting::container("abc"))
        }),
        ("leaked: node lost does not exist", |setting| {
            setting.assign(&setting::tunnel("lost"))
        }),
        ("has no IPAM allocation", |setting| {
            setting.endpoint("thief", "10.65.0.200");
            "10.65.0.200".to_owned()
        }),
        ("is not in any active IP pool", |setting| {
            setting.endpoint("stranger", "192.0.2.7");
            "192.0.2.7".to_owned()
        }),
        ("doesn't have any active IPs", |setting| {
            setting.empty_handle("net.empty");
            "net.empty".to_owned()
        }),
        ("which doesn't exist", |setting| {
            let address = setting.assign(&pod("orphan"));
            setting.endpoint("orphan", &address);
            setting.delete_handle("net.orphan");
            address
        }),
        ("is not confirmed", |setting| {
            setting.assign(&pod("first"));
            setting.unconfirm_affinity();
            setting.release("net.first");
            setting.block()
        }),
    ];
    for (words, seed) in seeds {
        let setting = Setting::new();
        setting.pool("pool", "10.65.0.0/24", 26);
        let subject = seed(&setting);
        let printed = setting.tortie("ipam check --show-problem-ips");
        assert_eq!(problems(&printed), 1, "{words}: {printed}");
        let line = printed.lines().find(|line| line.contains(words));
        assert!(
            line.is_some_and(|line| line.contains(&subject)),
            "{words}: {printed}"
        );
    }
}

#[test]
fn an_address_in_use_is_not_released() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    let address = setting.assign(&pod("web"));
    setting.endpoint("web", &address);
    let refused = setting.refused(&format!("ipam release --ip {address}"));
    assert!(
        refused.contains(&address) && refused.contains("in use by"),
        "{refused}"
    );
    setting.delete_endpoint("web");
    assert_eq!(
        setting.tortie(&format!("ipam release --ip {address}")),
        format!("Successfully released IP address {address}\n")
    );
    let refused = setting.refused(&format!("ipam release --ip {address}"));
    let told = format!("IP address {address} is not assigned");
    assert!(refused.contains(&told), "{refused}");
}

#[test]
fn what_a_report_calls_leaked_is_released_and_nothing_else() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    let used = setting.assign(&pod("used"));
    setting.endpoint("used", &used);
    let leaked = setting.assign(&pod("gone"));
    setting.empty_handle("net.empty");
    let report = setting.folder().join("report.json");
    let report = report.display();
    setting.tortie(&format!("ipam check -o {report}"));
    let refused = setting.refused(&format!("ipam release --from-report {report}"));
    assert!(refused.contains("not locked"), "{refused}");

    setting.tortie("datastore migrate lock");
    let refused = setting.refused(&format!("ipam release --from-report {report}"));
    assert!(refused.contains("older"), "{refused}");
    setting.tortie(&format!("ipam check -o {report}"));
    let printed = setting.tortie(&format!("ipam release --from-report {report}"));
    assert!(printed.contains("Released 1 IPs successfully"), "{printed}");
    assert!(printed.contains("Released 1 handles"), "{printed}");
    assert!(printed.contains("unlock"), "{printed}");
    setting.tortie("datastore migrate unlock");

    assert_eq!(problems(&setting.tortie("ipam check")), 0);
    assert!(
        setting
            .tortie(&format!("ipam show --ip {used}"))
            .contains("in use")
    );
    assert!(
        setting
            .tortie(&format!("ipam show --ip {leaked}"))
            .contains("not assigned")
    );
}

#[test]
fn why_tells_holder_time_and_state() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    let address = setting.assign(&pod("web"));
    let (code, printed) = setting.run(&format!("ipam why {address}"));
    assert_eq!(code, 1, "{printed}");
    for words in [
        "leaked: pod default/web does not exist",
        "net.web",
        "pool (10.65.0.0/24)",
        "ipam release",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    setting.endpoint("web", &address);
    let (code, printed) = setting.run(&format!("ipam why {address} -o json"));
    assert_eq!(code, 0, "{printed}");
    let answer: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&answer["state"], &answer["handle"]),
        (&"inUse".into(), &"net.web".into())
    );
    let (code, printed) = setting.run("ipam why 10.65.0.250");
    assert_eq!(
        (code, printed.starts_with("10.65.0.250 is free")),
        (0, true),
        "{printed}"
    );
}

#[test]
fn settings_are_changed_and_shown() {
    let setting = Setting::new();
    let refused = setting.refused("ipam configure");
    assert!(refused.contains("at least one"), "{refused}");
    assert_eq!(
        setting.tortie("ipam configure --strictaffinity=true --max-blocks-per-host=4"),
        "Successfully set StrictAffinity to: true\nSuccessfully set MaxBlocksPerHost to: 4\n"
    );
    let shown = setting.tortie("ipam show --show-configuration");
    assert!(
        shown.contains("| StrictAffinity               | true"),
        "{shown}"
    );
    let refused = setting.refused("ipam configure --strictaffinity=false");
    assert!(refused.contains("StrictAffinity"), "{refused}");
}

#[test]
fn a_pool_is_split_while_the_datastore_is_locked() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    let address = setting.assign(&pod("web"));
    setting.endpoint("web", &address);
    let refused = setting.refused("ipam split 2 --name pool");
    assert!(refused.contains("not locked"), "{refused}");
    setting.tortie("datastore migrate lock");
    let refused = setting.refused("ipam split 3 --name pool");
    assert!(refused.contains("power of 2: 3"), "{refused}");
    let printed = setting.tortie("ipam split 2 --cidr 10.65.0.0/24");
    assert!(
        printed.contains("split-pool-1 (10.65.0.128/25)"),
        "{printed}"
    );
    setting.tortie("datastore migrate unlock");
    assert_eq!(problems(&setting.tortie("ipam check")), 0);
}

#[test]
fn a_deleted_node_or_pool_leaves_no_addresses() {
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    setting.assign(&pod("web"));
    setting.tortie("delete node node-1");
    assert!(setting.keys("/calico/ipam/v2/").is_empty());
    let setting = Setting::new();
    setting.pool("pool", "10.65.0.0/24", 26);
    setting.assign(&pod("web"));
    setting.release("net.web");
    setting.tortie("delete ippool pool");
    assert!(setting.keys("/calico/ipam/v2/").is_empty());
}
