use tortie_api::{BlockAffinity, IpamBlock, IpamHandle};

use super::*;

#[track_caller]
fn check(resource: impl Into<Resource>, path: &str) {
    let resource = resource.into();
    assert_eq!(of_resource(&resource).unwrap(), path);
    let location = Location::parse(path).unwrap();
    let key = location.key();
    assert_eq!(key.kind, resource.kind());
    assert!(
        candidates(&key).contains(&path.to_owned()),
        "{:?}",
        candidates(&key)
    );
    let range = Range::of(&Query::all(key.kind));
    let is_that_key = range.start == path.as_bytes() && range.end.is_empty();
    let is_in_range = (range.start..range.end).contains(&path.as_bytes().to_vec());
    // Settings under another name than `default` are refused elsewhere, and lists need not find them.
    let is_never_read = key.kind == Kind::IpamConfiguration && key.name != CONFIG_NAME;
    assert!(is_that_key || is_in_range || is_never_read);
}

fn named(kind: Kind, namespace: &str, name: &str) -> Resource {
    let mut resource = Resource::empty(kind);
    resource.metadata_mut().namespace = namespace.to_owned();
    resource.metadata_mut().name = name.to_owned();
    resource
}

fn block(cidr: &str) -> IpamBlock {
    let mut block = IpamBlock::default();
    block.spec.cidr = cidr.to_owned();
    block
}

fn affinity(r#type: &str, node: &str, cidr: &str) -> BlockAffinity {
    let mut affinity = BlockAffinity::default();
    affinity.spec.r#type = r#type.to_owned();
    affinity.spec.node = node.to_owned();
    affinity.spec.cidr = cidr.to_owned();
    affinity
}

fn handle(id: &str) -> IpamHandle {
    let mut handle = IpamHandle::default();
    handle.spec.handle_id = id.to_owned();
    handle
}

#[test]
fn paths_are_those_of_calico() {
    let v3 = "/calico/resources/v3/projectcalico.org";
    check(
        named(Kind::Tier, "", "default"),
        &format!("{v3}/tiers/default"),
    );
    check(
        named(Kind::NetworkPolicy, "ns", "p"),
        &format!("{v3}/networkpolicies/ns/p"),
    );
    check(
        named(Kind::IpamConfiguration, "", "default"),
        "/calico/ipam/v2/config",
    );
    check(
        block("10.0.0.0/26"),
        "/calico/ipam/v2/assignment/ipv4/block/10.0.0.0-26",
    );
    check(
        block("fd00::40/122"),
        "/calico/ipam/v2/assignment/ipv6/block/fd00::40-122",
    );
    check(
        affinity("", "n-1", "10.0.0.0/26"),
        "/calico/ipam/v2/host/n-1/ipv4/block/10.0.0.0-26",
    );
    let virtual_path = "/calico/ipam/v2/virtual/load-balancer/ipv6/block/fd00::-122";
    check(
        affinity("virtual", "load-balancer", "fd00::/122"),
        virtual_path,
    );
    check(handle("net.0A1b"), "/calico/ipam/v2/handle/net.0A1b");
}

#[test]
fn paths_of_others_are_no_objects() {
    for path in [
        "",
        "/calico/",
        "/calico/resources/v3/projectcalico.org/tiers/",
        "/calico/resources/v3/projectcalico.org/tiers/a/b",
        "/calico/resources/v3/projectcalico.org/networkpolicies/a",
        "/calico/resources/v3/projectcalico.org/networkpolicies//a",
        "/calico/resources/v3/projectcalico.org/ipamblocks/a",
        "/calico/resources/v3/projectcalico.org/nosuchkinds/a",
        "/calico/resources/v3/projectcalico.org/ipamconfigurations/default",
        "/calico/ipam/v2/config/",
        "/calico/ipam/v2/handle/",
        "/calico/ipam/v2/handle/a/b",
        "/calico/ipam/v2/assignment/ipv6/block/10.0.0.0-26",
        "/calico/ipam/v2/assignment/ipv4/block/10.0.0.0",
        "/calico/ipam/v2/host//ipv4/block/10.0.0.0-26",
        "/calico/ipam/v2/other/a/ipv4/block/10.0.0.0-26",
    ] {
        assert_eq!(Location::parse(path), None, "{path}");
    }
}

#[test]
fn names_that_would_leave_their_place_in_the_tree_are_refused() {
    for resource in [
        named(Kind::Tier, "", "a/b"),
        named(Kind::Tier, "", ""),
        named(Kind::NetworkPolicy, "", "a"),
        named(Kind::NetworkPolicy, "a/b", "a"),
        block("10.0.0.0").into(),
        affinity("host", "", "10.0.0.0/26").into(),
        affinity("other", "n", "10.0.0.0/26").into(),
        handle("a/b").into(),
    ] {
        assert!(
            matches!(of_resource(&resource), Err(Error::Invalid { .. })),
            "{resource:?}"
        );
    }
}

#[test]
fn paths_are_those_in_the_vectors() {
    let vectors = tortie_testkit::vectors("names.json");
    let mut checked = 0;
    for vector in vectors {
        let (input, output) = (&vector["input"], &vector["output"]);
        let text = |field: &str| input[field].as_str().unwrap_or_default();
        match vector["what"].as_str().unwrap() {
            "blockKeyPath" => {
                check(block(text("cidr")), output["path"].as_str().unwrap());
                assert_eq!(
                    names::of_cidr(text("cidr")),
                    output["name"].as_str().unwrap()
                );
            }
            "blockAffinityKeyPath" => {
                let affinity = affinity(text("affinityType"), text("host"), text("cidr"));
                check(affinity, output.as_str().unwrap());
            }
            "ipamHandleKeyPath" => {
                let path = output.as_str().unwrap();
                assert_eq!(of_resource(&handle(text("handle")).into()).unwrap(), path);
                let id = text("handle").to_owned();
                assert_eq!(Location::parse(path), Some(Location::Handle { id }));
            }
            "resourceKeyPath" => {
                let kind = Kind::from_name(text("kind")).unwrap();
                check(
                    named(kind, text("namespace"), text("name")),
                    output.as_str().unwrap(),
                );
            }
            _ => continue,
        }
        checked += 1;
    }
    assert!(checked > 40, "only {checked} vectors are of paths");
}
