//! Every command of README.md, run as it stands there.
//!
//! What a block of commands needs is said by a comment before it: `<!-- run: cluster -->`. Blocks without one are for a machine
//! with nothing on it. Those of one kind are one session, one after the other.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;
use tortie_kernel::namespace;
use tortie_testkit::KubeApiServer;
use tortie_testkit::machine::Machine;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const NODE: &str = "n1";

/// Denied connections are answers, not failures; and the program is built already.
const PRELUDE: &str = r#"
set -euo pipefail
# What still runs at the end would keep the output open.
finish() {
    command tortie down >/dev/null 2>&1 || true
    for job in $(jobs -p); do pkill --parent "$job" || true; done
    wait
    # BIRD outlives who started it.
    birdc -s /var/run/calico/bird.ctl down >/dev/null 2>&1 || true
}
trap finish EXIT
tortie() {
    local code=0
    command tortie "$@" || code=$?
    if [[ $code == 2 && $1 =~ ^(why|pod)$ ]]; then code=0; fi
    return $code
}
cargo() {
    [[ "$1 $2 $3" == "run --release --" ]]
    shift 3
    tortie "$@"
}
"#;

/// A block of commands.
struct Block {
    /// What it needs.
    needs: String,
    commands: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut needs = "machine".to_owned();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(named) = line.strip_prefix("<!-- run: ") {
            named.trim_end_matches(" -->").clone_into(&mut needs);
        } else if line == "```sh" {
            let commands = lines.by_ref().take_while(|line| *line != "```");
            let commands = commands.collect::<Vec<_>>().join("\n");
            let needs = std::mem::replace(&mut needs, "machine".to_owned());
            blocks.push(Block { needs, commands });
        }
    }
    blocks
}

/// The session of one kind of blocks.
fn session(needs: &str) -> String {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let all = blocks(&readme);
    let known = ["machine", "cluster", "host", "this"];
    for block in &all {
        assert!(known.contains(&&*block.needs), "{}", block.needs);
    }
    let wanted = all.into_iter().filter(|block| block.needs == needs);
    let commands: Vec<String> = wanted.map(|block| block.commands).collect();
    assert!(!commands.is_empty(), "{needs}");
    commands.join("\n")
}

/// Runs a session on a machine, and gives what it printed. Whatever still runs then is ended.
#[track_caller]
fn run(machine: &Machine, folder: &TempDir, session: &str, variables: &[(&str, &str)]) -> String {
    let program = folder.path().join("tortie");
    if !program.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tortie"), &program).unwrap();
    }
    let covered = "for folder in /etc/systemd/system /etc/cni /opt/cni; do\n\
                   mkdir -p $folder && mount -t tmpfs none $folder\ndone\n";
    let script = format!("cd {ROOT}\n{covered}{PRELUDE}{session}\n");
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.path().display());
    let mut command: Command = machine.command("unshare");
    command
        .args(["--mount", "bash", "-c", &script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.path())
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{session}\n{stdout}\n{stderr}");
    stdout
}

#[test]
fn a_machine_with_nothing_on_it_gets_a_policy_of_ones_own() {
    let (machine, folder) = (Machine::new().unwrap(), TempDir::new().unwrap());
    let told = run(&machine, &folder, &session("machine"), &[]);
    let outcomes: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once(": shop/").map(|(outcome, _)| outcome))
        .filter(|outcome| outcome.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    assert_eq!(
        outcomes,
        ["CONNECTED", "TIMED OUT", "DENIED", "CONNECTED"],
        "{told}"
    );
    assert!(told.contains("verdict agrees with packets"), "{told}");
    assert!(
        told.contains("a policy in tier default for ingress of shop/web must allow TCP 80"),
        "{told}"
    );
}

#[test]
fn a_host_is_protected() {
    let (machine, folder) = (Machine::new().unwrap(), TempDir::new().unwrap());
    let told = run(&machine, &folder, &session("host"), &[("NODENAME", NODE)]);
    assert!(told.contains("no drift"), "{told}");
}

#[test]
fn a_node_of_a_cluster_is_set_up() {
    let (machine, folder) = (Machine::new().unwrap(), TempDir::new().unwrap());
    let uplink = "ip link add uplink type veth peer name far && ip link set far up && ip link set uplink up && ip address add 192.0.2.1/24 dev uplink \
                  && ip route add default dev uplink";
    let made = machine.command("sh").args(["-c", uplink]).status();
    assert!(made.unwrap().success());
    let network = format!("/proc/{}/ns/net", machine.holder());
    let network = namespace::open(Path::new(&network)).unwrap();
    let in_network = |work: &(dyn Fn() -> KubeApiServer + Sync)| {
        namespace::run_in(std::os::fd::AsFd::as_fd(&network), work).unwrap()
    };
    let server = in_network(&|| KubeApiServer::start().unwrap());
    let kubeconfig = server.kubeconfig().display().to_string();
    let variables = [("KUBECONFIG", &*kubeconfig), ("NODENAME", NODE)];
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    let prepared = format!("kubectl create -f - <<< '{node}'");
    run(&machine, &folder, &prepared, &variables);
    let told = run(&machine, &folder, &session("cluster"), &variables);
    assert!(told.contains("\nWell\n"), "{told}");
}
