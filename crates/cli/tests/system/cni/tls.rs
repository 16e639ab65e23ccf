//! The plugin with an etcd that wants to see a certificate.

use std::process::Command;

use serde_json::{Value, json};
use tortie_testkit::{Etcd, EtcdConfig, Tls};

use crate::cni::site::{Container, POOLS, Site, addresses, run_in};

/// A file's path as the configuration has it.
fn file(path: Option<&std::path::Path>) -> Value {
    json!(path.unwrap())
}

#[test]
fn containers_are_connected_with_an_etcd_behind_certificates() {
    let mut site = Site::empty();
    let config = EtcdConfig {
        tls: Tls::Mutual,
        ..EtcdConfig::default()
    };
    let etcd = site.node.namespace().run(|| Etcd::start_with(&config));
    let etcd = etcd.unwrap().unwrap();
    let mut apply = Command::new(env!("CARGO_BIN_EXE_tortie"));
    apply
        .args(["apply", "-f", "-"])
        .env_clear()
        .env("ETCD_ENDPOINTS", etcd.endpoint())
        .env("ETCD_CA_CERT_FILE", etcd.ca().unwrap())
        .env("ETCD_CERT_FILE", etcd.cert().unwrap())
        .env("ETCD_KEY_FILE", etcd.key().unwrap());
    run_in(site.node.namespace(), apply, POOLS);

    let settings = json!({
        "etcd_endpoints": etcd.endpoint(), "etcd_ca_cert_file": file(etcd.ca()),
        "etcd_cert_file": file(etcd.cert()), "etcd_key_file": file(etcd.key()),
    });
    let container = Container::of_pod("id-1", "shop", "web");
    let found = addresses(&site.calico("ADD", &container, &settings).unwrap());
    assert!(found[0].starts_with("10.65.0."), "{found:?}");
    site.assert_reachable(&container, &found[0]);
    site.calico("DEL", &container, &settings).unwrap();
    assert_eq!(site.interfaces(), Vec::<String>::new());
    let blocks = ["get", "--prefix", "--keys-only", "/calico/ipam/v2/handle/"];
    let handles = site.node.namespace().run(|| etcd.etcdctl(&blocks));
    assert_eq!(handles.unwrap().unwrap().trim(), "");

    // Without a certificate, and with one of an authority that nobody knows here.
    let unknown = json!({"etcd_endpoints": etcd.endpoint(), "etcd_ca_cert_file": file(etcd.ca())});
    let strange = json!({
        "etcd_endpoints": etcd.endpoint(), "etcd_ca_cert_file": file(etcd.cert()),
        "etcd_cert_file": file(etcd.cert()), "etcd_key_file": file(etcd.key()),
    });
    for wrong in [unknown, strange] {
        let (code, message) = site.calico("ADD", &container, &wrong).unwrap_err();
        assert_eq!(code, 11, "{message}");
        assert!(message.contains(etcd.endpoint()), "{message}");
    }
    let missing = json!({"etcd_endpoints": etcd.endpoint(), "etcd_ca_cert_file": "/no/such/file"});
    let (_, message) = site.calico("ADD", &container, &missing).unwrap_err();
    assert!(message.contains("/no/such/file"), "{message}");
    assert_eq!(site.interfaces(), Vec::<String>::new());
}
