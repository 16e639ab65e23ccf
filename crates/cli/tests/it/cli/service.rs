//! The unit for systemd, and what a node's start leaves to the cluster.

use std::path::Path;
use std::process::Command;

use crate::cli::program::{Output, Tortie};

/// How exposed systemd may find the service, in tenths: what is left is root in the machine's own network.
const EXPOSURE: &str = "27";

/// The unit, which systemd must have nothing to say against.
#[track_caller]
fn unit(options: &[&str], variables: Vec<(&'static str, String)>) -> String {
    let arguments = [options, &["up", "--print-systemd"]].concat();
    let Output {
        code,
        stdout,
        stderr,
    } = Tortie::with_variables(variables).run(&arguments);
    assert_eq!(code, 0, "{stderr}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tortie.service");
    std::fs::write(&file, &stdout).unwrap();
    analyze(&["verify", "--man=no"], &file);
    analyze(
        &[
            "security",
            "--offline=true",
            "--threshold",
            EXPOSURE,
            "--no-pager",
        ],
        &file,
    );
    stdout
}

#[track_caller]
fn analyze(arguments: &[&str], file: &Path) {
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{arguments:?}: {text}");
    if arguments.contains(&"verify") {
        assert_eq!(text, "");
    }
}

#[track_caller]
fn command(unit: &str) -> Vec<&str> {
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    line.unwrap().split(' ').skip(1).collect()
}

#[test]
fn the_unit_is_for_the_datastore_that_was_named() {
    let text = unit(&["--data-dir", "/srv/tortie"], Vec::new());
    let expected = [
        "up",
        "--datastore=embedded",
        "--data-dir=/srv/tortie",
        "--listen=127.0.0.1:6443",
    ];
    assert_eq!(command(&text), expected);
    assert!(text.contains("ReadWritePaths=/run /srv/tortie\n"), "{text}");
    assert!(
        text.contains("Before=kubelet.service containerd.service"),
        "{text}"
    );

    let text = unit(&["--data-file", "/srv/a b/x.redb"], Vec::new());
    assert!(text.contains("\"--data-file=/srv/a b/x.redb\""), "{text}");

    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: one\ncontexts:\n\
        - {name: one, context: {cluster: c, user: u}}\n- {name: two, context: {cluster: c, user: u}}\n\
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).unwrap();
    let file = file.display().to_string();
    let variables = vec![
        ("KUBECONFIG", file.clone()),
        ("K8S_API_TOKEN", "hush".to_owned()),
    ];
    let text = unit(&["--datastore", "kubernetes"], variables.clone());
    let expected = [
        "up",
        "--datastore=kubernetes",
        "--data-dir=/var/lib/tortie",
        "--context=one",
    ];
    assert_eq!(command(&text), expected);
    assert!(
        text.contains(&format!("Environment=KUBECONFIG={file}\n")),
        "{text}"
    );
    assert!(
        text.contains("# K8S_API_TOKEN is secret") && !text.contains("hush"),
        "{text}"
    );
    assert!(!text.contains("Before="), "{text}");
    let text = unit(&["--context", "two"], variables);
    assert!(command(&text).contains(&"--context=two"), "{text}");

    let text = unit(
        &[],
        vec![("ETCD_ENDPOINTS", "http://127.0.0.1:2379".to_owned())],
    );
    assert!(command(&text).contains(&"--datastore=etcdv3"), "{text}");
    assert!(
        text.contains("Environment=ETCD_ENDPOINTS=http://127.0.0.1:2379\n"),
        "{text}"
    );
}

#[test]
fn what_the_cluster_sets_holds_on_a_node_after_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let name_file = folder.path().join("nodename").display().to_string();
    let variables = vec![
        ("XDG_DATA_HOME", folder.path().display().to_string()),
        ("CALICO_NODENAME_FILE", name_file),
        ("IP", "192.0.2.7/24".to_owned()),
    ];
    let tortie = Tortie::with_variables(variables);
    let ok = |arguments: &[&str]| {
        let Output {
            code,
            stdout,
            stderr,
        } = tortie.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    };
    ok(&["node", "startup", "--node", "n1"]);
    let change = "spec: {nftablesMode: Disabled, floatingIPs: Enabled}";
    ok(&["patch", "felixconfiguration", "default", "-p", change]);
    let text = ok(&["agent", "--node", "n1", "--explain-config"]);
    let value = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.to_lowercase().starts_with(name));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(value("nftablesmode "), "Disabled", "{text}");
    assert_eq!(value("floatingips "), "Enabled", "{text}");
}
