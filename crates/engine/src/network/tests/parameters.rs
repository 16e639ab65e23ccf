//! The parameters of this node.

use super::*;
use crate::input::{Cluster, Configuration};
use crate::message::Message;

fn configuration(name: &str, selector: &str, value: &str) -> Update {
    Update::Configuration(
        name.to_owned(),
        Some(Configuration {
            node_selector: selector.to_owned(),
            created: None,
            parameters: [("Key".to_owned(), value.into())].into(),
        }),
    )
}

fn cluster(ready: Option<bool>) -> Update {
    Update::Cluster(Some(Cluster {
        parameters: [("ClusterGUID".to_owned(), "g".into())].into(),
        datastore_ready: ready,
    }))
}

fn labelled(role: &str) -> Update {
    bare_node(LOCAL, |node| {
        node.labels = [("role".to_owned(), role.to_owned())].into();
    })
}

#[test]
fn parameters_are_kept_apart_by_whom_they_are_for() {
    check(
        &[
            vec![configuration("default", "", "old"), cluster(Some(true))],
            vec![
                configuration("default", "", "all"),
                configuration("node.node-a", "", "this"),
                configuration("node.node-b", "", "other"),
                cluster(Some(true)),
            ],
        ],
        "config",
        &[r#"ready {"global":{"ClusterGUID":"g","Key":"all"},"node":{"Key":"this"}}"#],
    );
}

#[test]
fn of_those_that_select_the_node_the_first_by_name_counts() {
    let rest = || {
        vec![
            cluster(Some(true)),
            configuration("a", "role == 'db'", "a"),
            configuration("b", "has(role)", "b"),
            configuration("c", "role ==", "bad"),
            configuration("d", "", "nobody"),
        ]
    };
    let with = |role: &str| [rest(), vec![labelled(role)]].concat();
    let line = |value: &str| {
        format!(r#"ready {{"global":{{"ClusterGUID":"g"}},"selected":{{"Key":"{value}"}}}}"#)
    };
    check(&[rest(), with("db")], "config", &[line("a").as_str()]);
    check(&[with("db"), with("web")], "config", &[line("b").as_str()]);
    let none = r#"ready {"global":{"ClusterGUID":"g"}}"#;
    check(&[with("db"), rest()], "config", &[none]);
}

#[test]
fn a_datastore_that_does_not_say_so_is_not_ready() {
    let line = r#"not ready {"global":{"ClusterGUID":"g"}}"#;
    check(
        &[vec![cluster(Some(true))], vec![cluster(Some(false))]],
        "config",
        &[line],
    );
    check(&[vec![cluster(None)]], "config", &[line]);
    check(&[vec![]], "config", &[r#"not ready {"global":{}}"#]);
    let line = r#"ready {"global":{"ClusterGUID":"g"}}"#;
    check(
        &[vec![cluster(Some(false))], vec![cluster(Some(true))]],
        "config",
        &[line],
    );
}

#[test]
fn nothing_is_said_before_the_datastore_is_in_sync() {
    let mut network = Network::new(&Config::for_node(LOCAL));
    network.on_update(&vxlan_pool("10.0.0.0/16"));
    let mut messages = Vec::new();
    network.flush_config(false, &mut |message| messages.push(message));
    network.flush(false, &mut |message| messages.push(message));
    assert!(!messages.iter().any(|message| matches!(
        message,
        Message::ConfigUpdate(_) | Message::DatastoreNotReady | Message::Encapsulation(_)
    )));
    network.flush_config(true, &mut |message| messages.push(message));
    network.flush(true, &mut |message| messages.push(message));
    assert!(matches!(
        messages[messages.len() - 3..],
        [
            Message::DatastoreNotReady,
            Message::ConfigUpdate(_),
            Message::Encapsulation(_)
        ]
    ));
}

#[test]
fn of_several_selected_parameters_the_oldest_count() {
    let made = |name: &str, value: &str, created| {
        let mut update = configuration(name, "role == 'web'", value);
        if let Update::Configuration(_, Some(configuration)) = &mut update {
            configuration.created = created;
        }
        update
    };
    let mut network = Network::new(&Config::for_node(LOCAL));
    for update in [
        made("a", "young", Some(20)),
        made("b", "old", Some(10)),
        made("c", "unknown", None),
        labelled("web"),
    ] {
        network.on_update(&update);
    }
    let mut selected = None;
    network.flush_config(true, &mut |message| {
        if let Message::ConfigUpdate(update) = message {
            selected = update.selected.get("Key").cloned();
        }
    });
    assert_eq!(selected, Some("old".into()));
}
