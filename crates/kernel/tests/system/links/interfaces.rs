use std::os::fd::AsFd as _;

use tortie_kernel::link::{Mac, OperState};
use tortie_kernel::route::{Error, Scope};

use crate::links::support::{in_namespace, ip, link, other_namespace, veth};

#[test]
fn a_new_namespace_has_a_loopback_interface_that_is_down() {
    in_namespace(|socket| {
        let links = socket.links().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!((lo.index, lo.is_up, lo.is_running), (1, false, false));
        assert_eq!(lo.mac, Some(Mac([0; 6])));
        assert!(lo.addresses.is_empty());

        socket.execute(|batch| batch.set_link_up(1, true)).unwrap();
        let lo = link(socket, "lo");
        assert!(lo.is_up && lo.is_running);
        assert_eq!(lo.state, OperState::Unknown);
        let both = ["127.0.0.1/8".parse().unwrap(), "::1/128".parse().unwrap()];
        assert_eq!(lo.addresses, both);
    });
}

#[test]
fn the_other_end_of_a_veth_pair_is_in_the_other_namespace() {
    in_namespace(|socket| {
        let other = other_namespace();
        socket
            .execute(|batch| batch.create_veth("cali1", "eth0", other.as_fd()))
            .unwrap();
        let cali = link(socket, "cali1");
        assert_eq!((cali.kind.as_str(), cali.mtu), ("veth", 1500));
        assert_eq!((cali.is_up, cali.state), (false, OperState::Down));
        assert!(cali.lower.is_some());
        assert!(socket.link("eth0").unwrap().is_none());
        assert!(ip("-d link show cali1").contains("link-netnsid"));
    });
}

#[test]
fn links_go_up_and_down_and_say_whether_they_run() {
    in_namespace(|socket| {
        let (a, b) = veth(socket, "a", "b");
        assert!(a.is_up && b.is_up);
        assert!(link(socket, "a").is_running);
        assert_eq!(link(socket, "a").state, OperState::Up);

        socket
            .execute(|batch| batch.set_link_up(b.index, false))
            .unwrap();
        let a = link(socket, "a");
        assert!(a.is_up && !a.is_running);
        assert_eq!(a.state, OperState::LowerLayerDown);
        assert!(!link(socket, "b").is_up);
    });
}

#[test]
fn mac_mtu_and_name_are_changed() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let refused = socket
            .execute(|batch| batch.rename_link(a.index, "b"))
            .unwrap_err();
        assert!(refused.is_existing(), "{refused}");
        socket
            .execute(|batch| {
                batch.set_link_mac(a.index, Mac::CALICO);
                batch.set_link_mtu(a.index, 1400);
                batch.set_link_up(a.index, false);
                batch.rename_link(a.index, "eth0.100");
            })
            .unwrap();
        assert!(socket.link("a").unwrap().is_none());
        let renamed = link(socket, "eth0.100");
        assert_eq!((renamed.index, renamed.mtu), (a.index, 1400));
        assert_eq!(renamed.mac, Some(Mac::CALICO));
        assert!(ip("link show eth0.100").contains("link/ether ee:ee:ee:ee:ee:ee"));
    });
}

#[test]
fn addresses_of_both_families_are_added_and_deleted() {
    in_namespace(|socket| {
        let (a, b) = veth(socket, "a", "b");
        let addresses = ["10.0.0.1/24", "10.0.0.2/32", "fd00::1/64"].map(|a| a.parse().unwrap());
        socket
            .execute(|batch| {
                for address in addresses {
                    batch.add_address(a.index, address);
                }
                batch.add_address(b.index, "10.1.0.1/32".parse().unwrap());
                let local = "169.254.7.7/32".parse().unwrap();
                batch.add_address_of_scope(b.index, local, Scope::LINK);
            })
            .unwrap();
        let has = link(socket, "a").addresses;
        assert!(
            addresses.iter().all(|address| has.contains(address)),
            "{has:?}"
        );
        let printed = ip("addr show dev a");
        assert!(printed.contains("inet 10.0.0.1/24"), "{printed}");
        assert!(printed.contains("inet6 fd00::1/64"), "{printed}");
        assert!(
            !printed.contains("fd00::1/64 scope global tentative"),
            "{printed}"
        );
        let printed = ip("addr show dev b");
        assert!(
            printed.contains("inet 169.254.7.7/32 scope link"),
            "{printed}"
        );
        // Listed with all links, each has its own.
        let links = socket.links().unwrap();
        let all_of = |index| {
            &links
                .iter()
                .find(|link| link.index == index)
                .unwrap()
                .addresses
        };
        assert_eq!(*all_of(a.index), has);
        assert!(all_of(b.index).contains(&"10.1.0.1/32".parse().unwrap()));

        let delete = addresses[0];
        socket
            .execute(|batch| batch.delete_address(a.index, delete))
            .unwrap();
        assert!(!link(socket, "a").addresses.contains(&delete));
        let again = socket
            .execute(|batch| batch.delete_address(a.index, delete))
            .unwrap_err();
        assert!(again.is_missing(), "{again}");
    });
}

#[test]
fn a_deleted_link_takes_its_other_end_with_it() {
    in_namespace(|socket| {
        let (a, b) = veth(socket, "a", "b");
        socket.execute(|batch| batch.delete_link(b.index)).unwrap();
        assert!(socket.link("a").unwrap().is_none());
        let again = socket
            .execute(|batch| batch.delete_link(a.index))
            .unwrap_err();
        assert!(again.is_missing(), "{again}");
        assert!(
            again
                .to_string()
                .contains(&format!("delete interface {}", a.index)),
            "{again}"
        );
    });
}

#[test]
fn errors_name_the_link() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let other = other_namespace();
        let error = socket
            .execute(|batch| batch.create_veth("a", "c", other.as_fd()))
            .unwrap_err();
        assert!(error.is_existing());
        assert_eq!(
            error.to_string(),
            "the kernel refused to create interface `a`"
        );
        let error = socket
            .execute(|batch| batch.create_veth("a_name_that_is_too_long", "c", other.as_fd()))
            .unwrap_err();
        assert!(
            error.to_string().contains("`a_name_that_is_too_long`"),
            "{error}"
        );
        let error = socket
            .execute(|batch| batch.add_address(a.index + 1000, "10.0.0.1/32".parse().unwrap()))
            .unwrap_err();
        assert!(
            error.is_missing() && error.to_string().contains("10.0.0.1/32"),
            "{error}"
        );
        assert!(matches!(error, Error::Refused { .. }));
    });
}
