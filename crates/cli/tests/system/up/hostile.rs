//! Whatever clients send: the answer is a refusal, and everything stays as it was.

mod access;
mod bodies;
mod connections;
mod http;
mod patches;
mod paths;

use serde_json::Value;

use self::http::Http;
use crate::up::server::Up;

/// What a server may need more of at the worst moment of a test, in KiB. Bodies alone may be several MiB.
const MEMORY: u64 = 256 << 10;

/// A server whose objects must not change.
struct Target {
    up: Up,
    http: Http,
    before: Vec<Value>,
    memory: u64,
}

impl Target {
    /// With an object of Calico's and one of Kubernetes'.
    fn new() -> Self {
        let up = Up::api_server();
        let http = Http::new(&up);
        for (path, body) in [
            (http::POLICIES, http::policy("default.one")),
            (http::MAPS, http::config_map("one")),
        ] {
            let answer = http.json("POST", path, &body);
            assert_eq!(answer.code, 201, "{}", answer.body);
        }
        let before = everything(&http);
        let memory = memory(&up);
        Self {
            up,
            http,
            before,
            memory,
        }
    }

    /// The server runs, nothing has changed, nothing has panicked, and not much memory was needed.
    #[track_caller]
    fn assert_unharmed(mut self) {
        assert!(self.up.is_running(), "{}", self.up.log());
        let after = everything(&self.http);
        for (before, after) in self.before.iter().zip(&after) {
            assert_eq!(before, after);
        }
        assert_eq!(self.before.len(), after.len());
        let log = self.up.log();
        assert!(!log.contains("panicked"), "{log}");
        let more = memory(&self.up).saturating_sub(self.memory);
        assert!(more < MEMORY, "{more} KiB more than before");
    }
}

/// All objects of all types, with the revisions of the lists.
fn everything(http: &Http) -> Vec<Value> {
    let mut lists = Vec::new();
    for group in [
        "/api/v1",
        "/apis/networking.k8s.io/v1",
        "/apis/coordination.k8s.io/v1",
        "/apis/discovery.k8s.io/v1",
        "/apis/projectcalico.org/v3",
    ] {
        let resources = http.get(group).value();
        for resource in resources["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            if !name.contains('/') {
                let answer = http.get(&format!("{group}/{name}"));
                assert_eq!(answer.code, 200, "{name}: {}", answer.body);
                lists.push(answer.value());
            }
        }
    }
    assert!(lists.len() > 25, "{}", lists.len());
    lists
}

/// The most memory that the process has had, in KiB.
fn memory(up: &Up) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", up.process())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}
