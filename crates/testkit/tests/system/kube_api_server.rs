//! kube-apiserver starts, answers `kubectl`, takes CRDs, and leaves nothing behind.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use tortie_testkit::{KubeApiServer, Output};

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: cats.testkit.tortie.dev
spec:
  group: testkit.tortie.dev
  scope: Cluster
  names: {kind: Cat, plural: cats}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              colours: {type: integer, maximum: 3}
              name: {type: string, default: ""}
"#;

fn cat(colours: u8) -> String {
    format!(
        r#"{{
            "apiVersion": "testkit.tortie.dev/v1",
            "kind": "Cat",
            "metadata": {{"name": "t"}},
            "spec": {{"colours": {colours}, "name": ""}}
        }}"#
    )
}

#[track_caller]
fn stdout(output: tortie_testkit::Result<Output>) -> String {
    output
        .and_then(Output::into_stdout)
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn it_answers_kubectl_and_ends_with_the_value() {
    let server = KubeApiServer::start().unwrap();
    let names = stdout(server.kubectl(&["get", "namespaces", "--output=name"]));
    for name in ["namespace/default\n", "namespace/kube-system\n"] {
        assert!(names.contains(name), "{names}");
    }
    let version = stdout(server.kubectl(&["get", "--raw=/version"]));
    assert!(version.contains(r#""gitVersion": "v1.20.2""#), "{version}");

    let missing = server.kubectl(&["get", "namespace", "no-such"]).unwrap();
    assert!(
        !missing.success() && missing.stderr.contains("NotFound"),
        "{missing:?}"
    );

    let keys = server
        .etcd()
        .etcdctl(&["get", "--prefix", "--keys-only", "/registry/namespaces"]);
    assert!(keys.unwrap().contains("/registry/namespaces/default"));

    let pids = [server.pid(), server.etcd().pid()];
    let folders = [
        server.folder().to_owned(),
        server.etcd().folder().to_owned(),
    ];
    drop(server);
    for (pid, folder) in pids.iter().zip(folders) {
        assert!(!Path::new(&format!("/proc/{pid}")).exists() && !folder.exists());
    }
}

#[test]
fn it_takes_a_crd_and_validates_by_it() {
    let server = KubeApiServer::shared();
    stdout(server.kubectl_stdin(&["create", "-f", "-"], CRD));
    stdout(server.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/cats.testkit.tortie.dev",
    ]));
    let create = ["create", "--validate=false", "-f", "-"];
    let refused = server.kubectl_stdin(&create, &cat(4)).unwrap();
    assert!(
        !refused.success() && refused.stderr.contains("spec.colours"),
        "{refused:?}"
    );
    stdout(server.kubectl_stdin(&create, &cat(3)));
    assert_eq!(
        stdout(server.kubectl(&["get", "cats", "--output=name"])),
        "cat.testkit.tortie.dev/t\n"
    );
}

#[test]
fn its_kubeconfig_is_private_and_verifies_the_server() {
    let server = KubeApiServer::shared();
    let mode = fs::metadata(server.kubeconfig())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(server.kubeconfig()).unwrap();
    for value in [server.url(), server.token(), server.ca().to_str().unwrap()] {
        assert!(text.contains(value), "{value} is not in {text}");
    }
    assert!(!text.contains("insecure"), "{text}");

    // Without the authority the same request fails, so the certificate is looked at.
    let args = [
        "--server",
        server.url(),
        "--token",
        server.token(),
        "get",
        "namespaces",
    ];
    let output = Command::new("kubectl")
        .env("HOME", server.folder())
        .env("KUBECONFIG", "/dev/null")
        .args(args)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("x509"),
        "{message}"
    );
}

#[test]
fn another_token_is_refused() {
    let server = KubeApiServer::shared();
    let text = fs::read_to_string(server.kubeconfig()).unwrap();
    let path = server.folder().join("stranger");
    fs::write(&path, text.replace(server.token(), "guess")).unwrap();
    let output = server
        .kubectl(&["--kubeconfig", path.to_str().unwrap(), "get", "namespaces"])
        .unwrap();
    assert!(
        !output.success() && output.stderr.contains("Unauthorized"),
        "{output:?}"
    );
}
