//! `tortie node diags` and `tortie cluster diags`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use tortie_testkit::KubeApiServer;
use tortie_testkit::machine::Machine;

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
    unpack(folder, &String::from_utf8(output.stdout).unwrap())
}

/// Unpacks the archive that a command printed the name of.
fn unpack(folder: &Path, printed: &str) -> std::path::PathBuf {
    let archive = folder.join(printed.trim());
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

fn assert_no_secrets(folder: &Path) {
    let mut grep = Command::new("grep");
    let found = grep.args(["-r", SECRET]).arg(folder).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
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
    assert_no_secrets(&found);
    let replayed = tortie(&found, &["replay", "recording.jsonl"], &[]);
    assert!(replayed.status.success(), "{replayed:?}");
}

/// A BIRD with a session that has a password.
const BIRD: &str = "\
router id 192.0.2.1;
protocol device {}
protocol bgp Mesh_192_0_2_2 {
  local 192.0.2.1 as 64512; neighbor 192.0.2.2 as 64512;
  password \"f7b3c1-hunter2\";
  ipv4 { import all; export all; };
}
";

#[test]
fn an_archive_of_a_node_has_what_bird_knows() {
    let (machine, folder) = (Machine::new().unwrap(), TempDir::new().unwrap());
    fs::write(folder.path().join("bird.cfg"), BIRD).unwrap();
    let script = format!(
        "cd {} && mkdir -p /var/run/calico /var/lib/tortie/bird && cp bird.cfg /var/lib/tortie/bird/ \
         && bird -s /var/run/calico/bird.ctl -c bird.cfg \
         && {} node diags --data-dir data --log-dir logs; birdc -s /var/run/calico/bird.ctl down >&2",
        folder.path().display(),
        env!("CARGO_BIN_EXE_tortie")
    );
    let mut command = machine.command("sh");
    command.args(["-c", &script]);
    let output = command.env("HOME", folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.trim().ends_with(".tar.gz"),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = unpack(folder.path(), &printed);
    assert!(read(&found, "bgp/bird/protocols.txt").contains("Mesh_192_0_2_2"));
    assert!(read(&found, "bgp/status.json").contains("192.0.2.2"));
    let file = read(&found, "files/var/lib/tortie/bird/bird.cfg");
    assert!(file.contains("password <removed>;"), "{file}");
    assert_no_secrets(&found);
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
