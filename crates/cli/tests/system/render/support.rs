//! Worlds, the program, and what the drivers make of the same worlds.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tortie_agent::engine_config;
use tortie_config::{Sources, resolve};
use tortie_dataplane::iptables::{IptablesDriver, Options};
use tortie_dataplane::nftables::NftablesDriver;
use tortie_dataplane::{Dataplane, Driver, InterfaceState};
use tortie_engine::message::Encapsulation;
use tortie_engine::record::Event;
use tortie_engine::{Engine, Message, Update};
use tortie_rules::{Dataplane as Kind, IpVersion};

/// Host endpoints of all kinds with policies of all kinds, pools, sets of networks, and other parameters than usual.
pub(crate) const HOSTS: &str = "\
apiVersion: projectcalico.org/v3
kind: FelixConfiguration
metadata: {name: default}
spec:
  defaultEndpointToHostAction: Return
  failsafeInboundHostPorts: [{protocol: TCP, port: 22, net: 192.168.0.0/16}, {protocol: UDP, port: 68}]
  logPrefix: rendered
  natPortRange: '10000:20000'
  nftablesMarkMask: 0xff000000
  iptablesMarkMask: 0xff000000
  serviceLoopPrevention: Drop
---
apiVersion: projectcalico.org/v3
kind: BGPConfiguration
metadata: {name: default}
spec: {serviceClusterIPs: [{cidr: 10.96.0.0/12}, {cidr: fd96::/112}]}
---
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: v4}
spec: {cidr: 10.0.0.0/16, natOutgoing: true}
---
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: v6}
spec: {cidr: 'fd00::/64', natOutgoing: true}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
spec: {addresses: [{address: 192.168.0.1, type: InternalIP}]}
---
apiVersion: projectcalico.org/v3
kind: HostEndpoint
metadata: {name: all, labels: {role: host}}
spec: {node: n1, interfaceName: '*'}
---
apiVersion: projectcalico.org/v3
kind: HostEndpoint
metadata: {name: eth1, labels: {role: edge}}
spec: {node: n1, interfaceName: eth1, expectedIPs: [172.16.0.1]}
---
apiVersion: projectcalico.org/v3
kind: HostEndpoint
metadata: {name: by-address, labels: {role: edge}}
spec: {node: n1, expectedIPs: [192.168.0.1]}
---
apiVersion: projectcalico.org/v3
kind: WorkloadEndpoint
metadata: {name: n1-k8s-web-eth0, namespace: shop, labels: {app: web, projectcalico.org/namespace: shop, projectcalico.org/orchestrator: k8s}}
spec:
  node: n1
  orchestrator: k8s
  pod: web
  endpoint: eth0
  interfaceName: cali1
  mac: ee:ee:ee:ee:ee:ee
  ipNetworks: [10.0.0.1/32, 'fd00::1/128']
  profiles: [kns.shop]
  ports: [{name: http, protocol: TCP, port: 8080}]
---
apiVersion: projectcalico.org/v3
kind: Profile
metadata: {name: kns.shop}
spec: {ingress: [{action: Allow}], egress: [{action: Allow}]}
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkSet
metadata: {name: offices, labels: {who: offices}}
spec: {nets: [203.0.113.0/24, 198.51.100.7/32, 0.0.0.0/0, '2001:db8::/48']}
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: untracked}
spec:
  selector: role == 'edge'
  doNotTrack: true
  applyOnForward: true
  ingress: [{action: Allow, protocol: UDP, destination: {ports: [53, '1000:2000']}}]
  egress: [{action: Allow, protocol: UDP, source: {ports: [53]}}]
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: before-translation}
spec:
  selector: role == 'edge'
  preDNAT: true
  applyOnForward: true
  ingress: [{action: Deny, source: {nets: [198.51.100.0/24, 203.0.113.0/24]}}]
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: forwarded}
spec:
  selector: has(role)
  applyOnForward: true
  types: [Ingress, Egress]
  ingress:
  - {action: Log, source: {selector: who == 'offices'}}
  - {action: Allow, protocol: TCP, source: {notSelector: who == 'offices'}, destination: {selector: app == 'web', ports: [http]}}
  - {action: Pass, protocol: ICMP, icmp: {type: 8, code: 0}}
  egress: [{action: Allow}]
---
apiVersion: projectcalico.org/v3
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  selector: app == 'web'
  types: [Ingress]
  ingress:
  - {action: Allow, protocol: TCP, source: {namespaceSelector: global(), selector: who == 'offices', notNets: [203.0.113.9/32]}, destination: {ports: [http, 443]}}
  - {action: Deny, notICMP: {type: 3}, protocol: ICMP}
";

/// What the program said.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Files with a world.
pub(crate) struct Files {
    _folder: tempfile::TempDir,
    paths: Vec<PathBuf>,
    recording: PathBuf,
}

impl Files {
    /// A world given as text.
    pub(crate) fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.yaml");
        std::fs::write(&path, text).unwrap();
        Self::new(folder, vec![path])
    }

    /// The recipes, each with its world.
    pub(crate) fn recipes() -> Vec<(String, Self)> {
        let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/network-policies");
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&recipes).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.extension().is_some_and(|end| end == "yaml") && name != "world.yaml" {
                let folder = tempfile::tempdir().unwrap();
                let paths = vec![recipes.join("world.yaml"), path];
                all.push((name, Self::new(folder, paths)));
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(all.len() >= 18, "only {} recipes", all.len());
        all
    }

    fn new(folder: tempfile::TempDir, paths: Vec<PathBuf>) -> Self {
        let recording = folder.path().join("recording.jsonl");
        Self {
            _folder: folder,
            paths,
            recording,
        }
    }

    /// Runs the program with these files.
    pub(crate) fn tortie(&self, arguments: &[&str]) -> Output {
        let mut all: Vec<&str> = arguments.to_vec();
        for path in &self.paths {
            all.extend(["-f", path.to_str().unwrap()]);
        }
        tortie(&all, &[])
    }

    /// Renders with these arguments; without a warning.
    #[track_caller]
    pub(crate) fn render(&self, arguments: &[&str]) -> String {
        let all: Vec<&str> = ["render"].iter().chain(arguments).copied().collect();
        let output = self.tortie(&all);
        assert_eq!((output.code, &*output.stderr), (0, ""), "{arguments:?}");
        output.stdout
    }

    /// What an engine is told of this world.
    fn updates(&self) -> Vec<Update> {
        let recording = self.recording.to_str().unwrap();
        let output = self.tortie(&["why", "--batch", "/dev/null", "--record", recording]);
        assert_eq!(output.code, 0, "{output:?}");
        let lines = std::fs::read_to_string(recording).unwrap();
        let events = lines.lines().map(|line| Event::from_line(line).unwrap());
        let updates = events.filter_map(|event| match event {
            Event::Update(update) => Some(*update),
            _ => None,
        });
        updates.collect()
    }

    /// The data plane of a node, told everything, with the drivers of this namespace.
    pub(crate) fn dataplane(&self, node: &str, kind: Kind) -> Dataplane {
        let mut sources = Sources::default();
        let mut config = resolve(&sources).config;
        let mut encapsulation = Encapsulation::default();
        let mut messages = Vec::new();
        for _ in 0..2 {
            let mut engine = Engine::new(engine_config(&config, node, kind));
            for update in &self.updates() {
                engine.on_update(update);
            }
            engine.on_in_sync();
            messages = engine.flush();
            for message in &messages {
                match message {
                    Message::ConfigUpdate(update) => sources.datastore = update.clone(),
                    Message::Encapsulation(found) => encapsulation = *found,
                    _ => {}
                }
            }
            config = resolve(&sources).config;
        }
        let rules = Arc::new(tortie_rules::Config::new(&config, kind, encapsulation).unwrap());
        let drivers = [IpVersion::V4, IpVersion::V6].map(|version| {
            let driver: Box<dyn Driver> = match kind {
                Kind::Nftables => Box::new(NftablesDriver::open(version).unwrap()),
                Kind::Iptables => Box::new(IptablesDriver::new(&Options::new(version)).unwrap()),
            };
            (version, driver)
        });
        let mut dataplane = Dataplane::new(&rules, kind, drivers.into(), node);
        for message in messages {
            dataplane.on_message(message);
        }
        dataplane
    }
}

/// The interface that one of the host endpoints is on.
pub(crate) fn eth0() -> (Arc<str>, InterfaceState) {
    let state = InterfaceState {
        index: 2,
        is_up: true,
        addresses: ["192.168.0.1".parse().unwrap()].into(),
    };
    ("eth0".into(), state)
}

/// Runs the program.
pub(crate) fn tortie(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a program of the system, which must succeed, and gives what it printed.
#[track_caller]
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    // What `nft` says of a rule that is there for its comment alone.
    let complaint = complaint.replace("rule without statements?!\n", "");
    // What `ip6tables` says of an authentication header, which its legacy kind looks through; the other one does not.
    let header = "Warning: never matched protocol: 51. use extension match instead.\n";
    let complaint = complaint.replace(header, "");
    assert!(
        output.status.success() && complaint.is_empty(),
        "{program} {arguments:?}: {complaint}\n{input}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs in a network namespace of its own.
pub(crate) fn in_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    tortie_kernel::namespace::run_in_new(work).unwrap()
}
