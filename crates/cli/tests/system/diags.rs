//! `tortie node diags` and `tortie cluster diags`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use tortie_testkit::KubeApiServer;

/// In a file of the node, and nowhere else.
const SECRET: &str = "f7b3c1-hunter2";

fn tortie(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tortie"));
    let program = program.args(arguments).current_dir(folder);
    let program = program.env_remove("KUBECONFIG").env("HOME", folder);
    program.envs(variables.iter().copied()).output().unwrap()
}

/// Runs a command that makes an archive, and unpacks it. Gives the folder with what was in it.
fn unpacked(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> std::path::PathBuf {
    let output = tortie(folder, arguments, variables);
    assert!(output.status.success(), "{output:?}");
    let archive = String::from_utf8(output.stdout).unwrap();
    let archive = folder.join(archive.trim());
    let listed = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .current_dir(folder)
        .status();
    assert!(listed.unwrap().success());
    let name = archive.file_name().unwrap().to_str().unwrap();
    folder.join(name.strip_suffix(".tar.gz").unwrap())
}

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn an_archive_of_a_node_has_what_is_there_and_no_secrets() {
    let folder = TempDir::new().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let line = format!("INFO began\nETCD_PASSWORD={SECRET}\nINFO ended\n");
    fs::write(logs.join("agent.log"), line).unwrap();
    let data = folder.path().join("data");
    let data = format!("--data-dir={}", data.display());
    let policy = folder.path().join("policy.yaml");
    let text = "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: web-only}\nspec: {selector: app == 'web'}\n";
    fs::write(&policy, text).unwrap();
    let applied = tortie(folder.path(), &["apply", "-f", "policy.yaml", &data], &[]);
    assert!(applied.status.success(), "{applied:?}");

    let arguments = ["node", "diags", "--log-dir", logs.to_str().unwrap(), &data];
    let found = unpacked(folder.path(), &arguments, &[("CALICO_TOKEN", SECRET)]);
    let log = read(&found, &format!("files{}/agent.log", logs.display()));
    assert_eq!(log, "INFO began\nETCD_PASSWORD=<removed>\nINFO ended\n");
    assert!(read(&found, "recording.jsonl").contains("web-only"));
    assert!(read(&found, "network/links.txt").contains("lo:"));
    assert!(read(&found, "version.txt").contains(env!("CARGO_PKG_VERSION")));
    assert!(read(&found, "summary.txt").contains("rules/nftables.txt: "));
    let grep = Command::new("grep")
        .args(["-r", SECRET])
        .arg(&found)
        .output();
    assert_eq!(String::from_utf8(grep.unwrap().stdout).unwrap(), "");
    let replayed = tortie(&found, &["replay", "recording.jsonl"], &[]);
    assert!(replayed.status.success(), "{replayed:?}");
}

#[test]
fn a_cluster_archive_has_resources_nodes_and_what_is_missing_of_kubernetes() {
    let server = KubeApiServer::shared();
    let folder = TempDir::new().unwrap();
    let kubeconfig = server.kubeconfig().to_str().unwrap();
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "diagnosed"}}"#;
    let applied = server.kubectl_stdin(&["apply", "-f", "-"], node).unwrap();
    applied.into_stdout().unwrap();
    let variables = [("KUBECONFIG", kubeconfig), ("DATASTORE_TYPE", "kubernetes")];
    let found = unpacked(folder.path(), &["cluster", "diags"], &variables);
    assert!(read(&found, "cluster/kubernetes-nodes.yaml").contains("diagnosed"));
    // The server does not know Calico's kinds.
    let summary = read(&found, "summary.txt");
    assert!(
        summary.contains("cluster/kubernetes-version.yaml: "),
        "{summary}"
    );
    assert!(!summary.contains(server.token()), "{summary}");
}
