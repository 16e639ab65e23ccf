//! `tortie cni install`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn tortie(root: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(["cni", "install", "--root"])
        .arg(root)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}{err}");
    out
}

#[test]
fn what_is_installed_is_what_was_shown_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("opt/cni/bin")).unwrap();
    let shown = tortie(root, &["--dry-run"], &[]);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(!root.join("etc").exists());
    assert_eq!(fs::read_dir(root.join("opt/cni/bin")).unwrap().count(), 0);

    let variables = [
        ("CNI_MTU", "1440"),
        ("KUBERNETES_NODE_NAME", "n7"),
        ("CNI_CONF_NAME", "05-tortie.conflist"),
        ("DATASTORE_TYPE", "etcdv3"),
    ];
    tortie(root, &["--plugin-log-level", "debug"], &variables);
    let file = root.join("etc/cni/net.d/05-tortie.conflist");
    let config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let calico = &config["plugins"][0];
    assert_eq!(calico["mtu"], 1440);
    assert_eq!(calico["nodename"], "n7");
    assert_eq!(calico["log_level"], "debug");
    assert_eq!(calico["datastore_type"], "etcdv3");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for name in ["calico", "calico-ipam"] {
        let output = Command::new(root.join("opt/cni/bin").join(name))
            .arg("-v")
            .output();
        assert_eq!(
            String::from_utf8(output.unwrap().stdout).unwrap().trim(),
            env!("CARGO_PKG_VERSION")
        );
    }
}
