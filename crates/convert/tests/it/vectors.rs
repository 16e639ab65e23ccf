//! Small clusters from `calc.json`: what the engine tells the data plane in the end is what Calico's would be told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_convert::Converter;
use tortie_engine::record::{Event, Replay};
use tortie_engine::{Config, Engine, Message, Update, rule_id};

/// What a data plane knows: objects by key, by kind.
#[derive(Default)]
struct State {
    sections: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// Messages that do not fit what was sent before.
    out_of_order: Vec<String>,
}

/// All sections of the expected output.
const SECTIONS: [&str; 9] = [
    "hostEndpoints",
    "hosts",
    "ipPools",
    "ipsets",
    "policies",
    "profiles",
    "routes",
    "vteps",
    "workloadEndpoints",
];

// === impl State ===

impl State {
    fn apply(&mut self, message: &Message) {
        match message {
            Message::IpSetUpdate(set) => {
                let value = json!({"type": set.r#type, "members": set.members});
                self.put("ipsets", set.id.to_string(), value);
            }
            Message::IpSetDeltaUpdate(delta) => {
                self.change_members(delta.id.as_str(), &delta.added, &delta.removed);
            }
            Message::IpSetRemove(id) => self.remove("ipsets", id.as_str()),
            Message::ActivePolicyUpdate(id, policy) => {
                let policy = with_rule_ids(
                    json!(**policy),
                    rule_id::of_policy(id, true, &policy.inbound_rules),
                    rule_id::of_policy(id, false, &policy.outbound_rules),
                );
                self.put(
                    "policies",
                    id.to_string(),
                    json!({"id": **id, "policy": policy}),
                );
            }
            Message::ActivePolicyRemove(id) => self.remove("policies", &id.to_string()),
            Message::ActiveProfileUpdate(name, profile) => {
                let profile = with_rule_ids(
                    json!(**profile),
                    rule_id::of_profile(name, true, &profile.inbound_rules),
                    rule_id::of_profile(name, false, &profile.outbound_rules),
                );
                self.put("profiles", name.to_string(), profile);
            }
            Message::ActiveProfileRemove(name) => self.remove("profiles", name),
            Message::WorkloadEndpointUpdate(id, endpoint) => {
                self.put("workloadEndpoints", workload(id), json!(endpoint));
            }
            Message::WorkloadEndpointRemove(id) => self.remove("workloadEndpoints", &workload(id)),
            Message::HostEndpointUpdate(id, endpoint) => {
                self.put("hostEndpoints", id.endpoint_id.clone(), json!(endpoint));
            }
            Message::HostEndpointRemove(id) => self.remove("hostEndpoints", &id.endpoint_id),
            Message::RouteUpdate(route) => {
                self.put("routes", route.dst.to_string(), json!(route));
            }
            Message::RouteRemove(dst) => self.remove("routes", &dst.to_string()),
            Message::VtepUpdate(vtep) => self.put("vteps", vtep.node.clone(), json!(vtep)),
            Message::VtepRemove(node) => self.remove("vteps", node),
            Message::HostMetadataUpdate(host) => {
                self.put("hosts", host.hostname.clone(), json!(host));
            }
            Message::HostMetadataRemove(name) => self.remove("hosts", name),
            Message::IpamPoolUpdate(id, pool) => self.put("ipPools", id.clone(), json!(pool)),
            Message::IpamPoolRemove(id) => self.remove("ipPools", id),
            // Not part of the vectors.
            _ => {}
        }
    }

    fn put(&mut self, section: &'static str, key: String, value: Value) {
        self.sections.entry(section).or_default().insert(key, value);
    }

    fn remove(&mut self, section: &'static str, key: &str) {
        let objects = self.sections.entry(section).or_default();
        if objects.remove(key).is_none() {
            self.out_of_order
                .push(format!("{section} {key}: removed, but never sent"));
        }
    }

    fn change_members(&mut self, id: &str, added: &[impl Serialize], removed: &[impl Serialize]) {
        let sets = self.sections.entry("ipsets").or_default();
        let Some(Value::Array(members)) = sets.get_mut(id).map(|set| &mut set["members"]) else {
            self.out_of_order
                .push(format!("ipsets {id}: changed, but never sent"));
            return;
        };
        for member in removed.iter().map(|member| json!(member)) {
            match members.iter().position(|other| *other == member) {
                Some(place) => drop(members.remove(place)),
                None => self
                    .out_of_order
                    .push(format!("ipsets {id}: {member} is no member")),
            }
        }
        for member in added.iter().map(|member| json!(member)) {
            if members.contains(&member) {
                self.out_of_order
                    .push(format!("ipsets {id}: {member} is a member already"));
            }
            members.push(member);
        }
    }

    /// The state in the form of the vectors, where members are sorted as text.
    fn into_output(mut self) -> BTreeMap<&'static str, BTreeMap<String, Value>> {
        for set in self.sections.entry("ipsets").or_default().values_mut() {
            if let Value::Array(members) = &mut set["members"] {
                members.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
        }
        self.sections
    }
}

fn workload(id: &tortie_engine::message::WorkloadEndpointId) -> String {
    format!(
        "{}/{}/{}",
        id.orchestrator_id, id.workload_id, id.endpoint_id
    )
}

/// The updates of a case.
fn updates(case: &Value, problems: &mut Vec<String>) -> Vec<Update> {
    let kind_of = |value: &Value| {
        let name = value["kind"].as_str().expect("a kind");
        Kind::from_name(name).expect("a known kind")
    };
    let mut converter = Converter::new();
    let mut updates = Vec::new();
    for object in case["updates"].as_array().expect("a list of updates") {
        if let Some(gone) = object.get("delete") {
            let text = |field: &str| gone[field].as_str().unwrap_or_default();
            updates.extend(converter.remove(kind_of(gone), text("namespace"), text("name")));
            continue;
        }
        let resource = Resource::decode_stored(kind_of(object), object).expect("a stored object");
        let result = converter.set(&resource);
        problems.extend(result.problems.iter().map(ToString::to_string));
        updates.extend(result.updates);
    }
    updates
}

/// The rules as JSON with their identifiers, which messages leave to be computed when they are asked for.
fn with_rule_ids(mut object: Value, inbound: Vec<String>, outbound: Vec<String>) -> Value {
    for (field, ids) in [("inboundRules", inbound), ("outboundRules", outbound)] {
        let rules = object.get_mut(field).and_then(Value::as_array_mut);
        for (rule, id) in rules.into_iter().flatten().zip(ids) {
            rule["ruleId"] = id.into();
        }
    }
    object
}

/// The paths at which two values differ, with both values.
fn differences(at: &str, expected: Option<&Value>, got: Option<&Value>, report: &mut String) {
    match (expected, got) {
        (expected, got) if expected == got => {}
        (Some(Value::Object(expected)), Some(Value::Object(got))) => {
            let keys: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
            for key in keys {
                differences(
                    &format!("{at}.{key}"),
                    expected.get(key),
                    got.get(key),
                    report,
                );
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(got))) if expected.len() == got.len() => {
            for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
                differences(&format!("{at}[{index}]"), Some(expected), Some(got), report);
            }
        }
        (expected, got) => {
            let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            let (expected, got) = (show(expected), show(got));
            let _ = writeln!(report, "{at}\n  expected {expected}\n       got {got}");
        }
    }
}

/// Compares the state that `run` leads to with the expected one, for every case, and reports all differences.
fn check(run: impl Fn(&mut Engine, &[Update], &mut State)) {
    let cases = tortie_testkit::vectors("calc.json");
    let mut report = String::new();
    for (index, case) in cases.iter().enumerate() {
        let mut notes = Vec::new();
        let updates = updates(case, &mut notes);
        let node = case["localHost"].as_str().expect("the name of a node");
        let mut engine = Engine::new(Config::for_node(node));
        let mut state = State::default();
        run(&mut engine, &updates, &mut state);
        notes.append(&mut state.out_of_order);
        for note in notes {
            let _ = writeln!(report, "case {index}: {note}");
        }

        let expected = case["output"].as_object().expect("sections");
        let unknown: Vec<&String> = expected
            .keys()
            .filter(|section| !SECTIONS.contains(&section.as_str()))
            .collect();
        assert!(
            unknown.is_empty(),
            "case {index}: {unknown:?} are not compared"
        );
        let got = state.into_output();
        let empty = (serde_json::Map::new(), BTreeMap::new());
        for section in SECTIONS {
            let expected = expected.get(section).and_then(Value::as_object);
            let expected = expected.unwrap_or(&empty.0);
            let got = got.get(section).unwrap_or(&empty.1);
            let keys: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
            for key in keys {
                let at = format!("case {index}, {section} {key}");
                differences(&at, expected.get(key), got.get(key), &mut report);
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn all_at_once() {
    check(|engine, updates, state| {
        for update in updates {
            engine.on_update(update);
        }
        engine.on_in_sync();
        for message in engine.flush() {
            state.apply(&message);
        }
    });
}

#[test]
fn one_by_one() {
    check(|engine, updates, state| {
        engine.on_in_sync();
        for update in updates {
            engine.on_update(update);
            for message in engine.flush() {
                state.apply(&message);
            }
        }
    });
}

/// What an engine was told, kept as text and told to another, gives the same messages.
#[test]
fn recorded_and_replayed() {
    for case in tortie_testkit::vectors("calc.json") {
        let config = Config::for_node(case["localHost"].as_str().expect("a node"));
        let mut engine = Engine::new(config.clone());
        let mut lines = vec![Event::Start(config).to_line()];
        let mut messages = Vec::new();
        let all = updates(&case, &mut Vec::new());
        let (first, rest) = all.split_at(all.len() / 2);
        for (part, is_first) in [(first, true), (rest, false)] {
            for update in part {
                engine.on_update(update);
                lines.push(Event::Update(Box::new(update.clone())).to_line());
            }
            if is_first {
                engine.on_in_sync();
                lines.push(Event::InSync.to_line());
            }
            messages.extend(engine.flush());
            lines.push(Event::Flush.to_line());
        }

        let mut replay = Replay::default();
        let mut replayed = Vec::new();
        for line in lines {
            let event = Event::from_line(&line).expect("a line that was written");
            replay
                .play(&event, &mut |message| replayed.push(message))
                .expect("a recording that begins with its start");
        }
        assert_eq!(replayed, messages);
    }
}
