//! `host-local`: on the same folder as the other one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use tortie_testkit::net::Namespace;

use super::{Bench, VERSIONS, Whose};

fn config(version: &str, folder: &Path, more: &Value) -> Value {
    let mut ipam = json!({"type": "host-local", "dataDir": folder});
    let fields = more.as_object().cloned().unwrap_or_default();
    ipam.as_object_mut().unwrap().extend(fields);
    json!({"cniVersion": version, "name": "net", "type": "bridge", "ipam": ipam})
}

fn address(result: &Value) -> String {
    result["ips"][0]["address"].as_str().unwrap().to_owned()
}

/// Files with their contents, but for the lock.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder.join("net")).unwrap();
    let mut files: Vec<(String, String)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .filter(|(name, _)| name != "lock")
        .collect();
    files.sort();
    files
}

#[test]
fn results_and_files_are_the_same() {
    let bench = Bench::new();
    let inside = Namespace::new().unwrap();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let resolver = one.path().join("resolv.conf");
    fs::write(
        &resolver,
        "nameserver 192.0.2.53\nsearch a b\noptions ndots:5\n",
    )
    .unwrap();
    let cases = [
        json!({"subnet": "10.22.0.0/16"}),
        json!({"subnet": "10.22.0.0/16", "rangeStart": "10.22.0.9", "rangeEnd": "10.22.0.20", "gateway": "10.22.0.254"}),
        json!({"ranges": [[{"subnet": "10.22.0.0/16"}], [{"subnet": "fd00:22::/64", "gateway": "fd00:22::5"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd00::/8", "gw": "fd00:22::9"}], "resolvConf": resolver}),
    ];
    for version in VERSIONS {
        for (place, case) in cases.iter().enumerate() {
            let both = [(Whose::Ours, &one), (Whose::Theirs, &two)].map(|(whose, folder)| {
                let folder = folder.path().join(format!("{version}-{place}"));
                let config = config(version, &folder, case);
                let call = |command, container| {
                    bench.call(whose, "host-local", (command, container), &inside, &config)
                };
                let results: Vec<Value> = ["a", "b"]
                    .map(|container| call("ADD", container).unwrap())
                    .into();
                let held = files(&folder);
                if version != "0.3.1" {
                    call("CHECK", "a").unwrap();
                    call("CHECK", "nobody").unwrap_err();
                }
                call("DEL", "a").unwrap();
                call("DEL", "a").unwrap();
                (results, held, files(&folder))
            });
            assert_eq!(both[0], both[1], "{version} {case}");
        }
    }
}

#[test]
fn both_take_turns_on_one_folder() {
    let bench = Bench::new();
    let inside = Namespace::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = config("1.0.0", folder.path(), &json!({"subnet": "10.22.0.0/29"}));
    let call = |whose, command, container: &str| {
        bench.call(whose, "host-local", (command, container), &inside, &config)
    };
    let turns = [Whose::Ours, Whose::Theirs];
    let mut given = Vec::new();
    // Ten containers come and go, of which three are there at a time: addresses go round.
    for round in 0..10 {
        let (one, other) = (turns[round % 2], turns[(round + 1) % 2]);
        given.push(address(&call(one, "ADD", &format!("c{round}")).unwrap()));
        if let Some(old) = round.checked_sub(2) {
            call(other, "DEL", &format!("c{old}")).unwrap();
        }
    }
    let expected: Vec<String> = (0..10)
        .map(|round| format!("10.22.0.{}/29", 2 + round % 5))
        .collect();
    assert_eq!(given, expected);

    // What one has given out, the other does not.
    for (place, container) in ["x", "y", "z"].iter().enumerate() {
        call(turns[place % 2], "ADD", container).unwrap();
    }
    for whose in turns {
        call(whose, "ADD", "one-too-many").unwrap_err();
        call(whose, "ADD", "x").unwrap_err();
    }
    assert_eq!(files(folder.path()).len(), 6);
    for (place, container) in ["c8", "c9", "x", "y", "z"].iter().enumerate() {
        call(turns[place % 2], "DEL", container).unwrap();
    }
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn many_at_once_of_both_get_different_addresses() {
    let bench = Bench::new();
    let inside = Namespace::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = config("1.0.0", folder.path(), &json!({"subnet": "10.22.0.0/26"}));
    let given: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..40)
            .map(|number| {
                let (bench, inside, config) = (&bench, &inside, &config);
                let whose = if number % 2 == 0 {
                    Whose::Ours
                } else {
                    Whose::Theirs
                };
                scope.spawn(move || {
                    let container = format!("c{number}");
                    address(
                        &bench
                            .call(whose, "host-local", ("ADD", &container), inside, config)
                            .unwrap(),
                    )
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), 40, "{given:?}");
}

#[test]
fn garbage_is_collected_and_a_full_range_is_told() {
    let bench = Bench::new();
    let inside = Namespace::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = config("1.1.0", folder.path(), &json!({"subnet": "10.22.0.0/30"}));
    let call = |command, container: &str, config: &Value| {
        bench.call(
            Whose::Ours,
            "host-local",
            (command, container),
            &inside,
            config,
        )
    };
    call("STATUS", "", &config).unwrap();
    call("ADD", "gone", &config).unwrap();
    let (code, message) = call("STATUS", "", &config).unwrap_err();
    assert_eq!(code, 50, "{message}");
    config["cni.dev/valid-attachments"] = json!([{"containerID": "gone", "ifname": "eth0"}]);
    call("GC", "", &config).unwrap();
    call("STATUS", "", &config).unwrap_err();
    config["cni.dev/valid-attachments"] = json!([{"containerID": "other", "ifname": "eth0"}]);
    call("GC", "", &config).unwrap();
    call("STATUS", "", &config).unwrap();
}
