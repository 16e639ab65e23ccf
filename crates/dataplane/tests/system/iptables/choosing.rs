//! Which kind of iptables is chosen.

use std::path::PathBuf;

use tortie_dataplane::Driver as _;
use tortie_dataplane::iptables::{IptablesDriver, Options, Variant};
use tortie_kernel::namespace;
use tortie_rules::IpVersion;

use crate::iptables::support::{everywhere, full, run};

const OTHER_V4: [(&str, Variant); 2] = [
    ("iptables-legacy", Variant::Legacy),
    ("iptables-nft", Variant::Nft),
];

fn chosen(ip_version: IpVersion) -> Variant {
    IptablesDriver::new(&Options::new(ip_version))
        .unwrap()
        .variant()
}

#[track_caller]
fn check(commands: &[(&str, &[&str])], expected: Variant) {
    namespace::run_in_new(|| {
        for (program, arguments) in commands {
            run(program, arguments, "");
        }
        for ip_version in [IpVersion::V4, IpVersion::V6] {
            assert_eq!(chosen(ip_version), expected, "{commands:?}");
        }
    })
    .unwrap();
}

const RULE: &[&str] = &["-A", "INPUT", "-j", "DROP"];
const HINT: &[&str] = &["-t", "mangle", "-N", "KUBE-IPTABLES-HINT"];
const CANARY: &[&str] = &["-t", "mangle", "-N", "KUBE-KUBELET-CANARY"];

#[test]
fn the_one_with_more_rules() {
    for (program, variant) in OTHER_V4 {
        check(&[(program, RULE)], variant);
    }
    check(&[("ip6tables-nft", RULE)], Variant::Nft);
    check(
        &[
            ("iptables-legacy", RULE),
            ("iptables-nft", RULE),
            ("ip6tables-legacy", RULE),
        ],
        Variant::Legacy,
    );
}

#[test]
fn the_one_that_the_kubelet_uses_whatever_the_rules() {
    check(
        &[("iptables-legacy", RULE), ("ip6tables-nft", HINT)],
        Variant::Nft,
    );
    check(
        &[("iptables-nft", RULE), ("iptables-legacy", CANARY)],
        Variant::Legacy,
    );
}

#[test]
fn the_one_of_the_last_run() {
    everywhere(|node| {
        node.driver_with(&full(node));
        assert_eq!(chosen(node.ip_version), node.variant);
    });
}

#[test]
fn a_lock_that_may_not_be_written_is_replaced() {
    everywhere(|node| {
        let options = Options {
            lock_file: PathBuf::from("/proc/no/such/lock"),
            ..node.options()
        };
        let mut driver = IptablesDriver::new(&options).unwrap();
        driver.apply(&full(node)).unwrap();
        assert_eq!(driver.check().unwrap(), []);
    });
}
