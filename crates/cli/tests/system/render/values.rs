//! As values.

use serde_json::{Value, json};

use crate::render::support::{Files, HOSTS};

#[test]
fn chains_sets_maps_and_routes_are_values() {
    let files = Files::of(HOSTS);
    let arguments = [
        "--node",
        "n1",
        "--interface",
        "eth0=192.168.0.1",
        "-o",
        "json",
    ];
    let text = files.render(&arguments);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["dataplane"], "nftables");
    let families = value["families"].as_array().unwrap();
    assert_eq!(families.len(), 2);
    let find = |list: &str, name: &str| {
        let list = families[0][list].as_array().unwrap().iter();
        let mut found = list.filter(|object| object["name"] == name);
        let one = found
            .next()
            .unwrap_or_else(|| panic!("no {name} in {text}"));
        one.clone()
    };
    assert_eq!(
        find("sets", "cali40this-host"),
        json!({"name": "cali40this-host", "type": "addresses", "members": ["192.168.0.1/32"]})
    );
    assert_eq!(
        find("maps", "cali-to-wl-dispatch")["chains"],
        json!({"cali1": "cali-tw-cali1"})
    );
    assert_eq!(find("chains", "cali-tw-cali1")["table"], "filter");
    let rules = &find("chains", "cali-FORWARD")["rules"];
    assert!(rules.as_array().unwrap().len() > 3, "{rules}");
    let routes = value["routes"].as_array().unwrap();
    assert_eq!(
        routes[0],
        json!({
            "destination": "10.0.0.1/32", "interface": "cali1", "scope": "link", "protocol": 3, "metric": 1024,
            "mac": "ee:ee:ee:ee:ee:ee"
        })
    );
    assert_eq!(routes[1]["destination"], "fd00::1/128");
    let one: Value =
        serde_json::from_str(&files.render(&[&arguments[..], &["--ip", "6"]].concat())).unwrap();
    assert_eq!(one["families"][0], families[1]);
    assert_eq!(one["families"].as_array().unwrap().len(), 1);
    assert_eq!(one["routes"], json!([routes[1]]));
}

#[test]
fn the_data_plane_is_the_one_that_the_parameters_ask_for() {
    let world = HOSTS.replace("logPrefix: rendered", "nftablesMode: Disabled");
    let files = Files::of(&world);
    let text = files.render(&[
        "--node",
        "n1",
        "--interface",
        "eth0=192.168.0.1",
        "-o",
        "json",
    ]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["dataplane"], "iptables");
    let hook = &value["families"][0]["hooks"][0];
    assert!(
        hook["first"][0]["text"]
            .as_str()
            .unwrap()
            .ends_with("--jump cali-PREROUTING"),
        "{hook}"
    );
}
