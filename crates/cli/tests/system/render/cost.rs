//! What policies cost.

use crate::render::support::{Files, HOSTS};

/// Named ports, as many at either end.
fn policy(name: &str, ports: usize) -> String {
    let ports = |prefix: &str| -> String {
        let names = (0..ports).map(|number| format!("{prefix}{number}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let (sources, destinations) = (ports("s"), ports("d"));
    format!(
        "---\n\
         apiVersion: projectcalico.org/v3\n\
         kind: NetworkPolicy\n\
         metadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  \
           selector: app == 'web'\n  \
           types: [Ingress]\n  \
           ingress:\n  \
           - action: Allow\n    \
             protocol: TCP\n    \
             source: {{ports: [{sources}]}}\n    \
             destination: {{ports: [{destinations}]}}\n"
    )
}

#[test]
fn the_most_costly_policy_comes_first() {
    let world = [HOSTS, &policy("small", 3), &policy("large", 40)].join("\n");
    let interface = ["--interface", "eth0=192.168.0.1"];
    let arguments = [&["--node", "n1", "--cost"], &interface[..]].concat();
    let text = Files::of(&world).render(&arguments);
    let rows = text.lines().map(|line| line.split_whitespace().collect());
    let rows: Vec<Vec<&str>> = rows.collect();
    let headings = [
        "KIND",
        "NAMESPACE",
        "NAME",
        "RULES",
        "SETS",
        "MEMBERS",
        "NOTE",
    ];
    assert_eq!(rows[0], headings, "{text}");
    // A rule for each port and one more, and the empty chain of the other direction; for two IP versions.
    assert_eq!(
        rows[1],
        ["NetworkPolicy", "shop", "large", "164", "80", "0"],
        "{text}"
    );
    let small = rows.iter().find(|row| row.contains(&"small"));
    let small = small.expect("the other policy");
    assert_eq!(small[3..5], ["16", "6"], "{text}");
}
