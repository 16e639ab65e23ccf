//! Credentials that the administrator gives away.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::Person;
use crate::up::server::Up;

#[test]
fn a_file_is_for_its_owner_alone() {
    let up = Up::api_server();
    let file = up.folder().join("ann.kubeconfig");
    // One that was there and open to all is replaced.
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ann = Person::new(&up, "ann", &[]);
    assert_eq!(ann.file, file);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    ann.kubectl(&["auth", "whoami"]);
    let printed = up.tortie(&[
        "kubeconfig",
        "--user",
        "ann",
        "--server",
        "https://policy.example.org:6443",
    ]);
    assert!(
        printed.contains("server: https://policy.example.org:6443\n"),
        "{printed}"
    );
}

#[test]
fn names_of_the_system_are_given_away_only_if_that_is_meant() {
    let up = Up::api_server();
    let refused = |arguments: &[&str]| {
        let output = up.try_tortie(&[&["kubeconfig"], arguments].concat());
        assert!(!output.success() && output.stdout.is_empty(), "{output:?}");
        output.stderr
    };
    let masters = ["--user", "ann", "--group", "system:masters"];
    let told = refused(&masters);
    assert!(
        told.contains("--group system:masters") && told.contains("--allow-system-names"),
        "{told}"
    );
    let told = refused(&["--user", "system:kube-scheduler"]);
    assert!(told.contains("--user system:kube-scheduler"), "{told}");
    for arguments in [
        &["--user", ""][..],
        &["--user", "a\nb"],
        &["--user", "ann", "--expires", "soon"],
        &["--user", "ann", "--expires", "-1d"],
        &["--user", "ann", "--expires", "1s"],
        &["--user", "ann", "--expires", "9000d"],
        &["--user", "ann", "--server", "http://a"],
        &["--user", "ann", "--server", "https://a\n"],
    ] {
        refused(arguments);
    }
    let ann = Person::new(
        &up,
        "ann",
        &["--group", "system:masters", "--allow-system-names"],
    );
    ann.kubectl(&["create", "configmap", "one"]);
    // Names that mean something to YAML, and a certificate that ends soon.
    let strange = Person::new(
        &up,
        "o'neil: \"{x}\" #1",
        &["--expires", "2m", "--group", "a: b"],
    );
    let who = strange.kubectl(&["auth", "whoami"]);
    assert!(who.contains("o'neil: \"{x}\" #1"), "{who}");
    strange.refused(&["get", "pods"], "cannot list resource \"pods\"");
}

#[test]
fn certificates_name_user_groups_and_end() {
    let up = Up::api_server();
    let groups: Vec<String> = (0..12).map(|number| format!("group-{number:02}")).collect();
    let more: Vec<&str> = groups.iter().flat_map(|group| ["--group", group]).collect();
    let ann = Person::new(&up, "ann", &[&more[..], &["--expires", "12h"]].concat());
    let text = std::fs::read_to_string(&ann.file).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("client-certificate-data: "));
    let script = format!(
        "base64 -d | tee {0}/ann.crt | openssl x509 -noout -subject -checkend 39600 && openssl verify -purpose sslclient \
         -CAfile {1} {0}/ann.crt && ! openssl x509 -in {0}/ann.crt -noout -checkend 46800",
        up.folder().display(),
        up.file("ca.crt").display(),
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    let shown = up.run(shell, line.unwrap().as_bytes());
    assert!(shown.success(), "{shown:?}");
    assert!(shown.stdout.contains("ann.crt: OK"), "{shown:?}");
    for group in &groups {
        assert!(shown.stdout.contains(group.as_str()), "{shown:?}");
    }
    let who = ann.kubectl(&["auth", "whoami"]);
    assert!(
        groups.iter().all(|group| who.contains(group.as_str())),
        "{who}"
    );
}

#[test]
fn without_a_server_there_is_nobody_to_issue_them() {
    let up = Up::api_server();
    let elsewhere = up.folder().join("elsewhere");
    let mut tortie = Command::new(env!("CARGO_BIN_EXE_tortie"));
    tortie.arg("--data-dir").arg(&elsewhere);
    tortie.args(["kubeconfig", "--user", "ann"]);
    let output = up.run(tortie, b"");
    assert!(
        output.stderr.contains("start `tortie up` there first"),
        "{output:?}"
    );
    assert!(!output.success());
    assert!(!elsewhere.exists());
}
