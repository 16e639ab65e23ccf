//! What the engine was told, kept and played again.

use crate::cli::program::Tortie;

use super::{SHOP, ask};

#[test]
fn a_recording_plays_to_the_same_messages_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.jsonl");
    let file = file.to_str().unwrap();
    let answer = ask(
        SHOP,
        &[
            "shop/api", "shop/db", "-p", "TCP", "--port", "5432", "--record", file,
        ],
    );
    assert_eq!(answer.code, 0, "{answer:?}");

    let tortie = Tortie::with_variables(Vec::new());
    let messages = tortie.ok(&["replay", file]);
    let kinds: Vec<&str> = [
        "ipSetUpdate",
        "activePolicyUpdate",
        "workloadEndpointUpdate",
        "inSync",
    ]
    .into_iter()
    .filter(|kind| messages.contains(kind))
    .collect();
    assert_eq!(kinds.len(), 4, "{messages}");
    assert_eq!(tortie.ok(&["replay", file]), messages);
    let recording = std::fs::read_to_string(file).unwrap();
    assert_eq!(tortie.ok_with_input(&["replay", "-"], &recording), messages);
}

#[test]
fn what_is_no_recording_is_refused_with_its_line() {
    let tortie = Tortie::with_variables(Vec::new());
    for (text, expected) in [
        ("\"inSync\"\n", "line 1: a recording begins with `start`"),
        ("\n{\"update\": 1}\n", "line 2: not an event of a recording"),
    ] {
        let output = tortie.run_with_input(&["replay", "-"], text);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains(expected), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}
