//! `bgp render`: what BIRD is told, from files and from a datastore.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use tortie_testkit::{Etcd, bird_statements, read_labels_as_yaml_1_1, vector_folders};

use crate::cli::program::Tortie;

const FILES: [&str; 6] = [
    "bird.cfg",
    "bird_aggr.cfg",
    "bird_ipam.cfg",
    "bird6.cfg",
    "bird6_aggr.cfg",
    "bird6_ipam.cfg",
];

const NODES: &str = "\
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: node1}
spec: {bgp: {ipv4Address: 192.0.2.1/24}}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: node2}
spec: {bgp: {ipv4Address: 192.0.2.2/24}}
";

const PEER_WITH_PASSWORD: &str = "\
---
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: rack}
spec:
  peerIP: 192.0.2.254
  asNumber: 65000
  password: {secretKeyRef: {name: passwords, key: rack}}
";

const SECRET: &str = "\
---
apiVersion: v1
kind: Secret
metadata: {name: passwords, namespace: kube-system}
stringData: {rack: correct horse}
";

/// With the variables of the vector.
fn tortie(folder: &Path) -> Tortie {
    let text = fs::read_to_string(folder.join("env")).unwrap_or_default();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("CALICO_ROUTER_ID="));
    let variables = value.map(|value| ("CALICO_ROUTER_ID", value.to_owned()));
    Tortie::with_variables(variables.into_iter().collect())
}

/// The resources of a vector, one JSON document each.
fn input(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("input.yaml")).unwrap();
    let mut documents = tortie_api::yaml::parse(&text).unwrap();
    documents.iter_mut().for_each(read_labels_as_yaml_1_1);
    let documents: Vec<String> = documents.iter().map(ToString::to_string).collect();
    documents.join("\n---\n")
}

fn render_stdin(input: &str) -> crate::cli::program::Output {
    let arguments = ["bgp", "render", "--node", "node1", "-f", "-"];
    Tortie::with_variables(Vec::new()).run_with_input(&arguments, input)
}

#[test]
fn files_for_bird_1_6_are_confds() {
    for folder in vector_folders("bgp") {
        let out = TempDir::new().unwrap();
        let to = out.path().display().to_string();
        let arguments = ["bgp", "render", "--node", "node1", "--syntax", "bird1"];
        let arguments = [&arguments[..], &["-f", "-", "--out", &to]].concat();
        tortie(&folder).ok_with_input(&arguments, &input(&folder));
        for file in FILES {
            let found = out.path().join(file);
            let mode = fs::metadata(&found).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "there may be passwords in {file}");
            let [expected, found] = [folder.join(file), found]
                .map(|path| bird_statements(&fs::read_to_string(path).unwrap()));
            assert_eq!(found, expected, "{}", folder.join(file).display());
        }
    }
}

#[test]
fn a_datastore_says_the_same_as_files() {
    let folders = vector_folders("bgp");
    let mut of_interest = folders.iter();
    let folder = of_interest
        .find(|folder| folder.ends_with("24-service-cidrs"))
        .or(folders.first())
        .unwrap();
    let input = folder.join("input.yaml").display().to_string();
    let etcd = Etcd::start().unwrap();
    let with_etcd = Tortie::with_variables(vec![
        ("DATASTORE_TYPE", "etcdv3".to_owned()),
        ("ETCD_ENDPOINTS", etcd.endpoint().to_owned()),
    ]);
    with_etcd.ok(&["apply", "-f", &input]);
    let arguments = ["bgp", "render", "--node", "node1"];
    let from_etcd = with_etcd.ok(&arguments);
    let from_files = tortie(folder).ok(&[&arguments[..], &["-f", &input]].concat());
    assert_eq!(from_etcd, from_files);
    assert!(from_etcd.contains("protocol bgp "), "{from_etcd}");
}

#[test]
fn passwords_are_those_of_secrets_and_without_one_there_is_no_session() {
    let with = render_stdin(&format!("{NODES}{PEER_WITH_PASSWORD}{SECRET}"));
    assert_eq!(with.code, 0, "{}", with.stderr);
    assert!(with.stdout.contains("  password \"correct horse\";"));
    assert!(!with.stderr.contains("correct horse"), "{}", with.stderr);

    let without = render_stdin(&format!("{NODES}{PEER_WITH_PASSWORD}"));
    assert_eq!(without.code, 0, "{}", without.stderr);
    assert!(!without.stdout.contains("192.0.2.254"));
    assert!(without.stdout.contains("protocol bgp Mesh_192_0_2_2 "));
    let warning = "warning: BGPPeer(rack): spec.password.secretKeyRef: there is no secret `passwords` with the key `rack`";
    assert!(without.stderr.contains(warning), "{}", without.stderr);
}

#[test]
fn what_is_not_valid_is_named_with_its_place_and_field() {
    let output = render_stdin(&NODES.replace("192.0.2.2/24", "192.0.2.300/24"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let expected =
        "warning: stdin:9: document 2: Node(node2): spec.bgp.ipv4Address = \"192.0.2.300/24\"";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let output =
        render_stdin(&NODES.replace("ipv4Address: 192.0.2.2/24", "ipv4Adress: 192.0.2.2/24"));
    assert_eq!((output.code, &*output.stdout), (1, ""));
    let expected = "stdin:9: document 2: Node(node2): spec.bgp.ipv4Adress";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn a_node_that_nobody_knows_is_named() {
    let output = render_stdin(&NODES.replace("name: node1", "name: node3"));
    assert_eq!(output.code, 0);
    let expected = "warning: Node(node1): metadata.name: there is no such Node";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}
