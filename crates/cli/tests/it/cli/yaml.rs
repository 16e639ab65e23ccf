//! Words of YAML that some take for booleans or numbers: text is taken as it is written, by every command.

use std::path::Path;
use std::process::{Command, Stdio};

const POLICY: &str = "\
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: n, namespace: y, labels: {country: no, version: 1.10, code: 012}}
spec: {selector: country == 'no', ingress: [{action: Deny}]}
";

fn tortie(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .arg("--data-dir")
        .arg(folder)
        .args(arguments)
        .env_clear()
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn every_command_reads_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, POLICY).unwrap();
    let file = file.to_str().unwrap();
    let ok = |arguments: &[&str]| {
        let (code, stdout, stderr) = tortie(folder.path(), arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    };
    ok(&["validate", "-f", file]);
    for verb in ["create", "apply", "replace"] {
        ok(&[verb, "-f", file]);
        let path = "jsonpath={.metadata.name} {.metadata.namespace} {.metadata.labels}";
        let found = ok(&["get", "np", "n", "-n", "y", "-o", path]);
        let labels =
            r#"{"code":"012","country":"no","projectcalico.org/tier":"default","version":"1.10"}"#;
        assert_eq!(found.trim(), format!("n y {labels}"), "{verb}");
    }
    ok(&[
        "patch",
        "np",
        "n",
        "-n",
        "y",
        "-p",
        "metadata: {labels: {country: yes, version: 2.0}}",
    ]);
    let yaml = ok(&["get", "np", "n", "-n", "y", "-o", "yaml"]);
    let again = folder.path().join("again.yaml");
    std::fs::write(&again, &yaml).unwrap();
    ok(&["apply", "-f", again.to_str().unwrap()]);
    let labels = ok(&[
        "get",
        "np",
        "n",
        "-n",
        "y",
        "-o",
        "jsonpath={.metadata.labels}",
    ]);
    assert_eq!(
        labels.trim(),
        r#"{"code":"012","country":"yes","projectcalico.org/tier":"default","version":"2.0"}"#
    );
    ok(&["delete", "-f", file]);
    assert_eq!(ok(&["get", "np", "-A", "-o", "name"]), "");
}

#[test]
fn why_takes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("world.yaml");
    let pod = |name: &str, ip: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: y, labels: {{country: no}}}}\n\
             spec: {{nodeName: n1}}\nstatus: {{podIP: {ip}, phase: Running}}\n"
        )
    };
    let text = format!(
        "{POLICY}{}{}",
        pod("on", "10.0.0.1"),
        pod("off", "10.0.0.2")
    );
    std::fs::write(&file, text).unwrap();
    let (code, stdout, stderr) = tortie(
        folder.path(),
        &[
            "why",
            "-f",
            file.to_str().unwrap(),
            "y/on",
            "y/off",
            "--protocol",
            "TCP",
            "--port",
            "80",
        ],
    );
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stdout.contains("DENIED"), "{stdout}{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn what_cannot_be_text_is_refused_with_the_way_to_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    for (from, to, expected) in [
        ("country: no", "country: null", "metadata.labels.country"),
        ("country: no", "country: ~", "in quotes"),
        (
            "[{action: Deny}]",
            "[{action: Deny, protocol: TCP, destination: {ports: [012]}}]",
            "leading zero",
        ),
    ] {
        std::fs::write(&file, POLICY.replace(from, to)).unwrap();
        let (code, _, stderr) = tortie(folder.path(), &["apply", "-f", file.to_str().unwrap()]);
        assert_eq!(code, 1, "{to}: {stderr}");
        assert!(stderr.contains(expected), "{to}: {stderr}");
    }
}
