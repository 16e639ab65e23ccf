use super::super::recorded::{recorded, reply};
use super::*;

fn of<'a>(routes: &'a [Route], prefix: &str) -> Vec<&'a Route> {
    let prefix: IpNet = prefix.parse().unwrap();
    routes
        .iter()
        .filter(|route| route.prefix == prefix)
        .collect()
}

fn hop(gateway: &str, weight: Option<u32>) -> NextHop {
    NextHop {
        gateway: Some(gateway.parse().unwrap()),
        interface: "eth0".to_owned(),
        weight,
        is_on_link: false,
    }
}

/// Both versions had the same static routes and peer.
#[track_caller]
fn check_same(text: &str, has_attributes: bool) {
    let routes = routes(&reply(text));
    let kinds = [
        "10.65.8.0/24",
        "10.65.7.0/24",
        "10.65.1.0/26",
        "10.65.9.9/32",
    ]
    .map(|prefix| {
        (
            of(&routes, prefix)[0].kind,
            of(&routes, prefix)[0].preference,
        )
    });
    assert_eq!(
        kinds,
        [
            (Kind::Unreachable, Some(200)),
            (Kind::Prohibited, Some(200)),
            (Kind::Blackhole, Some(200)),
            (Kind::Unicast, Some(200)),
        ]
    );

    let spread = of(&routes, "10.65.6.0/24")[0];
    assert_eq!(spread.kind, Kind::Unicast);
    let hops = [hop("172.20.0.2", Some(1)), hop("172.20.0.5", Some(1))];
    assert_eq!(spread.next_hops, hops);

    let link = of(&routes, "172.20.0.0/24")[0];
    let device = NextHop {
        interface: "eth0".to_owned(),
        ..NextHop::default()
    };
    assert_eq!(link.next_hops, [device]);

    let two = of(&routes, "10.65.1.0/26");
    assert_eq!(two.len(), 2);
    assert_eq!([two[0].is_primary, two[1].is_primary], [true, false]);
    assert_eq!(two[1].protocol, "Mesh_172_20_0_2");
    assert_eq!(two[1].preference, Some(100));
    assert_eq!(two[1].next_hops, [hop("172.20.0.2", None)]);

    let told = of(&routes, "10.66.0.0/24")[0];
    assert_eq!(told.from, Some("172.20.0.2".parse().unwrap()));
    assert_eq!(told.next_hops, [hop("172.20.0.5", None)]);
    assert!(told.since.starts_with("02:20:"), "{}", told.since);

    let far = of(&routes, "10.70.0.0/24")[0];
    assert_eq!(far.origin.as_deref(), Some("AS65099i"));
    if has_attributes {
        let attributes = &far.attributes;
        assert!(attributes.source.as_deref().unwrap().starts_with("BGP"));
        assert_eq!(
            attributes.as_path,
            [AsSegment::As(65098), AsSegment::As(65099)]
        );
        assert_eq!(attributes.next_hop, Some("172.20.0.2".parse().unwrap()));
        assert_eq!(
            (attributes.med, attributes.local_pref),
            (Some(50), Some(200))
        );
        assert_eq!(attributes.communities, [(65000, 7)]);
        assert_eq!(attributes.large_communities, [(64512, 3, 4)]);
        assert_eq!(attributes.others["BGP.ext_community"], "(rt, 64512, 10)");
        // Of the second route of its prefix, and not of the first.
        assert_eq!(two[0].attributes.next_hop, None);
        assert_eq!(two[1].attributes.communities, [(65000, 7)]);
    } else {
        assert_eq!(far.attributes, Attributes::default());
    }
}

#[test]
fn both_versions_tell_the_same() {
    check_same(recorded!("2.0.12/routes"), false);
    check_same(recorded!("2.0.12/routes-all"), true);
    check_same(recorded!("1.6.8/routes"), false);
    check_same(recorded!("1.6.8/routes-all"), true);
}

#[test]
fn tables_of_both_families_are_told_apart() {
    let found = routes(&reply(recorded!("2.0.12/routes-all")));
    assert_eq!(of(&found, "10.65.2.0/26")[0].table, "master4");
    let ipv6 = of(&found, "fd65:2::/122")[0];
    assert_eq!(ipv6.table, "master6");
    assert_eq!(ipv6.next_hops, [hop("fd20::2", None)]);
    let old = routes(&reply(recorded!("1.6.8/routes-all-ipv6")));
    assert_eq!(of(&old, "fd65:2::/122")[0].next_hops, ipv6.next_hops);
    assert_eq!(old.len(), 3);
}

#[test]
fn what_cannot_be_read_leaves_the_others() {
    let text = "1007-Table flow4:\n flow4 { dst 10.0.0.0/8; } [a 1] * (100)\n1012-\tBGP.med: 7\n\
                1007-10.0.0.0/8 unicast [b 2] ! (x)\n1012-\tBGP.med: 8\n1007-10.1.0.0/16 via x on y [c 3]\n\
                1012-\tBGP.med: 9\n0000 \n";
    let found = routes(&reply(text));
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].protocol.as_str(), found[0].preference),
        ("b", None)
    );
    assert_eq!(found[0].attributes.med, Some(8));
}

#[test]
fn sets_in_a_path_are_sets() {
    let expected = [
        AsSegment::As(1),
        AsSegment::Set(vec![2, 3]),
        AsSegment::As(4),
    ];
    assert_eq!(as_path("1 {2 3} 4"), expected);
    assert_eq!(as_path("1 {2 3"), expected[..2]);
    assert_eq!(as_path(""), []);
}

#[test]
fn a_scoped_next_hop_keeps_its_address() {
    let hop = NextHop::of("via fe80::1%eth0 on eth0 onlink").unwrap();
    assert_eq!(hop.gateway, Some("fe80::1".parse().unwrap()));
    assert!(hop.is_on_link);
    assert_eq!(NextHop::of("mpls 100"), None);
}
