//! For iptables and ipset.

use tortie_rules::Dataplane;

use crate::render::support::{Files, HOSTS, eth0, in_namespace, run};

/// The sets and the rules load, and the driver has nothing to add to them.
#[track_caller]
fn assert_loads(files: &Files, node: &str, interface: Option<&str>, context: &str) {
    let render = |form: &str, ip: &str| {
        let mut arguments = vec!["--node", node, "-o", form, "--ip", ip];
        arguments.extend(interface.iter().flat_map(|text| ["--interface", text]));
        files.render(&arguments)
    };
    in_namespace(|| {
        for (ip, program) in [("4", "iptables-restore"), ("6", "ip6tables-restore")] {
            let sets = render("ipset", ip);
            run("ipset", &["restore"], &sets);
            run("ipset", &["restore"], &sets);
            let rules = render("iptables", ip);
            run(program, &[], &rules);
            run(program, &[], &rules);
        }
        let mut dataplane = files.dataplane(node, Dataplane::Iptables);
        if interface.is_some() {
            dataplane.set_interfaces([eth0()].into());
        }
        assert_eq!(dataplane.compare().unwrap(), [], "{context}");
    });
}

#[test]
fn the_recipes_load_and_are_what_the_agent_programs() {
    for (name, files) in Files::recipes() {
        assert_loads(&files, "node-1", None, &name);
    }
}

#[test]
fn host_endpoints_load_and_are_what_the_agent_programs() {
    assert_loads(&Files::of(HOSTS), "n1", Some("eth0=192.168.0.1"), "hosts");
}

#[test]
fn the_same_world_gives_the_same_text() {
    let files = Files::of(HOSTS);
    for form in ["ipset", "iptables", "nftables", "json"] {
        let render = || {
            let interface = "eth0=192.168.0.1";
            files.render(&["--node", "n1", "--interface", interface, "-o", form])
        };
        let text = render();
        for _ in 0..3 {
            assert_eq!(render(), text, "{form}");
        }
    }
}

#[test]
fn rules_of_others_stay_where_the_program_is_told_to() {
    let files = Files::of(HOSTS);
    let arguments = ["--node", "n1", "--interface", "eth0=192.168.0.1", "-o"];
    let render = |form: &str| files.render(&[&arguments[..], &[form]].concat());
    let saved = in_namespace(|| {
        run("iptables", &["-A", "FORWARD", "-j", "DROP"], "");
        run("iptables", &["-P", "INPUT", "DROP"], "");
        run("ipset", &["restore"], &render("ipset"));
        run("iptables-restore", &["--noflush"], &render("iptables"));
        run("iptables-save", &["-t", "filter"], "")
    });
    assert!(saved.contains(":INPUT DROP"), "{saved}");
    let forward = saved.lines().filter(|line| line.starts_with("-A FORWARD"));
    let forward: Vec<&str> = forward.collect();
    assert!(forward[0].ends_with("-j cali-FORWARD"), "{forward:#?}");
    assert_eq!(forward[1], "-A FORWARD -j DROP");
    assert_eq!(forward.len(), 4, "{forward:#?}");
}
