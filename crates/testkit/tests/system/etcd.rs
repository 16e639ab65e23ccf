//! etcd starts, serves as configured, and leaves nothing behind.

use std::{fs, path::Path, process::Command};

use tortie_testkit::{Etcd, EtcdConfig, Tls};

/// Runs `etcdctl` with exactly these flags, and gives what it wrote and whether it succeeded.
fn etcdctl(etcd: &Etcd, args: &[&str]) -> (bool, String) {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args([
            "--endpoints",
            etcd.endpoint(),
            "--command-timeout=2s",
            "--dial-timeout=2s",
        ])
        .args(args)
        .output()
        .expect("etcdctl is installed");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn text(path: Option<&Path>) -> &str {
    path.and_then(Path::to_str)
        .expect("it is configured, and its name is plain")
}

/// A value that was put is got.
#[track_caller]
fn check(etcd: &Etcd) {
    let put = etcd.etcdctl(&["put", "/calico/a", "one"]);
    assert_eq!(put.expect("put succeeds"), "OK\n");
    let got = etcd.etcdctl(&["get", "/calico/a"]);
    assert_eq!(got.expect("get succeeds"), "/calico/a\none\n");
}

#[test]
fn plain_etcd_keeps_values_and_says_where_it_is() {
    let etcd = Etcd::start().unwrap();
    check(&etcd);
    assert!(
        etcd.endpoint().starts_with("http://127.0.0.1:"),
        "{}",
        etcd.endpoint()
    );
    assert_eq!((etcd.ca(), etcd.cert(), etcd.key()), (None, None, None));
    assert_eq!((etcd.username(), etcd.password()), (None, None));
    assert!(
        etcd.log()
            .unwrap()
            .contains("ready to serve client requests")
    );
}

#[test]
fn process_and_folder_go_with_the_value() {
    let etcd = Etcd::start().unwrap();
    let (process, folder) = (format!("/proc/{}", etcd.pid()), etcd.folder().to_owned());
    let name = fs::read_to_string(format!("{process}/comm")).unwrap();
    assert_eq!(name, "etcd\n");
    assert!(folder.join("data").is_dir());
    drop(etcd);
    assert!(!Path::new(&process).exists());
    assert!(!folder.exists());
}

#[test]
fn several_run_side_by_side() {
    let (one, two) = (Etcd::start().unwrap(), Etcd::start().unwrap());
    one.etcdctl(&["put", "key", "one"]).unwrap();
    assert_eq!(two.etcdctl(&["get", "key"]).unwrap(), "");
}

#[test]
fn the_shared_one_is_always_the_same() {
    check(Etcd::shared());
    assert_eq!(Etcd::shared().pid(), Etcd::shared().pid());
}

#[test]
fn a_compacted_revision_is_gone() {
    let etcd = Etcd::start().unwrap();
    for value in ["one", "two", "three"] {
        etcd.etcdctl(&["put", "key", value]).unwrap();
    }
    assert_eq!(
        etcd.etcdctl(&["get", "--rev=2", "key"]).unwrap(),
        "key\none\n"
    );
    etcd.compact(4).unwrap();
    let message = etcd
        .etcdctl(&["get", "--rev=2", "key"])
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("required revision has been compacted"),
        "{message}"
    );
}

#[test]
fn server_tls_is_verified_and_wants_no_client_certificate() {
    let config = EtcdConfig {
        tls: Tls::Server,
        ..EtcdConfig::default()
    };
    let etcd = Etcd::start_with(&config).unwrap();
    check(&etcd);
    assert!(
        etcd.endpoint().starts_with("https://127.0.0.1:"),
        "{}",
        etcd.endpoint()
    );
    assert_eq!((etcd.cert(), etcd.key()), (None, None));
    let (ok, output) = etcdctl(&etcd, &["get", "key"]);
    assert!(
        !ok,
        "a client that does not know the authority was content: {output}"
    );
}

#[test]
fn mutual_tls_refuses_a_client_without_a_certificate() {
    let config = EtcdConfig {
        tls: Tls::Mutual,
        ..EtcdConfig::default()
    };
    let etcd = Etcd::start_with(&config).unwrap();
    check(&etcd);
    let ca = ["--cacert", text(etcd.ca()), "get", "/calico/a"];
    let (ok, output) = etcdctl(&etcd, &ca);
    assert!(!ok, "a client without a certificate was let in: {output}");
    let pair = ["--cert", text(etcd.cert()), "--key", text(etcd.key())];
    let (ok, output) = etcdctl(&etcd, &[&pair[..], &ca].concat());
    assert!(ok, "a client with a certificate was refused: {output}");
}

#[test]
fn authentication_refuses_a_wrong_password_and_none() {
    let config = EtcdConfig {
        password: Some("se:same".to_owned()),
        ..EtcdConfig::default()
    };
    let etcd = Etcd::start_with(&config).unwrap();
    check(&etcd);
    assert_eq!(
        (etcd.username(), etcd.password()),
        (Some("root"), Some("se:same"))
    );
    let get = ["get", "/calico/a"];
    let (ok, output) = etcdctl(&etcd, &get);
    assert!(!ok && output.contains("user name is empty"), "{output}");
    let (ok, output) = etcdctl(&etcd, &[&["--user", "root:wrong"][..], &get].concat());
    assert!(
        !ok && output.contains("invalid user ID or password"),
        "{output}"
    );
    let (ok, output) = etcdctl(&etcd, &[&["--user", "root:se:same"][..], &get].concat());
    assert!(ok, "{output}");
}

#[test]
fn tls_and_authentication_go_together() {
    let config = EtcdConfig {
        tls: Tls::Mutual,
        password: Some("sesame".to_owned()),
    };
    let etcd = Etcd::start_with(&config).unwrap();
    check(&etcd);
    let files = ["--cacert", text(etcd.ca()), "--cert", text(etcd.cert())];
    let args = [&files[..], &["--key", text(etcd.key()), "get", "/calico/a"]].concat();
    let (ok, output) = etcdctl(&etcd, &args);
    assert!(!ok, "a certificate without a password was enough: {output}");
}
