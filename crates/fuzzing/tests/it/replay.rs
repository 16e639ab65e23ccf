//! What is in `fuzz/corpus` and what fuzzers once found (`fuzz/regressions`), given to each function again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, panic};

use tortie_fuzzing::{
    api_body, bgp, bird_reply, cni_config, etcd_value, recording, resource, selector, socket_frame,
};

const TARGETS: [&str; 9] = [
    "api_body",
    "bgp",
    "bird_reply",
    "cni_config",
    "etcd_value",
    "recording",
    "resource",
    "selector",
    "socket_frame",
];

fn folder(name: &str) -> PathBuf {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    fuzz.join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn check(target: &str, function: fn(&[u8])) {
    let corpus = files(&folder("corpus").join(target));
    assert!(!corpus.is_empty(), "fuzz/corpus/{target} is empty");
    for file in corpus
        .into_iter()
        .chain(files(&folder("regressions").join(target)))
    {
        let bytes = fs::read(&file).unwrap();
        // What is cut short must not do harm either.
        for part in [&bytes[..], &bytes[..bytes.len() / 2]] {
            let outcome = panic::catch_unwind(|| function(part));
            let (file, length) = (file.display(), part.len());
            assert!(outcome.is_ok(), "{file}, the first {length} bytes of it");
        }
    }
}

#[test]
fn bodies_of_requests() {
    check("api_body", api_body::check);
}

#[test]
fn objects_of_bgp() {
    check("bgp", bgp::check);
}

#[test]
fn answers_of_bird() {
    check("bird_reply", bird_reply::check);
}

#[test]
fn configurations_of_plugins() {
    check("cni_config", cni_config::check);
}

#[test]
fn values_of_etcd() {
    check("etcd_value", etcd_value::check);
}

#[test]
fn recordings_of_the_engine() {
    check("recording", recording::check);
}

#[test]
fn resources() {
    check("resource", resource::check);
}

#[test]
fn selectors() {
    check("selector", selector::check);
}

#[test]
fn requests_on_the_socket() {
    check("socket_frame", socket_frame::check);
}

#[test]
fn every_target_and_every_folder_is_replayed() {
    let expected: BTreeSet<String> = TARGETS.iter().map(|&name| name.to_owned()).collect();
    let names = |folder: &Path| -> BTreeSet<String> {
        let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        files(folder).into_iter().map(stem).collect()
    };
    assert_eq!(names(&folder("fuzz_targets")), expected);
    assert_eq!(names(&folder("corpus")), expected);
    assert!(names(&folder("regressions")).is_subset(&expected));
}
