//! `loopback`.

use serde_json::json;
use tortie_testkit::net::Namespace;

use super::{Bench, VERSIONS, Whose, link};

#[test]
fn it_is_taken_up_and_down_with_the_same_result() {
    let bench = Bench::new();
    for version in VERSIONS {
        let inside = Namespace::new().unwrap();
        let config = json!({"cniVersion": version, "name": "net", "type": "loopback"});
        let call =
            |whose, command| bench.call(whose, "loopback", (command, "c1"), &inside, &config);
        assert!(!link(&inside, "lo").unwrap().is_up);
        let ours = call(Whose::Ours, "ADD").unwrap();
        assert!(link(&inside, "lo").unwrap().is_up);
        assert_eq!(ours, call(Whose::Ours, "ADD").unwrap());
        let mut theirs = call(Whose::Theirs, "ADD").unwrap();
        // Up to 0.4.0, each address has the version of its protocol; theirs leaves it out.
        for (ours, theirs) in ours["ips"]
            .as_array()
            .unwrap()
            .iter()
            .zip(theirs["ips"].as_array_mut().unwrap())
        {
            assert_eq!(ours.get("version").is_some(), version < "1.0.0");
            if let Some(version) = ours.get("version") {
                theirs["version"] = version.clone();
            }
        }
        assert_eq!(ours, theirs);
        if version != "0.3.1" {
            call(Whose::Ours, "CHECK").unwrap();
        }
        for _ in 0..2 {
            call(Whose::Ours, "DEL").unwrap();
            assert!(!link(&inside, "lo").unwrap().is_up);
        }
        if version != "0.3.1" {
            let (code, message) = call(Whose::Ours, "CHECK").unwrap_err();
            assert_eq!(
                (code, message.as_str()),
                (104, "`lo` in the container is down")
            );
        }
        let previous = json!({"cniVersion": version, "ips": [], "dns": {}});
        let mut chained = config.clone();
        chained["prevResult"] = previous;
        let answers = [Whose::Ours, Whose::Theirs].map(|whose| {
            let answer = bench
                .call(whose, "loopback", ("ADD", "c1"), &inside, &chained)
                .unwrap();
            answer["interfaces"].clone()
        });
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn the_nodes_own_is_left_alone() {
    let bench = Bench::new();
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "loopback"});
    let node = bench.node.namespace();
    let (code, _) = bench
        .call(Whose::Ours, "loopback", ("ADD", "c1"), node, &config)
        .unwrap_err();
    assert_eq!(code, 8);
    bench
        .call(Whose::Ours, "loopback", ("DEL", "c1"), node, &config)
        .unwrap();
    assert!(link(node, "lo").unwrap().is_up);
}
