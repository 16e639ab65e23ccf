use tortie_kernel::sysctl::{Error, Group, Sysctl, Workload, workload_interface};

use crate::links::support::{in_namespace, veth};

const BOTH: Workload<'_> = Workload {
    ipv4: true,
    ipv6: true,
    rp_filter: "2",
};

#[track_caller]
fn value(group: Group, interface: &str, setting: &'static str) -> String {
    Sysctl::of_interface(group, interface, setting)
        .unwrap()
        .read()
        .unwrap()
}

#[test]
fn settings_are_those_of_the_threads_namespace() {
    let forward = Sysctl::new("net/ipv4/ip_forward");
    let before = forward.read().unwrap();
    in_namespace(|_| {
        forward.write("0").unwrap();
        assert_eq!(forward.read().unwrap(), "0");
        forward.write("1").unwrap();
        assert_eq!(forward.read().unwrap(), "1");
    });
    assert_eq!(forward.read().unwrap(), before);
}

#[test]
fn a_workloads_interface_gets_all_its_settings() {
    in_namespace(|socket| {
        veth(socket, "cali.1", "b");
        let tolerated = workload_interface("cali.1", BOTH).unwrap();
        assert!(tolerated.is_empty(), "{tolerated:?}");
        for (group, setting, expected) in [
            (Group::Ipv6, "accept_ra", "0"),
            (Group::Ipv4, "route_localnet", "1"),
            (Group::Ipv4Neighbours, "proxy_delay", "0"),
            (Group::Ipv4, "proxy_arp", "1"),
            (Group::Ipv4, "forwarding", "1"),
            (Group::Ipv4, "rp_filter", "2"),
            (Group::Ipv6, "proxy_ndp", "1"),
            (Group::Ipv6, "forwarding", "1"),
        ] {
            assert_eq!(value(group, "cali.1", setting), expected, "{setting}");
        }
    });
}

#[test]
fn the_settings_of_a_family_that_is_not_wanted_stay() {
    in_namespace(|socket| {
        veth(socket, "a", "b");
        let ipv6 = Workload {
            ipv4: false,
            ..BOTH
        };
        workload_interface("a", ipv6).unwrap();
        assert_eq!(value(Group::Ipv4, "a", "proxy_arp"), "0");
        assert_eq!(value(Group::Ipv6, "a", "proxy_ndp"), "1");

        let ipv4 = Workload {
            ipv6: false,
            ..BOTH
        };
        workload_interface("b", ipv4).unwrap();
        assert_eq!(value(Group::Ipv6, "b", "proxy_ndp"), "0");
        assert_eq!(value(Group::Ipv6, "b", "accept_ra"), "0");
        assert_eq!(value(Group::Ipv4, "b", "proxy_arp"), "1");
    });
}

#[test]
fn errors_name_file_and_value_and_tell_what_is_missing() {
    in_namespace(|socket| {
        veth(socket, "a", "b");
        let wrong = Workload {
            rp_filter: "many",
            ..BOTH
        };
        let error = workload_interface("a", wrong).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot write `many` to /proc/sys/net/ipv4/conf/a/rp_filter"
        );
        assert!(!error.is_missing());

        let error = workload_interface("gone", BOTH).unwrap_err();
        assert!(matches!(error, Error::MissingInterface { .. }), "{error}");
        assert!(error.is_missing());

        let no_setting = Sysctl::of_interface(Group::Ipv4, "a", "no_setting").unwrap();
        assert!(no_setting.read().unwrap_err().is_missing());
        assert!(no_setting.write("1").unwrap_err().is_missing());
        for name in ["all", "default", "../all", ""] {
            let error = workload_interface(name, BOTH).unwrap_err();
            assert!(
                matches!(error, Error::NotAnInterface { .. }),
                "{name}: {error}"
            );
        }
    });
}
