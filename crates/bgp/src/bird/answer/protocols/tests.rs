use super::super::recorded::{recorded, reply};
use super::*;

fn named<'a>(protocols: &'a [Protocol], name: &str) -> &'a Protocol {
    let found = protocols.iter().find(|protocol| protocol.name == name);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

/// What both versions tell in a line each.
#[track_caller]
fn check_rows(text: &str, expected: &[(&str, &str, State, &str)]) {
    let found = protocols(&reply(text));
    let rows: Vec<_> = found
        .iter()
        .filter(|protocol| protocol.is_bgp())
        .map(|one| {
            (
                one.name.as_str(),
                one.since.as_str(),
                one.state,
                one.info.as_str(),
            )
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn rows_tell_state_and_since_when() {
    check_rows(
        recorded!("2.0.12/protocols"),
        &[
            ("Mesh_172_20_0_2", "02:20:31.440", State::Up, "Established"),
            ("Mesh_fd20__2", "02:20:31.681", State::Up, "Established"),
            (
                "Global_172_20_0_9",
                "02:20:30.792",
                State::Start,
                "Connect Socket: No route to host",
            ),
            (
                "Node_172_20_0_3_port_1179",
                "02:20:30.792",
                State::Start,
                "Passive",
            ),
            ("Global_172_20_0_10", "02:20:30.792", State::Down, ""),
        ],
    );
    check_rows(
        recorded!("1.6.8/protocols"),
        &[
            ("Mesh_172_20_0_2", "02:20:13", State::Up, "Established"),
            (
                "Global_172_20_0_9",
                "02:20:12",
                State::Start,
                "Connect Socket: No route to host",
            ),
            (
                "Node_172_20_0_3_port_1179",
                "02:20:12",
                State::Start,
                "Passive",
            ),
            ("Global_172_20_0_10", "02:20:12", State::Down, ""),
        ],
    );
}

#[test]
fn other_protocols_are_there_too() {
    let found = protocols(&reply(recorded!("2.0.12/protocols")));
    let kernel = named(&found, "kernel4");
    assert_eq!(kernel.kind, "Kernel");
    assert_eq!(kernel.table.as_deref(), Some("master4"));
    assert_eq!(named(&found, "device1").table, None);
    assert!(!kernel.is_established());
}

#[test]
fn a_date_and_a_time_are_one_column() {
    let text = "1002-a BGP --- up 2026-11-19 02:20:30 Established\n b BGP --- up 2026-11-18 Established\n0000 \n";
    check_rows(
        text,
        &[
            ("a", "2026-11-19 02:20:30", State::Up, "Established"),
            ("b", "2026-11-18", State::Up, "Established"),
        ],
    );
}

#[track_caller]
fn check_session(text: &str, counters: Counters, channel: &str) {
    let found = protocols(&reply(text));
    let mesh = named(&found, "Mesh_172_20_0_2");
    assert_eq!(mesh.description.as_deref(), Some("Connection to BGP peer"));
    let session = mesh.session.as_ref().expect("a session");
    assert_eq!(session.state, "Established");
    assert_eq!(session.neighbor, Some("172.20.0.2".parse().unwrap()));
    assert_eq!(session.neighbor_as, Some(64512));
    let established = &session.established;
    assert_eq!(established.source, Some("172.20.0.1".parse().unwrap()));
    assert_eq!(established.neighbor_id, Some("172.20.0.2".parse().unwrap()));
    assert!(established.flags.starts_with("internal multihop AS4"));
    let hold = established.hold.expect("a timer");
    assert_eq!(hold.of, Some(Duration::from_mins(4)));
    assert!(hold.left > Duration::from_mins(1) && hold.left < Duration::from_mins(4));
    assert_eq!(mesh.channels.len(), 1);
    assert_eq!(mesh.channels[0].counters, counters);
    assert_eq!(mesh.channels[0].name, channel);
    assert_eq!(mesh.channels[0].export_filter, "expf");

    let failed = named(&found, "Global_172_20_0_9").session.as_ref().unwrap();
    assert_eq!(failed.state, "Connect");
    assert_eq!(
        failed.last_error.as_deref(),
        Some("Socket: No route to host")
    );
    assert_eq!(failed.neighbor_as, Some(65010));
    assert_eq!(failed.established, Established::default());
}

#[test]
fn sessions_are_told_with_timers_counters_and_errors() {
    let counters = |imported, exported, preferred| Counters {
        imported,
        filtered: 0,
        exported,
        preferred,
    };
    // Recorded while BIRD waited for the others after its start, and exported nothing.
    check_session(recorded!("2.0.12/protocols-all"), counters(4, 0, 3), "ipv4");
    check_session(recorded!("1.6.8/protocols-all"), counters(4, 5, 3), "");
}

#[test]
fn a_session_over_ipv6_has_its_neighbour() {
    for text in [
        recorded!("2.0.12/protocols-all"),
        recorded!("1.6.8/protocols-all-ipv6"),
    ] {
        let found = protocols(&reply(text));
        let session = named(&found, "Mesh_fd20__2").session.as_ref().unwrap();
        assert_eq!(session.neighbor, Some("fd20::2".parse().unwrap()));
    }
}

#[test]
fn a_protocol_with_two_families_has_two_channels() {
    let found = protocols(&reply(recorded!("2.0.12/protocols-all")));
    let direct = named(&found, "direct1");
    let tables: Vec<_> = direct
        .channels
        .iter()
        .map(|channel| channel.table.as_str())
        .collect();
    assert_eq!(tables, ["master4", "master6"]);
    assert_eq!(direct.channels[1].counters.imported, 1);
}

#[test]
fn the_routes_of_a_restarting_neighbour_are_kept() {
    let found = protocols(&reply(recorded!("2.0.12/protocol-restarting")));
    let session = found[0].session.as_ref().unwrap();
    assert!(session.is_neighbor_restarting && found[0].channels[0].is_bridging_restart);
    assert_eq!(
        session.restart_timer.unwrap().left,
        Duration::from_millis(118_810)
    );
    assert_eq!(found[0].channels[0].counters.imported, 3);
}

#[test]
fn a_link_local_neighbour_is_on_an_interface() {
    let text = "1002-a BGP --- up x\n1006-  BGP state: Established\n     Neighbor address: fe80::1%eth0\n0000 \n";
    let found = protocols(&reply(text));
    let session = found[0].session.as_ref().unwrap();
    assert_eq!(session.neighbor, Some("fe80::1".parse().unwrap()));
    assert_eq!(session.interface.as_deref(), Some("eth0"));
}

#[test]
fn lines_of_another_form_are_left_out() {
    let text = "1006-  State: UP\n1002-a\n b BGP --- odd x\n c BGP --- up\n1006-  Routes: many, x imported\n0000 \n";
    let found = protocols(&reply(text));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].since, "");
    assert_eq!(found[0].channels, []);
}
