//! `tortie cni install`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What it printed: its data, and what it told.
fn tortie(
    command: &str,
    root: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> [String; 2] {
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(["cni", command, "--root"])
        .arg(root)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}{err}");
    [out, err]
}

/// All files and folders below a folder, with their permissions.
fn tree(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        all.push(format!("{mode:o} {}", path.display()));
        if path.is_dir() {
            all.extend(tree(&path));
        }
    }
    all.sort();
    all
}

#[test]
fn what_is_installed_is_what_was_shown_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let [shown, _] = tortie("install", root, &["--dry-run"], &[]);
    assert_eq!(shown.lines().count(), 10, "{shown}");
    assert_eq!(tree(root), Vec::<String>::new());

    let variables = [
        ("CNI_MTU", "1440"),
        ("KUBERNETES_NODE_NAME", "n7"),
        ("CNI_CONF_NAME", "05-tortie.conflist"),
        ("DATASTORE_TYPE", "etcdv3"),
    ];
    let [_, told] = tortie(
        "install",
        root,
        &["--plugin-log-level", "debug"],
        &variables,
    );
    let plugin = root.join("opt/cni/bin/portmap").display().to_string();
    assert!(told.contains(&format!("wrote {plugin}\n")), "{told}");
    assert_eq!(told.lines().count(), 10, "{told}");
    let [_, told] = tortie(
        "install",
        root,
        &["--plugin-log-level", "debug"],
        &variables,
    );
    assert!(
        told.lines().all(|line| line.starts_with("unchanged ")),
        "{told}"
    );
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
    for name in [
        "calico",
        "calico-ipam",
        "loopback",
        "portmap",
        "bandwidth",
        "tuning",
        "host-local",
    ] {
        let output = Command::new(root.join("opt/cni/bin").join(name))
            .arg("-v")
            .output();
        assert_eq!(
            String::from_utf8(output.unwrap().stdout).unwrap().trim(),
            env!("CARGO_PKG_VERSION")
        );
    }
}

#[test]
fn what_was_installed_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let [_, told] = tortie("uninstall", root, &[], &[]);
    assert!(told.starts_with("none of Tortie's CNI plugins"), "{told}");
    for name in ["opt/cni/bin", "etc/cni/net.d", "etc/cni/net.d/calico-tls"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in [
        "opt/cni/bin/portmap",
        "opt/cni/bin/bridge",
        "etc/cni/net.d/87-podman.conflist",
    ] {
        fs::write(root.join(name), r#"{"plugins": [{"type": "bridge"}]}"#).unwrap();
    }
    let before = tree(root);
    fs::write(root.join("kubeconfig"), "k").unwrap();
    let kubeconfig = root.join("kubeconfig").display().to_string();
    let variables = [("DATASTORE_TYPE", "etcdv3"), ("TLS_ASSETS_DIR", "/nowhere")];
    let [_, told] = tortie("install", root, &["--kubeconfig", &kubeconfig], &variables);
    assert!(told.contains("portmap: it is there"), "{told}");
    fs::remove_file(root.join("kubeconfig")).unwrap();
    let installed = tree(root);
    assert_ne!(installed, before);

    let [shown, _] = tortie("uninstall", root, &["--dry-run"], &[]);
    assert_eq!(shown.lines().count(), 8, "{shown}");
    assert_eq!(tree(root), installed);
    let [out, told] = tortie("uninstall", root, &[], &[]);
    assert_eq!(out, "");
    assert!(
        told.lines().all(|line| line.starts_with("removed ")),
        "{told}"
    );
    let mut expected = before;
    // An empty folder for certificates is cleared away by the installation already.
    expected.retain(|line| !line.ends_with("calico-tls"));
    assert_eq!(tree(root), expected);
    tortie("uninstall", root, &[], &[]);
}
