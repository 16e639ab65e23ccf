use serde_json::json;
use tortie_api::Resource;

use super::*;

fn pool(name: &str, spec: &serde_json::Value) -> Pool {
    let value = json!({ "metadata": { "name": name, "resourceVersion": "1" }, "spec": spec });
    match Resource::decode_stored(Kind::IpPool, &value).unwrap() {
        Resource::IpPool(pool) => Pool::new(&pool).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn pools() -> Vec<Pool> {
    vec![
        pool(
            "a",
            &json!({ "cidr": "10.0.0.0/24", "nodeSelector": "rack == 'r1'" }),
        ),
        pool("b", &json!({ "cidr": "10.0.1.0/24", "disabled": true })),
        pool(
            "c",
            &json!({ "cidr": "10.0.2.0/24", "assignmentMode": "Manual", "blockSize": 29 }),
        ),
        pool(
            "d",
            &json!({
                "cidr": "10.0.3.0/24", "namespaceSelector": "team == 'x'", "allowedUses": ["Workload"],
            }),
        ),
        pool(
            "e",
            &json!({ "cidr": "10.0.4.0/24", "allowedUses": ["LoadBalancer"] }),
        ),
        pool(
            "f",
            &json!({ "cidr": "fd00::/112", "allowedUses": ["Tunnel"] }),
        ),
    ]
}

/// Which pools node labels, namespace labels, wished pools and the use lead to, or why none.
#[track_caller]
fn check(
    node: &[(&str, &str)],
    namespace: Option<&[(&str, &str)]>,
    wished: &[&str],
    used_for: Use,
    expected: &str,
) {
    let labels = |labels: &[(&str, &str)]| -> BTreeMap<String, String> {
        labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let node = labels(node);
    let namespace = namespace.map(labels);
    let wished: Vec<IpNet> = wished.iter().map(|net| net.parse().unwrap()).collect();
    let request = PoolRequest {
        version: wished.first().map_or(4, |net| nets::version(*net)),
        pools: &wished,
        host: "n",
        node_labels: &node,
        namespace_labels: namespace.as_ref(),
        used_for,
        reserved: None,
    };
    let found = match select(&pools(), &request) {
        Ok(selected) => selected
            .usable
            .iter()
            .map(|pool| pool.name.as_str())
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected);
}

#[test]
fn pools_are_chosen_by_node_namespace_and_use() {
    check(&[("rack", "r1")], None, &[], Use::Workload, "a");
    check(
        &[("rack", "r1")],
        Some(&[("team", "x")]),
        &[],
        Use::Workload,
        "a d",
    );
    check(&[], Some(&[("team", "x")]), &[], Use::Workload, "d");
    check(&[], None, &[], Use::LoadBalancer, "e");
    let none = "cannot find a qualified ippool, no pools match the required use (Workload)";
    check(&[], Some(&[("team", "y")]), &[], Use::Workload, none);
    check(&[], None, &["fd00::/112"], Use::Tunnel, "f");
}

#[test]
fn pools_that_are_asked_for_are_used_whatever_they_select() {
    check(
        &[],
        None,
        &["10.0.0.0/24", "10.0.2.0/24"],
        Use::Workload,
        "a c",
    );
    let off = "the given pool (10.0.1.0/24) does not exist, or is not enabled";
    check(&[], None, &["10.0.1.0/24"], Use::Workload, off);
}

#[test]
fn a_pool_needs_blocks_larger_than_what_the_host_keeps() {
    let all = pools();
    let reserved = HostReserved {
        start: 3,
        end: 1,
        handle: "h".into(),
        note: String::new(),
    };
    let labels = BTreeMap::new();
    let mut request = PoolRequest {
        version: 4,
        pools: &["10.0.2.0/24".parse().unwrap()],
        host: "n",
        node_labels: &labels,
        namespace_labels: None,
        used_for: Use::Workload,
        reserved: Some(&reserved),
    };
    assert!(select(&all, &request).is_ok());
    let large = HostReserved {
        start: 7,
        end: 1,
        ..reserved.clone()
    };
    request.reserved = Some(&large);
    assert!(matches!(
        select(&all, &request),
        Err(Error::PoolNotEnabled(_))
    ));
    let none = HostReserved {
        start: 0,
        end: 0,
        ..large.clone()
    };
    request.reserved = Some(&none);
    assert!(matches!(select(&all, &request), Err(Error::Refused(_))));
}

#[test]
fn a_broken_selector_is_an_error() {
    let broken = [pool(
        "x",
        &json!({ "cidr": "10.0.0.0/24", "nodeSelector": "a ==" }),
    )];
    assert!(matches!(
        broken[0].selects_node(&BTreeMap::new()),
        Err(Error::Selector { .. })
    ));
}
