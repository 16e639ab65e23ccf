//! Sets.

use tortie_dataplane::iptables::Variant;
use tortie_dataplane::{Driver as _, Members, SetKind};
use tortie_engine::message::{Member, PortProtocol};
use tortie_rules::IpVersion;

use crate::iptables::support::{
    Node, everywhere, full, members, run, set_names, sets, with_both_versions,
};

fn initial_value(set: &str) -> String {
    let text = run("ipset", &["list", "-t", set], "");
    let header = text
        .lines()
        .find(|line| line.starts_with("Header:"))
        .unwrap();
    header.split(' ').next_back().unwrap().to_owned()
}

fn delta(node: Node, added: Vec<Member>, removed: Vec<Member>) -> tortie_dataplane::Batch {
    let change = Members::Delta { added, removed };
    sets(vec![node.set("set", SetKind::Networks, change)])
}

#[test]
fn members_come_and_go_in_place() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let set = node.set_name("set");
        let before = initial_value(&set);
        driver
            .apply(&delta(node, node.addresses(7..10), node.addresses(1..3)))
            .unwrap();
        assert_eq!(members(&set).len(), 4);
        assert_eq!(initial_value(&set), before);
        assert_eq!(driver.check().unwrap(), []);
    });
}

#[test]
fn a_set_in_use_is_replaced_at_once() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        let set = node.set_name("set");
        let before = initial_value(&set);
        driver
            .apply(&sets(vec![node.networks("set", 20..30)]))
            .unwrap();
        assert_eq!(members(&set).len(), 10);
        assert_ne!(initial_value(&set), before, "another set took its place");
        assert_eq!(set_names(), [&*set]);
        assert_eq!(driver.check().unwrap(), []);
        let now = initial_value(&set);
        driver
            .apply(&sets(vec![node.networks("set", 20..30)]))
            .unwrap();
        assert_eq!(initial_value(&set), now);
    });
}

#[test]
fn a_full_batch_corrects_members_and_limits() {
    everywhere(|node| {
        let batch = full(node);
        let mut driver = node.driver_with(&batch);
        let set = node.set_name("set");
        let members_before = members(&set);
        let before = initial_value(&set);
        let [one, other] = [1, 77].map(|number| node.address(number).to_string());
        run("ipset", &["del", &set, &one], "");
        run("ipset", &["add", &set, &other], "");
        driver.apply(&batch).unwrap();
        assert_eq!(members(&set), members_before);
        assert_eq!(initial_value(&set), before, "few members differed");

        let mut options = node.options();
        options.max_ipset_size = 77;
        let mut driver = tortie_dataplane::iptables::IptablesDriver::new(&options).unwrap();
        driver.apply(&batch).unwrap();
        assert_eq!(members(&set), members_before);
        assert!(run("ipset", &["list", "-t", &set], "").contains("maxelem 77 "));
    });
}

#[test]
fn all_kinds_hold_their_members_and_no_others() {
    everywhere(|node| {
        let v4: std::net::IpAddr = "10.0.0.1".parse().unwrap();
        let v6: std::net::IpAddr = "fd00::1".parse().unwrap();
        let port = |address, protocol| Member::Port(address, protocol, 80);
        let both = [v4, v6];
        let protocols = [PortProtocol::Tcp, PortProtocol::Udp, PortProtocol::Sctp];
        let ports = both.map(|address| protocols.map(|protocol| port(address, protocol)));
        let hosts = both.map(|address| Member::Net(address.into()));
        let all = ["0.0.0.0/0", "::/0"].map(|net| Member::Net(net.parse().unwrap()));
        let mut batch = full(node);
        batch.sets.extend([
            node.set("ports", SetKind::Ports, Members::All(ports.concat())),
            node.set("hosts", SetKind::Addresses, Members::All(hosts.to_vec())),
            node.set("all", SetKind::Networks, Members::All(all.to_vec())),
        ]);
        node.driver_with(&batch);
        let [ports, hosts, all] =
            ["ports", "hosts", "all"].map(|name| members(&node.set_name(name)));
        match node.ip_version {
            IpVersion::V4 => {
                assert_eq!(
                    ports,
                    ["10.0.0.1,sctp:80", "10.0.0.1,tcp:80", "10.0.0.1,udp:80"]
                );
                assert_eq!(hosts, ["10.0.0.1"]);
                assert_eq!(all, ["0.0.0.0/1", "128.0.0.0/1"]);
            }
            IpVersion::V6 => {
                assert_eq!(
                    ports,
                    ["fd00::1,sctp:80", "fd00::1,tcp:80", "fd00::1,udp:80"]
                );
                assert_eq!(hosts, ["fd00::1"]);
                assert_eq!(all, ["8000::/1", "::/1"]);
            }
        }
    });
}

#[test]
fn a_set_of_networks_in_use_may_hold_addresses_and_an_unused_one_changes_its_type() {
    everywhere(|node| {
        let mut batch = full(node);
        batch.sets.push(node.networks("unused", 1..2));
        node.driver_with(&batch);
        batch.sets = vec![
            node.set(
                "set",
                SetKind::Addresses,
                Members::All(node.addresses(5..7)),
            ),
            node.set("unused", SetKind::Ports, Members::All(Vec::new())),
        ];
        node.driver_with(&batch);
        assert_eq!(members(&node.set_name("set")).len(), 2);
        let unused = run("ipset", &["save", &node.set_name("unused")], "");
        assert!(unused.contains("hash:ip,port"), "{unused}");
    });
}

#[test]
fn a_set_that_others_use_stays_and_is_used_again() {
    everywhere(|node| {
        let mut driver = node.driver_with(&full(node));
        driver
            .apply(&sets(vec![node.networks("shared", 1..9)]))
            .unwrap();
        let shared = node.set_name("shared");
        node.iptables(&format!("-A INPUT -m set --match-set {shared} src -j DROP"));
        let gone = |name| node.set(name, SetKind::Networks, Members::Gone);
        driver
            .apply(&sets(vec![gone("shared"), node.networks("other", 1..2)]))
            .unwrap();
        driver.apply(&sets(vec![gone("other")])).unwrap();
        assert_eq!(driver.check().unwrap(), []);
        driver
            .apply(&sets(vec![node.networks("shared", 1..3)]))
            .unwrap();
        assert_eq!(members(&shared).len(), 2);
        assert_eq!(set_names(), [&*node.set_name("set"), &*shared]);
    });
}

#[test]
fn a_hundred_thousand_members() {
    with_both_versions(Variant::Legacy, |node| {
        let mut batch = full(node);
        batch.sets.push(node.networks("large", 0..100_000));
        let mut driver = node.driver_with(&batch);
        let large = node.set_name("large");
        assert_eq!(members(&large).len(), 100_000);
        let change = Members::Delta {
            added: node.addresses(200_000..200_100),
            removed: node.addresses(500..600),
        };
        driver
            .apply(&sets(vec![node.set("large", SetKind::Networks, change)]))
            .unwrap();
        assert_eq!(driver.check().unwrap(), []);
        driver.apply(&batch).unwrap();
        assert_eq!(driver.compare(&batch).unwrap(), []);
    });
}
