//! What the demo shows.

use serde_json::Value;

use crate::demo::support::{Demo, Output, User, run};

#[track_caller]
fn check_text(output: &Output, steps: usize, probes: usize) {
    let Output {
        code,
        stdout,
        stderr,
    } = output;
    assert_eq!((*code, stderr.as_str()), (0, ""), "{stdout}");
    let each = probes / steps;
    let agreement = format!("verdict agrees with packets: {each}/{each}\n");
    assert_eq!(stdout.matches(&agreement).count(), steps, "{stdout}");
    let end = format!(
        "{probes} of {probes} connections were as expected, and {probes} of {probes} verdicts agree with the packets."
    );
    assert!(stdout.contains(&end), "{stdout}");
    assert_eq!(
        stdout.matches(" ms after the write: ").count(),
        3,
        "{stdout}"
    );
    assert!(stdout.ends_with("Everything is gone again.\n"), "{stdout}");
}

#[test]
fn root_sees_all_steps_on_nftables() {
    let output = Demo::start(User::Root, &[]).end();
    check_text(&output, 3, 72);
    let text = &output.stdout;
    assert!(text.contains("with nftables, as root\n"), "{text}");
    let last_matrix = "\
  from             frontend        backend       database       stranger
                TCP 80  UDP  TCP 8080  UDP  TCP 5432  UDP    TCP 80  UDP
  frontend           .    .         +    +         x    +         x    x
  backend            x    +         .    .         +    +         x    x
  database           x    +         x    +         .    .         x    x
  stranger           x    x         x    x         x    x         .    .
";
    assert!(text.contains(last_matrix), "{text}");
    for line in [
        "  tortie apply -f default-deny.yaml\n",
        "  | metadata: {name: default-deny, namespace: shop}\n",
        "tortie why shop/frontend shop/database --protocol TCP --port 5432\n",
        "  DENIED: shop/frontend (10.65.0.1) to shop/database (10.65.0.3), TCP port 5432\n",
        "  ALLOWED: shop/backend (10.65.0.2) to shop/database (10.65.0.3), TCP port 5432\n",
        "    Allow by rule 0 of NetworkPolicy shop/database in tier default\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe: {text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
}

#[test]
fn root_sees_all_steps_on_iptables_with_ipv6() {
    let output = Demo::start(User::Root, &["--dataplane", "iptables", "--ipv6"]).end();
    check_text(&output, 3, 144);
    let text = &output.stdout;
    assert!(
        text.contains("with iptables and ipset, as root\n"),
        "{text}"
    );
    assert!(text.contains("10.65.0.1, fd65::1"), "{text}");
    assert_eq!(text.matches("  IPv6 from ").count(), 3, "{text}");
}

#[test]
fn everybody_sees_all_steps_on_nftables_with_ipv6() {
    let output = Demo::start(User::Nobody, &["--ipv6"]).end();
    check_text(&output, 3, 144);
    assert!(
        output
            .stdout
            .contains("without root, in a user namespace\n"),
        "{}",
        output.stdout
    );
}

#[test]
fn programs_get_json() {
    let output = Demo::start(User::Nobody, &["-o", "json"]).end();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    for count in ["probes", "asExpected", "verdictsAgree"] {
        assert_eq!(report[count], 72, "{report}");
    }
    assert_eq!(report["dataplane"], "nftables");
    assert_eq!(report["ownUsers"], true);
    assert_eq!(report["pods"][1]["name"], "shop/backend");
    let steps = report["steps"].as_array().unwrap();
    let open: Vec<usize> = steps
        .iter()
        .map(|step| {
            let cells = step["cells"].as_array().unwrap();
            cells
                .iter()
                .filter(|cell| cell["packets"] == "Allow")
                .count()
        })
        .collect();
    assert_eq!(open, [24, 0, 2 + 6]);
    let changes: Vec<&Value> = steps
        .iter()
        .flat_map(|step| step["changes"].as_array().unwrap())
        .collect();
    assert_eq!(changes.len(), 3);
    for change in changes {
        let took = change["enforcedAfterMs"].as_f64().unwrap();
        assert!(took > 0.0 && took < 10_000.0, "{change}");
    }
    assert_eq!(report["why"][0]["answer"]["verdict"], "Deny");
    assert_eq!(report["why"][1]["answer"]["verdict"], "Allow");
}

#[test]
fn packets_that_fare_otherwise_are_a_failure() {
    let mut demo = Demo::start(User::Root, &[]);
    demo.read_until("2. Default deny");
    let node = demo.inside().to_string();
    let rules = "add table ip saboteur; \
                 add chain ip saboteur forward { type filter hook forward priority -300; }; \
                 add rule ip saboteur forward tcp dport 5432 drop";
    run("nsenter", &["-n", "-t", &node, "nft", rules]);
    let output = demo.end();
    let text = &output.stdout;
    assert_eq!(output.code, 1, "{text}");
    for line in [
        "  verdict agrees with packets: 23/24\n",
        "TCP 5432 from shop/backend to shop/database over IPv4: packets do not pass, which is wrong\n",
        "packets do not pass, but the verdict is that they pass\n",
        "71 of 72 connections were as expected, and 71 of 72 verdicts agree with the packets.",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn the_help_has_examples() {
    let output = Demo::start(User::Nobody, &["--help"]).end();
    assert_eq!(output.code, 0);
    assert!(
        output
            .stdout
            .contains("tortie demo --dataplane iptables --ipv6")
    );
    assert!(!output.stdout.contains("--inside"), "{}", output.stdout);
}
