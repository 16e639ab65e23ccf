//! `tortie why` on worlds of three sizes, from YAML: how long it takes to load the world, and to answer a flow of a
//! batch. Prints `name value unit` lines.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures and fails by panicking"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Pods and policies; there are ten times as many policies as namespaces.
const SIZES: [(usize, usize); 3] = [(1_000, 100), (10_000, 1_000), (100_000, 10_000)];

const FLOWS: usize = 10_000;

/// How many kinds of application a namespace has.
const APPS: usize = 20;

struct World {
    pods: usize,
    policies: usize,
    namespaces: usize,
}

impl World {
    fn pod_name(&self, pod: usize) -> String {
        format!("ns-{}/pod-{pod}", pod % self.namespaces)
    }

    fn namespaces_yaml(&self) -> String {
        let mut text = String::new();
        for i in 0..self.namespaces {
            let team = i % 50;
            write!(
                text,
                "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: ns-{i}\n  labels:\n    team: team-{team}\n"
            )
            .unwrap();
        }
        text
    }

    fn pods_yaml(&self) -> String {
        let mut text = String::new();
        for i in 0..self.pods {
            let (namespace, app) = (i % self.namespaces, i / self.namespaces % APPS);
            let (a, b, c) = (i >> 16, i >> 8 & 255, i & 255);
            let tier = ["web", "api", "db"][i % 3];
            let node = i % (self.pods / 100);
            write!(
                text,
                "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: pod-{i}\n  namespace: ns-{namespace}\n  \
                 labels:\n    app: app-{app}\n    tier: {tier}\nspec:\n  nodeName: node-{node}\n  containers:\n  \
                 - name: main\n    image: registry.example.com/app\n    ports:\n    - name: http\n      \
                 containerPort: 8080\nstatus:\n  phase: Running\n  podIP: 10.{a}.{b}.{c}\n  podIPs:\n  \
                 - ip: 10.{a}.{b}.{c}\n"
            )
            .unwrap();
        }
        text
    }

    fn policies_yaml(&self) -> String {
        let mut text = String::new();
        for i in 0..self.policies {
            let (namespace, app, team) = (i % self.namespaces, i / self.namespaces % APPS, i % 50);
            write!(
                text,
                "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: policy-{i}\n  \
                 namespace: ns-{namespace}\nspec:\n  podSelector:\n    matchLabels:\n      app: app-{app}\n  \
                 policyTypes: [Ingress, Egress]\n  ingress:\n  - from:\n    - podSelector:\n        \
                 matchLabels:\n          tier: web\n    - namespaceSelector:\n        matchLabels:\n          \
                 team: team-{team}\n    ports:\n    - protocol: TCP\n      port: http\n  egress:\n  - to:\n    \
                 - podSelector: {{}}\n"
            )
            .unwrap();
        }
        text
    }

    /// Every second flow stays in its namespace.
    fn flows(&self) -> String {
        let mut text = String::new();
        let mut state = 1_u64;
        let mut random = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % limit
        };
        for i in 0..FLOWS {
            let from = random(self.pods);
            let mut to = random(self.pods);
            if i % 2 == 0 {
                to = to - to % self.namespaces + from % self.namespaces;
            }
            let port = [8080, 80][random(2)];
            let (from, to) = (self.pod_name(from), self.pod_name(to));
            let flow = format!("\"from\":\"{from}\",\"to\":\"{to}\",\"protocol\":\"TCP\"");
            writeln!(text, "{{{flow},\"port\":{port}}}").unwrap();
        }
        text
    }
}

/// The figure that stands before a unit in a note on stderr.
fn figure(notes: &str, start: &str, unit: &str) -> f64 {
    let line = notes.lines().find(|line| line.starts_with(start)).unwrap();
    let before = line.split(unit).next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

fn run(name: &str, folder: &Path, flows: &Path, form: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(["why", "--verbose", "-o", form, "-f"])
        .arg(folder)
        .arg("--batch")
        .arg(flows)
        .env_clear()
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{notes}");
    let load = figure(&notes, "note: loaded", " s");
    println!("why_{name}_{form}_load {load:.3} s");
    let each = figure(&notes, "note: answered", " µs a flow");
    println!("why_{name}_{form}_flow {each:.1} us");
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    for (pods, policies) in SIZES {
        let world = World {
            pods,
            policies,
            namespaces: policies / 10,
        };
        let at = folder.path().join(pods.to_string());
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join("1-namespaces.yaml"), world.namespaces_yaml()).unwrap();
        std::fs::write(at.join("2-pods.yaml"), world.pods_yaml()).unwrap();
        std::fs::write(at.join("3-policies.yaml"), world.policies_yaml()).unwrap();
        let flows = folder.path().join(format!("{pods}.jsonl"));
        std::fs::write(&flows, world.flows()).unwrap();
        for form in ["json", "text"] {
            run(
                &format!("{pods}_pods_{policies}_policies"),
                &at,
                &flows,
                form,
            );
        }
        std::fs::remove_dir_all(&at).unwrap();
    }
}
