//! `tortie apply` of many policies to each datastore, as a user would run it. Prints `name value unit` lines.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures and fails by panicking"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use tortie_testkit::{Etcd, KubeApiServer};

const SIZES: [usize; 3] = [100, 1_000, 10_000];

fn policies(count: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        write!(
            text,
            "---\napiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata:\n  name: policy-{i}\nspec:\n  order: {i}\n  \
             selector: app == 'app-{i}'\n  types: [Ingress]\n  ingress:\n  - action: Allow\n    protocol: TCP\n    \
             source:\n      selector: role == 'client'\n    destination:\n      ports: [80, 443]\n"
        )
        .unwrap();
    }
    text
}

fn apply(name: &str, file: &Path, count: usize, options: &[&str], variables: &[(&str, String)]) {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(["apply", "-f"])
        .arg(file)
        .args(options)
        .env_clear()
        .envs(variables.iter().cloned())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let seconds = start.elapsed().as_secs_f64();
    println!("apply_{name}_{count} {seconds:.3} s");
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let rate = count as f64 / seconds;
    println!("apply_{name}_{count}_rate {rate:.0} resources/s");
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    for count in SIZES {
        let file = folder.path().join(format!("{count}.yaml"));
        std::fs::write(&file, policies(count)).unwrap();

        let data = folder.path().join(format!("{count}.redb"));
        apply(
            "embedded",
            &file,
            count,
            &["--data-file", &data.display().to_string()],
            &[],
        );

        let etcd = Etcd::start().unwrap();
        apply(
            "etcd",
            &file,
            count,
            &[],
            &[("ETCD_ENDPOINTS", etcd.endpoint().to_owned())],
        );

        let server = KubeApiServer::start().unwrap();
        let variables = [("KUBECONFIG", server.kubeconfig().display().to_string())];
        let crds = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .arg("crds")
            .output()
            .unwrap();
        let crds = String::from_utf8(crds.stdout).unwrap();
        assert!(
            server
                .kubectl_stdin(&["apply", "-f", "-"], &crds)
                .unwrap()
                .success()
        );
        assert!(
            server
                .kubectl(&["wait", "--for=condition=Established", "crd", "--all"])
                .unwrap()
                .success()
        );
        apply("kubernetes", &file, count, &[], &variables);
    }
}
