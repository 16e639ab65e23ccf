use tortie_api::node::{NodeAddress, NodeBgpSpec, NodeInterface, NodeSpec, NodeWireguardSpec};

use super::*;

fn node() -> Node {
    let address = |r#type: &str, address: &str| NodeAddress {
        r#type: r#type.into(),
        address: address.into(),
    };
    let interface = |name: &str, addresses: &[&str]| NodeInterface {
        name: name.into(),
        addresses: addresses.iter().map(|address| (*address).into()).collect(),
    };
    let spec = NodeSpec {
        bgp: Some(NodeBgpSpec {
            ipv4_address: "192.168.1.4/24".into(),
            ipv6_address: "fd00::4/64".into(),
            ipv4_ipip_tunnel_addr: "10.0.0.1".into(),
            ..NodeBgpSpec::default()
        }),
        ipv4_vxlan_tunnel_addr: "10.0.0.2".into(),
        ipv6_vxlan_tunnel_addr: "fd01::2".into(),
        wireguard: Some(NodeWireguardSpec {
            interface_ipv4_address: "10.0.0.3".into(),
            interface_ipv6_address: "fd01::3".into(),
        }),
        addresses: vec![
            address("InternalIP", "192.168.1.4"),
            address("InternalIP", "172.16.0.4"),
            address("ExternalIP", "8.8.8.8"),
            address("InternalIP", "not an address"),
        ],
        interfaces: vec![
            interface("eth0", &["172.16.0.4", "172.16.0.5"]),
            interface("eth1", &["10.1.0.1"]),
            interface("wlan0", &[]),
        ],
        ..NodeSpec::default()
    };
    let mut node = Node::new("", "n1", spec);
    node.metadata.labels.insert("zone".into(), "a".into());
    node
}

fn settings(templates: Vec<Template>) -> HostEndpointSettings {
    HostEndpointSettings {
        auto_create: true,
        create_default: templates.is_empty(),
        templates,
    }
}

fn template() -> Template {
    Template {
        generate_name: "t".into(),
        node_selector: "zone == 'a'".into(),
        ..Template::default()
    }
}

/// `name interface address,address` of each.
fn made(settings: &HostEndpointSettings) -> Vec<String> {
    let wanted = wanted(&node(), settings);
    assert_eq!(wanted.unusable, [""; 0]);
    let line = |endpoint: &HostEndpoint| {
        let addresses = endpoint.spec.expected_ips.join(",");
        let (name, interface) = (&endpoint.metadata.name, &endpoint.spec.interface_name);
        format!("{name} {interface} {addresses}")
    };
    wanted.endpoints.iter().map(line).collect()
}

#[test]
fn the_default_one_covers_all_interfaces_with_all_addresses_in_order() {
    assert_eq!(
        made(&settings(Vec::new())),
        [
            "n1-auto-hep * 192.168.1.4,fd00::4,10.0.0.1,10.0.0.2,fd01::2,10.0.0.3,fd01::3,172.16.0.4,172.16.0.5,10.1.0.1"
        ]
    );
    let endpoint = wanted(&node(), &settings(Vec::new())).endpoints.remove(0);
    assert_eq!(endpoint.spec.profiles, ["projectcalico-default-allow"]);
    assert_eq!(endpoint.spec.node, "n1");
    assert_eq!(endpoint.metadata.labels["zone"], "a");
    assert_eq!(endpoint.metadata.labels[CREATED_BY], CREATOR);
    assert!(endpoint.metadata.annotations.is_empty());
}

#[test]
fn none_are_made_when_that_is_off() {
    let off = HostEndpointSettings {
        auto_create: false,
        ..settings(vec![template()])
    };
    assert_eq!(wanted(&node(), &off), Wanted::default());
}

#[test]
fn a_template_without_pattern_makes_one_of_the_addresses_in_its_networks() {
    let template = Template {
        interface_cidrs: vec!["172.16.0.0/16".into(), "fd00::/64".into()],
        ..template()
    };
    let expected = ["n1-t-auto-hep  fd00::4,172.16.0.4,172.16.0.5"];
    assert_eq!(made(&settings(vec![template])), expected);
}

#[test]
fn a_template_without_pattern_and_without_addresses_makes_none() {
    assert_eq!(made(&settings(vec![template()])), [""; 0]);
}

#[test]
fn a_pattern_makes_one_for_each_interface_with_its_addresses() {
    let template = Template {
        interface_cidrs: vec!["192.168.0.0/16".into()],
        interface_pattern: "^(eth|wlan)".into(),
        ..template()
    };
    assert_eq!(
        made(&settings(vec![template])),
        [
            "n1-t-eth0-auto-hep eth0 192.168.1.4,172.16.0.4,172.16.0.5",
            "n1-t-eth1-auto-hep eth1 192.168.1.4,10.1.0.1",
            "n1-t-wlan0-auto-hep wlan0 192.168.1.4",
        ]
    );
}

#[test]
fn a_template_is_for_the_nodes_that_it_selects() {
    let template = Template {
        interface_pattern: "eth1".into(),
        node_selector: "zone == 'b'".into(),
        ..template()
    };
    assert_eq!(made(&settings(vec![template.clone()])), [""; 0]);
    let all = Template {
        node_selector: String::new(),
        ..template
    };
    assert_eq!(
        made(&settings(vec![all])),
        ["n1-t-eth1-auto-hep eth1 10.1.0.1"]
    );
}

#[test]
fn labels_and_annotations_of_a_template_are_added() {
    let template = Template {
        interface_pattern: "eth1".into(),
        labels: BTreeMap::from([
            ("zone".into(), "over".into()),
            (CREATED_BY.into(), "me".into()),
        ]),
        annotations: BTreeMap::from([("note".into(), "x".into())]),
        ..template()
    };
    let endpoint = wanted(&node(), &settings(vec![template]))
        .endpoints
        .remove(0);
    assert_eq!(endpoint.metadata.labels["zone"], "over");
    assert_eq!(endpoint.metadata.labels[CREATED_BY], CREATOR);
    assert_eq!(endpoint.metadata.annotations["note"], "x");
}

#[test]
fn a_template_that_cannot_be_used_is_named_and_does_not_stop_others() {
    let wrong = [
        Template {
            node_selector: "zone ==".into(),
            ..template()
        },
        Template {
            interface_pattern: "(".into(),
            ..template()
        },
        Template {
            interface_cidrs: vec!["x".into()],
            ..template()
        },
        Template {
            interface_pattern: "eth1".into(),
            ..template()
        },
    ];
    let wanted = wanted(&node(), &settings(wrong.to_vec()));
    assert_eq!(wanted.endpoints.len(), 1);
    assert_eq!(wanted.unusable.len(), 3, "{:?}", wanted.unusable);
    assert!(wanted.unusable[0].starts_with("template t: nodeSelector: "));
}

#[test]
fn names_that_would_be_too_long_become_hashes() {
    let fits = "n".repeat(MAX_NAME - "-auto-hep".len());
    assert_eq!(name(&fits, "", ""), format!("{fits}-auto-hep"));
    let long = format!("{fits}n");
    let hashed = name(&long, "", "");
    assert!(
        hashed.ends_with("-auto-hep") && hashed.len() < 60,
        "{hashed}"
    );
    assert!(
        hashed
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    );
    assert_ne!(hashed, name(&long, "t", ""));
    // The digest of 254 characters, as `sha256sum | basenc --base64url` gives it.
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{long}-auto-hep")));
    let kept = digest.replace(['-', '_'], "").to_lowercase();
    assert_eq!(hashed, format!("{kept}-auto-hep"));
}
