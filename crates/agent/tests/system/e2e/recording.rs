//! A recording of a running agent, played elsewhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use tortie_engine::Message;
use tortie_engine::record::{Event, Replay};

use crate::e2e::flow::eventually;
use crate::e2e::objects::policy;
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

on_both_data_planes!(a_recording_has_what_was_known_before_and_what_changed_after);

/// The names of the policies that are in force after a recording is played.
fn policies(file: &Path) -> Vec<String> {
    let mut replay = Replay::default();
    let mut active = Vec::new();
    // The last line may be half written.
    let text = fs::read_to_string(file).unwrap_or_default();
    for event in text.lines().map_while(|line| Event::from_line(line).ok()) {
        let mut hear = |message| match message {
            Message::ActivePolicyUpdate(id, _) => active.push(id.name.replace("default.", "")),
            Message::ActivePolicyRemove(id) => {
                active.retain(|name| *name != id.name.replace("default.", ""));
            }
            _ => {}
        };
        replay.play(&event, &mut hear).unwrap();
    }
    active.sort();
    active.dedup();
    active
}

fn a_recording_has_what_was_known_before_and_what_changed_after(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let named = |name: &str| {
        let rule = json!({"action": "Allow", "protocol": "UDP", "destination": {"ports": [7000]}});
        policy(
            name,
            &json!({"selector": "role == 'server'", "types": ["Ingress"], "ingress": [rule]}),
        )
    };
    setting.put(named("before"));
    let agent = setting.start_agent(plane, &[]);
    setting.await_flows(&[
        (client.udp(&server, 7000), true),
        (client.udp(&server, 7001), false),
    ]);
    let steady = client.datagrams(&server, 7000);
    let closed = client.datagrams(&server, 7001);

    let file = setting.new_file("recording.jsonl");
    fs::write(&file, "of an earlier one").unwrap();
    agent.recording.toggle(file.clone());
    eventually(
        "what was known is recorded",
        &vec!["before".to_owned()],
        || policies(&file),
    );
    setting.put(named("after"));
    let both = vec!["after".to_owned(), "before".to_owned()];
    eventually("what changes is recorded", &both, || policies(&file));
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    agent.recording.toggle(file.clone());
    setting.put(named("later"));
    eventually("the policy is in force", &3, || {
        agent.report.status().policies
    });
    assert_eq!(policies(&file), both, "the recording has ended");
    // Reading everything again opens and closes nothing.
    closed.go_on();
    assert_eq!(steady.lost(), []);
    assert_eq!(closed.arrived(), 0);
}
