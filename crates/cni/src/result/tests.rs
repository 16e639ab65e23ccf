use super::*;

fn sample() -> CniResult {
    let address = |text: &str| Address {
        interface: Some(1),
        address: text.parse().expect("an address"),
        gateway: None,
    };
    let interface = |name: &str, mac: &str, mtu, sandbox: &str| Interface {
        name: name.to_owned(),
        mac: mac.to_owned(),
        mtu,
        sandbox: sandbox.to_owned(),
    };
    CniResult {
        interfaces: vec![
            interface("cali1", "", None, ""),
            interface("eth0", "02:00:00:00:00:01", Some(1450), "/netns/a"),
        ],
        ips: vec![address("10.0.0.1/32"), address("fd00::1/128")],
        routes: vec![Route {
            destination: "10.0.0.1/26".parse().expect("a network"),
            gateway: Some("169.254.1.1".parse().expect("an address")),
            more: serde_json::Map::new(),
        }],
        dns: None,
    }
}

#[track_caller]
fn check(version: CniVersion, expected: &Value) {
    assert_eq!(sample().to_json(version), *expected, "{version}");
}

#[test]
fn the_oldest_form_has_one_address_of_each_family() {
    for version in ["0.1.0", "0.2.0"] {
        let expected = json!({
            "cniVersion": version,
            "ip4": {"ip": "10.0.0.1/32", "routes": [{"dst": "10.0.0.1/26", "gw": "169.254.1.1"}]},
            "ip6": {"ip": "fd00::1/128"},
            "dns": {}
        });
        check(version.parse().expect("a version"), &expected);
    }
}

#[test]
fn the_middle_form_names_interfaces_and_families() {
    for version in ["0.3.0", "0.3.1", "0.4.0"] {
        let expected = json!({
            "cniVersion": version,
            "interfaces": [{"name": "cali1"}, {"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/netns/a"}],
            "ips": [
                {"version": "4", "interface": 1, "address": "10.0.0.1/32"},
                {"version": "6", "interface": 1, "address": "fd00::1/128"}
            ],
            "routes": [{"dst": "10.0.0.1/26", "gw": "169.254.1.1"}],
            "dns": {}
        });
        check(version.parse().expect("a version"), &expected);
    }
}

#[test]
fn the_newest_form_names_the_largest_packet_and_no_families() {
    for version in ["1.0.0", "1.1.0"] {
        let expected = json!({
            "cniVersion": version,
            "interfaces": [
                {"name": "cali1"},
                {"name": "eth0", "mac": "02:00:00:00:00:01", "mtu": 1450, "sandbox": "/netns/a"}
            ],
            "ips": [{"interface": 1, "address": "10.0.0.1/32"}, {"interface": 1, "address": "fd00::1/128"}],
            "routes": [{"dst": "10.0.0.1/26", "gw": "169.254.1.1"}],
            "dns": {}
        });
        check(version.parse().expect("a version"), &expected);
    }
}

#[test]
fn every_form_is_read_back() {
    for version in CniVersion::ALL {
        let read = CniResult::parse(&sample().to_json(version)).expect("a result");
        let addresses =
            |result: &CniResult| result.ips.iter().map(|ip| ip.address).collect::<Vec<_>>();
        assert_eq!(addresses(&read), addresses(&sample()), "{version}");
        assert_eq!(read.routes, sample().routes, "{version}");
        if version >= CniVersion::V1_0_0 {
            assert_eq!(read.interfaces, sample().interfaces, "{version}");
        }
    }
}

#[test]
fn what_is_no_result_is_refused() {
    for text in [
        r#"{"ips": 1}"#,
        r#"{"ips": [{"address": "10.0.0.1"}]}"#,
        r#"{"ip4": {"ip": "x"}}"#,
        r#"{"cniVersion": "9", "ips": []}"#,
        r#"{"routes": [{"dst": "10.0.0.0/33"}]}"#,
        r#"{"interfaces": [1]}"#,
    ] {
        let value = serde_json::from_str(text).expect("JSON");
        assert!(CniResult::parse(&value).is_err(), "{text}");
    }
}
