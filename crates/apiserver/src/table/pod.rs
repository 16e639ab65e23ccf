//! The cells of a pod. What its status is in one word depends on its containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{NONE, age, items, text_or};
use crate::registry::{Content, Native, ResourceType};

/// All cells but name and age.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let status = &pod["status"];
    let first_ip = items(&status["podIPs"]).next().map(|entry| &entry["ip"]);
    vec![
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.reason.as_str().into(),
        summary.restarts.to_text(now).into(),
        text_or(first_ip.unwrap_or(&status["podIP"]), NONE).into(),
        text_or(&pod["spec"]["nodeName"], NONE).into(),
        text_or(&status["nominatedNodeName"], NONE).into(),
        gates(pod).into(),
    ]
}

/// The phase of a pod that has ended.
pub(super) fn ending<'a>(resource: &ResourceType, object: &'a Value) -> Option<&'a str> {
    if resource.content != Content::Native(Native::Pod) {
        return None;
    }
    let phase = object["status"]["phase"].as_str()?;
    matches!(phase, "Succeeded" | "Failed").then_some(phase)
}

/// What a pod comes down to.
struct Summary {
    ready: usize,
    containers: usize,
    reason: String,
    restarts: Restarts,
}

/// How often containers were started again, and when the last of them ended before.
#[derive(Default)]
struct Restarts {
    count: u64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += container["restartCount"].as_u64().unwrap_or_default();
        let end = container["lastState"]["terminated"]["finishedAt"].as_str();
        self.last = self.last.max(end.and_then(|end| end.parse().ok()));
    }

    fn to_text(&self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count > 0 => {
                let ago = age::human_duration(now.duration_since(last));
                format!("{} ({ago} ago)", self.count)
            }
            _ => self.count.to_string(),
        }
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let phase = text_or(&status["phase"], "Unknown");
        let mut summary = Self {
            ready: 0,
            containers: items(&pod["spec"]["containers"]).count(),
            reason: text_or(&status["reason"], phase).to_owned(),
            restarts: Restarts::default(),
        };
        summary.containers += items(&pod["spec"]["initContainers"])
            .filter(|container| is_sidecar(container))
            .count();
        let gated = condition(pod, "PodScheduled");
        if gated.is_some_and(|found| found["reason"] == "SchedulingGated") {
            "SchedulingGated".clone_into(&mut summary.reason);
        }
        let sidecar_restarts = summary.count_init_containers(pod);
        if let Some(restarts) = sidecar_restarts {
            summary.restarts = restarts;
            summary.count_containers(pod);
        }
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            if status["reason"] == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Looks at the containers that come first. Gives the restarts of those that stay when the others have ended.
    fn count_init_containers(&mut self, pod: &Value) -> Option<Restarts> {
        let specs = &pod["spec"]["initContainers"];
        let mut of_sidecars = Restarts::default();
        let mut is_initializing = false;
        for (index, container) in items(&pod["status"]["initContainerStatuses"]).enumerate() {
            self.restarts.add(container);
            let spec = items(specs).find(|spec| spec["name"] == container["name"]);
            let is_sidecar = spec.is_some_and(is_sidecar);
            if is_sidecar {
                of_sidecars.add(container);
            }
            let state = &container["state"];
            if state["terminated"]["exitCode"] == json!(0) {
                continue;
            }
            if is_sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waiting = text_or(&state["waiting"]["reason"], "");
            self.reason = if state["terminated"].is_object() {
                format!("Init:{}", ended(&state["terminated"]))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", items(specs).count())
            };
            is_initializing = true;
            break;
        }
        (!is_initializing || is_true(pod, "Initialized")).then_some(of_sidecars)
    }

    fn count_containers(&mut self, pod: &Value) {
        let mut has_running = false;
        // The first container has the last word.
        for container in items(&pod["status"]["containerStatuses"]).rev() {
            self.restarts.add(container);
            let state = &container["state"];
            let waiting = text_or(&state["waiting"]["reason"], "");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if state["terminated"].is_object() {
                self.reason = ended(&state["terminated"]);
            } else if container["ready"] == true && state["running"].is_object() {
                has_running = true;
                self.ready += 1;
            }
        }
        if has_running && self.reason == "Completed" {
            let reason = if is_true(pod, "Ready") {
                "Running"
            } else {
                "NotReady"
            };
            reason.clone_into(&mut self.reason);
        }
    }
}

/// How a container ended.
fn ended(terminated: &Value) -> String {
    let number = |name: &str| terminated[name].as_i64().unwrap_or_default();
    match (text_or(&terminated["reason"], ""), number("signal")) {
        ("", 0) => format!("ExitCode:{}", number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Whether a container that comes first stays when the others start.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = items(&pod["status"]["conditions"]);
    conditions.find(|condition| condition["type"] == kind)
}

fn is_true(pod: &Value, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|condition| condition["status"] == "True")
}

/// How many of the conditions that others set are true.
fn gates(pod: &Value) -> String {
    let gates: Vec<_> = items(&pod["spec"]["readinessGates"])
        .filter_map(|gate| gate["conditionType"].as_str())
        .collect();
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(pod, gate)).count();
    format!("{open}/{}", gates.len())
}
