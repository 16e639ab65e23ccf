//! What is published: a container runtime runs the image, and Debian's tools install the package.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

const TOOL: &str = env!("CARGO_BIN_EXE_tortie-release");

/// The program is built beside the tool, for tests of its own.
fn built() -> PathBuf {
    let program = Path::new(TOOL).with_file_name("tortie");
    assert!(
        program.is_file(),
        "{} is missing: cargo build -p tortie-cli",
        program.display()
    );
    program
}

/// A containerd of its own; `$1` is the folder with the image. Prints what its programs say of themselves.
const SCRIPT: &str = r#"
set -eu
folder=$1
mount --make-rprivate /
printf 'version = 2\nroot = "%s/root"\nstate = "%s/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "%s/sock"\n[ttrpc]\naddress = "%s/ttrpc"\n' \
    "$folder" "$folder" "$folder" "$folder" >"$folder/config.toml"
containerd --config "$folder/config.toml" >"$folder/log" 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon || true' EXIT
ctr() { command ctr --address "$folder/sock" "$@"; }
for _ in $(seq 200); do
    if ctr version >/dev/null 2>&1; then break; fi
    sleep 0.1
done
ctr image import --no-unpack "$folder/image.tar" >&2
run() { ctr run --rm --read-only --snapshotter native registry.test/tortie:1 "$@"; }
run of-its-own
run of-tortie tortie --version
run of-bird bird --version 2>&1
"#;

fn release(args: &[&str]) -> String {
    let ran = Command::new(TOOL).args(args).output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap()
}

/// The program without what debuggers read, which is most of it.
fn stripped(folder: &Path) -> String {
    let file = folder.join("tortie");
    output(Command::new("strip").arg("-o").arg(&file).arg(built()));
    file.to_str().unwrap().to_owned()
}

#[track_caller]
fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {said}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_runtime_runs_the_image() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("image.tar");
    let program = stripped(folder.path());
    let make = |output: &'static str| {
        let output = folder.path().join(output).to_str().unwrap().to_owned();
        let args = [
            "image",
            "--program",
            &program,
            "--name",
            "registry.test/tortie:1",
            "--add",
            "bird",
            "--time",
            "1700000000",
            "--output",
        ];
        release(&[&args[..], &[&output]].concat())
    };
    let first = make("image.tar");
    let again = make("again.tar");
    let digest = |printed: &str| printed.split(' ').next().unwrap().to_owned();
    assert_eq!(digest(&first), digest(&again));
    assert!(file.is_file());

    let folder = folder.path().to_str().unwrap();
    let said = output(Command::new("unshare").args(["--mount", "sh", "-c", SCRIPT, "sh", folder]));
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        said.starts_with("Kubernetes networking and network policy"),
        "{said}"
    );
    assert!(said.contains(&format!("\ntortie {version}\n")), "{said}");
    assert!(said.contains("BIRD version 2."), "{said}");
}

#[test]
fn debian_installs_the_package() {
    let folder = tempdir().unwrap();
    let package = folder.path().join("tortie.deb");
    let program = stripped(folder.path());
    release(&[
        "deb",
        "--program",
        &program,
        "--output",
        package.to_str().unwrap(),
    ]);
    let named = output(Command::new("dpkg-deb").arg("--info").arg(&package));
    assert!(named.contains("Package: tortie\n"), "{named}");
    let root = folder.path().join("root");
    output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    let said = output(Command::new(root.join("usr/bin/tortie")).arg("--version"));
    assert_eq!(said, format!("tortie {}\n", env!("CARGO_PKG_VERSION")));
    for file in [
        "usr/share/man/man1/tortie-why.1",
        "usr/share/bash-completion/completions/tortie",
        "usr/share/doc/tortie/copyright",
    ] {
        assert!(fs::metadata(root.join(file)).unwrap().len() > 100, "{file}");
    }
    let units = root.join("usr/lib/systemd/system");
    for unit in [
        "tortie.service",
        "tortie-agent.service",
        "tortie-bgp.service",
    ] {
        let text = fs::read_to_string(units.join(unit)).unwrap();
        assert!(text.contains("ExecStart=/usr/bin/tortie "), "{text}");
        // The program is looked for where it will be.
        let local = folder.path().join(unit);
        fs::write(
            &local,
            text.replace("/usr/bin/tortie", built().to_str().unwrap()),
        )
        .unwrap();
        output(Command::new("systemd-analyze").arg("verify").arg(&local));
    }
}

#[test]
fn what_is_inside_is_listed_with_its_licence() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("sbom.json");
    release(&["sbom", "--output", file.to_str().unwrap()]);
    let document: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let packages = document["packages"].as_array().unwrap();
    let has = |name: &str| packages.iter().any(|package| package["name"] == name);
    assert!(has("tortie-engine") && has("redb") && has("tokio"));
    // What only tests need is not in the program.
    assert!(!has("proptest") && !has("tortie-testkit"));
    for package in packages {
        assert_ne!(package["licenseDeclared"], "NOASSERTION", "{package}");
    }
}
