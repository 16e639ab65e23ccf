//! What others change by hand in the kernel is repaired, and what is theirs stays.

mod snapshot;

use serde_json::json;
use tortie_api::Kind;

use crate::e2e::flow::eventually;
use crate::e2e::objects::{labelled, policy};
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

use snapshot::{chains, named, snapshot};

on_both_data_planes!(
    what_is_changed_by_hand_is_repaired_within_the_interval_and_foreign_things_stay,
    routes_to_pods_are_repaired,
);

/// An interval that is much shorter than what is waited for, which is shorter than the intervals that are usual.
const PARAMETERS: [(&str, &str); 3] = [
    ("nftablesrefreshinterval", "1"),
    ("iptablesrefreshinterval", "1"),
    ("ipsetsrefreshinterval", "1"),
];

/// A command line: a program, and what it is told.
type Line = (&'static str, String);

/// What somebody does by hand.
struct Mischief {
    what: &'static str,
    lines: Vec<Line>,
}

fn what_is_changed_by_hand_is_repaired_within_the_interval_and_foreign_things_stay(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let stranger = setting.add_pod("stranger", 3, &json!({"role": "stranger"}));
    write_policy(&setting);
    for (program, line) in foreign(plane) {
        setting.run(program, line);
    }
    let foreign = snapshot(&setting, plane, true);
    assert!(foreign.contains("theirs"), "{foreign}");
    let agent = setting.start_agent(plane, &PARAMETERS);
    let flows = [
        (client.tcp(&server, 80), true),
        (stranger.tcp(&server, 80), false),
        (server.tcp(&client, 80), true),
    ];
    setting.await_flows(&flows);
    let ours = snapshot(&setting, plane, false);
    for Mischief { what, lines } in mischiefs(&setting, plane) {
        assert!(!lines.is_empty(), "{what}: there is nothing to change");
        let before = agent.metrics.drift.get();
        for (program, line) in &lines {
            setting.run(program, line);
        }
        let repaired = || agent.metrics.drift.get() > before;
        eventually(&format!("{what}: noticed"), &true, repaired);
        eventually(&format!("{what}: repaired"), &ours, || {
            snapshot(&setting, plane, false)
        });
        setting.check_flows(&flows);
    }
    assert_eq!(snapshot(&setting, plane, true), foreign);
}

/// Nothing is read now and then: only what the kernel tells can lead to a repair.
const NEVER: [(&str, &str); 4] = [
    ("nftablesrefreshinterval", "0"),
    ("iptablesrefreshinterval", "0"),
    ("ipsetsrefreshinterval", "0"),
    ("routerefreshinterval", "0"),
];

fn check_that_deletions_are_heard_of(plane: Plane, deletions: &[&[Line]]) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({"role": "client"}));
    let server = setting.add_pod("server", 2, &json!({"role": "server"}));
    let stranger = setting.add_pod("stranger", 3, &json!({"role": "stranger"}));
    write_policy(&setting);
    let agent = setting.start_agent(plane, &NEVER);
    let flows = [
        (client.tcp(&server, 80), true),
        (stranger.tcp(&server, 80), false),
    ];
    setting.await_flows(&flows);
    for lines in deletions {
        let before = agent.metrics.drift.get();
        for (program, line) in *lines {
            setting.run(program, line);
        }
        let repaired = || agent.metrics.drift.get() > before;
        eventually(&format!("{lines:?}: noticed"), &true, repaired);
        setting.await_flows(&flows);
    }
    agent.end();
}

#[test]
fn what_is_deleted_from_nftables_is_back_at_once() {
    let both =
        |what: &str| ["ip", "ip6"].map(|family| ("nft", format!("{what} table {family} calico")));
    let deletions = [both("delete"), both("flush"), both("delete")];
    let deletions: Vec<&[Line]> = deletions.iter().map(|lines| &lines[..]).collect();
    check_that_deletions_are_heard_of(Plane::Nftables, &deletions);
}

#[test]
fn what_is_deleted_from_the_iptables_of_nftables_is_back_at_once() {
    let both =
        |what: &str| ["iptables-nft", "ip6tables-nft"].map(|program| (program, what.to_owned()));
    let deletions = [both("-F cali-FORWARD"), both("-F FORWARD")];
    let deletions: Vec<&[Line]> = deletions.iter().map(|lines| &lines[..]).collect();
    check_that_deletions_are_heard_of(Plane::IptablesNft, &deletions);
}

fn routes_to_pods_are_repaired(plane: Plane) {
    let mut setting = Setting::new();
    let client = setting.add_pod("client", 1, &json!({}));
    let server = setting.add_pod("server", 2, &json!({}));
    let _agent = setting.start_agent(plane, &PARAMETERS);
    let flows = [(client.tcp(&server, 80), true)];
    setting.await_flows(&flows);
    for address in &server.addresses {
        let delete = format!("route del {address} dev caliserver");
        setting.run("ip", &delete);
    }
    setting.await_flows(&flows);
}

/// Only members of a set and pods with a role reach the server.
fn write_policy(setting: &Setting) {
    let nets = json!({"nets": ["172.30.0.1", "172.30.1.0/24", "fd00:30::1", "fd00:31::/64"]});
    let labels = json!({"list": "members"});
    setting.put(labelled(
        Kind::GlobalNetworkSet,
        "",
        "members",
        &labels,
        &nets,
    ));
    let allow = |selector: &str| json!({"action": "Allow", "source": {"selector": selector}});
    setting.put(policy(
        "server",
        &json!({
            "selector": "role == 'server'",
            "types": ["Ingress"],
            "ingress": [allow("role == 'client'"), allow("list == 'members'")],
        }),
    ));
}

/// What belongs to somebody else, in tables of their own or beside ours.
fn foreign(plane: Plane) -> Vec<(&'static str, &'static str)> {
    let mut lines = vec![
        ("nft", "add table inet theirs"),
        (
            "nft",
            "add chain inet theirs forward { type filter hook forward priority -10 ; }",
        ),
        ("nft", "add rule inet theirs forward tcp dport 9999 drop"),
        ("nft", "add set inet theirs addresses { type ipv4_addr ; }"),
        ("nft", "add element inet theirs addresses { 192.0.2.1 }"),
    ];
    if plane == Plane::Iptables {
        lines.extend([
            ("ipset", "create theirs hash:ip"),
            ("ipset", "add theirs 192.0.2.1"),
        ]);
        for program in ["iptables-legacy", "ip6tables-legacy"] {
            lines.extend([
                (program, "-N theirs"),
                (program, "-A theirs -p tcp --dport 9998 -j DROP"),
                (program, "-A FORWARD -j theirs"),
                (program, "-t nat -N theirs"),
            ]);
        }
    }
    lines
}

fn mischiefs(setting: &Setting, plane: Plane) -> Vec<Mischief> {
    match plane {
        Plane::Nftables => nftables_mischiefs(setting),
        Plane::Iptables | Plane::IptablesNft => iptables_mischiefs(setting),
    }
}

fn nftables_mischiefs(setting: &Setting) -> Vec<Mischief> {
    let mut insert = Vec::new();
    let mut sets = Vec::new();
    let mut maps = Vec::new();
    for family in ["ip", "ip6"] {
        for chain in chains(setting, family) {
            insert.push(("nft", format!("insert rule {family} calico {chain} accept")));
        }
        for set in named(setting, family, "set") {
            sets.push(("nft", format!("flush set {family} calico {set}")));
        }
        for map in named(setting, family, "map") {
            maps.push(("nft", format!("flush map {family} calico {map}")));
        }
    }
    let both = |what: &str| -> Vec<Line> {
        ["ip", "ip6"]
            .map(|family| ("nft", format!("{what} table {family} calico")))
            .into()
    };
    vec![
        Mischief {
            what: "all rules are deleted",
            lines: both("flush"),
        },
        Mischief {
            what: "all chains have a foreign rule at their beginning",
            lines: insert,
        },
        Mischief {
            what: "all sets are empty",
            lines: sets,
        },
        Mischief {
            what: "all maps are empty",
            lines: maps,
        },
        Mischief {
            what: "the tables are deleted",
            lines: both("delete"),
        },
    ]
}

fn iptables_mischiefs(setting: &Setting) -> Vec<Mischief> {
    let on_both = |arguments: &[&str]| -> Vec<Line> {
        let programs = ["iptables-legacy", "ip6tables-legacy"].into_iter();
        let lines = programs.flat_map(|program| {
            let lines = arguments.iter();
            lines.map(move |line| (program, (*line).to_owned()))
        });
        lines.collect()
    };
    let all_sets = setting.run("ipset", "list -name");
    let ours = all_sets.lines().filter(|name| name.starts_with("cali"));
    vec![
        Mischief {
            what: "rules of our chains are deleted",
            lines: on_both(&["-F cali-FORWARD", "-t raw -F cali-PREROUTING"]),
        },
        Mischief {
            what: "the ways into our chains are deleted",
            lines: on_both(&["-D FORWARD 1", "-D INPUT 1", "-t mangle -F PREROUTING"]),
        },
        Mischief {
            what: "our chains have foreign rules",
            lines: on_both(&["-I cali-FORWARD 1 -j ACCEPT", "-A cali-INPUT -j ACCEPT"]),
        },
        Mischief {
            what: "rules come before the ways into our chains",
            lines: on_both(&["-t raw -I PREROUTING 1 -p tcp --dport 9997 -j ACCEPT"]),
        },
        Mischief {
            what: "all sets are empty",
            lines: ours
                .map(|name| ("ipset", format!("flush {name}")))
                .collect(),
        },
    ]
}
