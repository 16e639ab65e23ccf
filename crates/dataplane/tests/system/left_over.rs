//! What another data plane left behind goes; what others made stays.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tortie_dataplane::iptables::Variant;
use tortie_dataplane::nftables::NftablesDriver;
use tortie_dataplane::{Batch, Driver as _, Part, remove_left_overs};
use tortie_rules::IpVersion;

const RULES: &str = "\
*filter
:cali-FORWARD - [0:0]
:other - [0:0]
-A FORWARD -m comment --comment \"cali:wUHhoiAYhphO9Mso\" -j cali-FORWARD
-A FORWARD -s 192.0.2.1 -j DROP
-A cali-FORWARD -m comment --comment \"cali:W_vvds1Nw3n9QE2f\" -m set --match-set cali40s:old src -j DROP
-A other -j ACCEPT
COMMIT
";

fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("a reader");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8(output.stdout).expect("text")
}

fn remove_all_but(in_use: Part) {
    for version in [IpVersion::V4, IpVersion::V6] {
        remove_left_overs(in_use, version).expect("nothing is in the way");
    }
}

fn check_iptables(variant: &str) {
    tortie_kernel::namespace::run_in_new(|| {
        run(
            "ipset",
            &["restore"],
            "create cali40s:old hash:net family inet\n",
        );
        run("ipset", &["restore"], "create others hash:ip family inet\n");
        run(
            &format!("iptables-{variant}-restore"),
            &["--noflush"],
            RULES,
        );

        remove_all_but(Part::Nftables);

        let rules = run(&format!("iptables-{variant}-save"), &["-t", "filter"], "");
        assert!(!rules.contains("cali"), "{rules}");
        assert!(
            rules.contains("-A FORWARD -s 192.0.2.1/32 -j DROP"),
            "{rules}"
        );
        assert!(rules.contains("-A other -j ACCEPT"), "{rules}");
        let sets = run("ipset", &["list", "-name"], "");
        assert_eq!(sets, "others\n");
    })
    .expect("a network namespace");
}

#[test]
fn of_legacy_iptables() {
    check_iptables("legacy");
}

#[test]
fn of_iptables_on_nftables() {
    check_iptables("nft");
}

#[test]
fn of_nftables() {
    tortie_kernel::namespace::run_in_new(|| {
        run("nft", &["add table ip others"], "");
        let full = Batch {
            is_full: true,
            ..Batch::default()
        };
        let mut driver = NftablesDriver::open(IpVersion::V4).expect("a socket");
        driver.apply(&full).expect("an empty table");
        assert!(run("nft", &["list", "tables"], "").contains("table ip calico"));

        remove_all_but(Part::Iptables(Variant::Legacy));
        assert_eq!(run("nft", &["list", "tables"], ""), "table ip others\n");
    })
    .expect("a network namespace");
}
