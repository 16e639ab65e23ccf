//! What can be set, and what is said of what cannot.

use tortie_install::{Values, schema};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/tortie");

fn set(fields: &[&str]) -> Result<Values, String> {
    Values::new([], fields.iter().copied()).map_err(|error| error.to_string())
}

#[test]
fn helm_checks_values_by_the_same_types() {
    let file = format!("{CHART}/values.schema.json");
    let want = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if found != want {
        let new = format!("{file}.new");
        std::fs::write(&new, want).expect("a file beside it");
        panic!("{file} is not what the types say: compare it with {new}");
    }
}

#[test]
fn later_ones_win() {
    let files = [
        ("one", "ipv4: {blockSize: 24}"),
        ("two", "mtu: 1400\nipv4: {podCidr: 10.1.0.0/16}"),
    ];
    let values = Values::new(files, ["ipv4.blockSize=25"]).expect("values");
    assert_eq!(values.ipv4.block_size, 25);
    assert_eq!(values.ipv4.pod_cidr, "10.1.0.0/16");
    assert_eq!(values.mtu, 1400);
}

#[test]
fn fields_are_set_as_helm_does() {
    let values = set(&[
        "image.tag=1.10,image.pullSecrets=[one, two]",
        r"controllers.nodeSelector.kubernetes\.io/arch=arm64",
        r"node.env.FELIX_A=1\,2",
        "bgp.enabled=true",
    ]);
    let values = values.expect("values");
    assert_eq!(values.image.tag, "1.10");
    assert_eq!(values.image.pull_secrets, ["one", "two"]);
    assert_eq!(
        values.controllers.node_selector["kubernetes.io/arch"],
        "arm64"
    );
    assert_eq!(
        values.controllers.node_selector["kubernetes.io/os"],
        "linux"
    );
    assert_eq!(values.node.env["FELIX_A"], "1,2");
    assert!(values.bgp.enabled);
}

#[test]
fn what_is_wrong_is_named() {
    for (given, said) in [
        (
            "ipv4.blockSize=12",
            "ipv4.blockSize: 12 is no prefix length of blocks: expected 20 to 32",
        ),
        (
            "ipv4.podCidr=fd00::/48",
            "ipv4.podCidr: `fd00::/48` is no network of this IP version",
        ),
        (
            "ipv4.podCidr=10.0.0.0/28",
            "ipv4.podCidr: 10.0.0.0/28 is smaller than a block of it, which has the prefix length 26",
        ),
        (
            "ipv4.enabled=false",
            "ipv4.enabled: pods need IPv4, IPv6 or both",
        ),
        (
            "ipv6.encapsulation=IPIP",
            "ipv6.encapsulation: IPIP is for IPv4: expected VXLAN, VXLANCrossSubnet or None",
        ),
        (
            "datastore.type=etcd",
            "datastore.etcd.endpoints: expected URLs, since datastore.type is etcd",
        ),
        (
            "cni.binFolder=/opt/../etc",
            "cni.binFolder: `/opt/../etc` is not the full path of a folder",
        ),
        (
            "node.maxUnavailable=0",
            "node.maxUnavailable: expected 1 to 100",
        ),
        (
            "mtu",
            "--set mtu: expected FIELD=VALUE, such as ipv4.encapsulation=None",
        ),
        (
            "mtu.of=5",
            "--set mtu.of=5: a field with a value of its own has no fields below it",
        ),
        ("mtu=[", "--set mtu=[: the value is not YAML"),
    ] {
        assert_eq!(set(&[given]).expect_err(given), said);
    }
    for (given, start) in [
        (
            "ipv4.blokSize=12",
            "ipv4.blokSize: unknown field `blokSize`, expected one of",
        ),
        ("mtu=x", "mtu: invalid type: string \"x\", expected u16"),
        (
            "dataplane=ebpf",
            "dataplane: unknown variant `ebpf`, expected one of `auto`, `nftables`, `iptables`",
        ),
        (
            "image.tag=null",
            "image.tag: invalid type: null, expected a string",
        ),
    ] {
        let said = set(&[given]).expect_err(given);
        assert!(said.starts_with(start), "{said}");
    }
}
