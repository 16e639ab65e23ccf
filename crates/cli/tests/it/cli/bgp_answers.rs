//! `bgp why` and `bgp doctor` of files: answers, exit codes, JSON, and what is said about questions that cannot be answered.

use serde_json::Value;

use crate::cli::program::{Output, Tortie};

const WORLD: &str = "\
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: node-1}
spec: {bgp: {ipv4Address: 192.0.2.1/24}}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: node-2}
spec: {bgp: {ipv4Address: 192.0.2.2/24}}
---
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: pods}
spec: {cidr: 10.65.0.0/16, ipipMode: Never, vxlanMode: Never}
---
apiVersion: projectcalico.org/v3
kind: BlockAffinity
metadata: {name: node-1-10-65-1-0-26}
spec: {cidr: 10.65.1.0/26, node: node-1, state: confirmed, deleted: false}
";

const BORDER: &str = "\
---
apiVersion: projectcalico.org/v3
kind: BGPFilter
metadata: {name: to-the-outside}
spec:
  exportV4:
  - {action: Reject, cidr: 10.65.0.0/16, matchOperator: In, prefixLength: {min: 25}}
---
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: border}
spec: {peerIP: 192.0.2.254, asNumber: 65000, filters: [to-the-outside]}
";

fn run(arguments: &[&str], input: &str) -> Output {
    let arguments = [&["bgp"], arguments, &["-f", "-"]].concat();
    Tortie::with_variables(Vec::new()).run_with_input(&arguments, input)
}

#[track_caller]
fn check(arguments: &[&str], input: &str, code: i32, parts: &[&str]) {
    let output = run(arguments, input);
    assert_eq!(output.code, code, "{arguments:?}: {output:?}");
    for part in parts {
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains(part), "{arguments:?}: no {part:?} in {said}");
    }
}

#[test]
fn a_prefix_that_is_where_it_should_be() {
    check(
        &["why", "10.65.1.0/26"],
        WORLD,
        0,
        &[
            "10.65.1.0/26 is advertised by node-1 to 1 peer\n",
            "told to node-2 (192.0.2.2)",
        ],
    );
    check(
        &["why", "10.65.1.7", "--node", "node-2"],
        WORLD,
        0,
        &[
            "10.65.1.0/26 is learnt by node-2 and programmed by BIRD\n",
            "10.65.1.7 is in 10.65.1.0/26",
        ],
    );
}

#[test]
fn one_that_is_not_with_the_reason() {
    let world = format!("{WORLD}{BORDER}");
    let rule = "by BGPFilter(to-the-outside): spec.exportV4[0]";
    check(
        &["why", "10.65.1.0/26"],
        &world,
        2,
        &[
            "is advertised by node-1 to 1 of 2 peers\n",
            "NOT told to 192.0.2.254 (Global_192_0_2_254)",
            rule,
        ],
    );
    check(
        &["why", "10.65.1.0/26", "--peer", "border"],
        &world,
        2,
        &["is not advertised by node-1: a rule of BGPFilter(to-the-outside) rejects"],
    );
    check(
        &["why", "10.65.1.0/26", "--peer", "node-2"],
        &world,
        0,
        &["to 1 peer"],
    );
    let pending = WORLD.replace("confirmed", "pending");
    check(
        &["why", "10.65.1.0/26"],
        &pending,
        2,
        &["BlockAffinity(node-1-10-65-1-0-26): spec.state = pending"],
    );
    check(
        &["why", "10.66.0.0/26"],
        WORLD,
        2,
        &["no IPPool and no range of services holds it"],
    );
}

#[test]
fn programs_get_the_same_as_json() {
    let world = format!("{WORLD}{BORDER}");
    let output = run(&["why", "10.65.1.0/26", "-o", "json"], &world);
    assert_eq!(output.code, 2, "{output:?}");
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(answer["isWell"], false);
    assert_eq!(
        answer["nodes"][0]["told"][0]["reason"]["origin"]["field"],
        "spec.exportV4[0]"
    );
    assert!(answer["live"].is_null(), "files are all there is");

    let output = run(
        &["doctor", "-o", "json"],
        &world.replace("192.0.2.2/24", "192.0.2.1/24"),
    );
    assert_eq!(output.code, 1, "{output:?}");
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (&found["well"], &found["nodes"]),
        (&Value::from(false), &Value::from(2))
    );
    assert_eq!(found["findings"][0]["severity"], "error");
    assert_eq!(
        found["findings"][0]["origin"]["field"],
        "spec.bgp.ipv4Address"
    );
}

#[test]
fn a_doctor_finds_nothing_or_says_what_would_be_right() {
    check(
        &["doctor"],
        WORLD,
        0,
        &["Nothing is wrong with the BGP of 2 node(s)."],
    );
    let twins = WORLD.replace("192.0.2.2/24", "192.0.2.1/24");
    check(
        &["doctor"],
        &twins,
        1,
        &[
            "error: 192.0.2.1 is the address of Node(node-1) too",
            "Node(node-2): spec.bgp.ipv4Address = 192.0.2.1",
            "right: ",
        ],
    );
    let far = format!("{WORLD}{}", BORDER.replace("192.0.2.254", "203.0.113.1"));
    check(
        &["doctor"],
        &far,
        0,
        &[
            "warning: 203.0.113.1 is not in the network 192.0.2.0/24 of the node",
            "0 error(s) and 1 warning(s)",
        ],
    );
    let gone = format!(
        "{WORLD}{}",
        BORDER.replace("filters: [to-the-outside]", "filters: [gone]")
    );
    check(
        &["doctor", "--node", "node-2"],
        &gone,
        1,
        &[
            "there is no BGPFilter `gone`",
            "BGPPeer(border): spec.filters[0]",
        ],
    );
}

#[test]
fn questions_that_cannot_be_answered() {
    check(
        &["why", "10.65.1.0/33"],
        WORLD,
        1,
        &["it is neither a network such as 10.65.1.0/26 nor an address such as 10.65.1.7"],
    );
    check(
        &["why", "10.65.1.0/26", "--node", "node-9"],
        WORLD,
        1,
        &["there is no Node(node-9); there is node-1, node-2"],
    );
    check(
        &["why", "10.65.1.0/26", "--peer", "nobody"],
        WORLD,
        1,
        &["nothing is called nobody: say the name of a BGPPeer"],
    );
    check(
        &["doctor", "--node", "node-9"],
        WORLD,
        1,
        &["there is no Node(node-9)"],
    );
    check(
        &["doctor"],
        &WORLD.replace("ipv4Address", "ipv4Adress"),
        1,
        &["stdin:4: document 1: Node(node-1): spec.bgp.ipv4Adress"],
    );
}
