use std::os::fd::AsFd as _;
use std::time::Duration;

use ipnet::IpNet;
use tortie_kernel::monitor::{Event, Monitor, Topics};
use tortie_kernel::poll::{Waker, wait};
use tortie_kernel::route::{Batch, Protocol, Route, Socket};

use crate::links::support::{in_namespace, this_namespace, veth};

const EVERYTHING: Topics = Topics {
    addresses: true,
    routes: true,
};

fn is_ready(monitor: &Monitor, milliseconds: u64) -> bool {
    let timeout = Some(Duration::from_millis(milliseconds));
    wait(&[monitor.as_fd()], timeout).unwrap()[0]
}

#[test]
fn links_addresses_and_routes_are_told_of_as_they_change() {
    in_namespace(|socket| {
        let mut monitor = Monitor::open(EVERYTHING).unwrap();
        assert!(!is_ready(&monitor, 0));
        assert_eq!(monitor.drain().unwrap(), []);

        let (a, _) = veth(socket, "a", "b");
        assert!(is_ready(&monitor, 60_000));
        let events = monitor.drain().unwrap();
        let is_new = |event: &Event| matches!(event, Event::Link(l) if l.name == "a" && !l.is_up);
        let is_up =
            |event: &Event| matches!(event, Event::Link(l) if l.name == "a" && l.is_running);
        let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted);
        assert!(
            place(&is_new).unwrap() < place(&is_up).unwrap(),
            "{events:?}"
        );

        let address: IpNet = "192.0.2.1/24".parse().unwrap();
        let route = Route {
            device: Some(a.index),
            protocol: Protocol::CALICO,
            ..Route::to("10.0.0.0/26".parse().unwrap())
        };
        change(socket, |batch| batch.add_address(a.index, address));
        change(socket, |batch| batch.add_route(&route));
        let events = monitor.drain().unwrap();
        let link = a.index;
        assert!(
            events.contains(&Event::Address { link, address }),
            "{events:?}"
        );
        assert!(events.contains(&Event::Route(route.clone())), "{events:?}");

        change(socket, |batch| batch.delete_route(&route));
        change(socket, |batch| batch.delete_address(a.index, address));
        change(socket, |batch| batch.delete_link(a.index));
        let events = monitor.drain().unwrap();
        assert!(events.contains(&Event::RouteGone(route)), "{events:?}");
        assert!(
            events.contains(&Event::AddressGone { link, address }),
            "{events:?}"
        );
        let gone = events
            .iter()
            .any(|e| matches!(e, Event::LinkGone(l) if l.name == "a"));
        assert!(gone, "{events:?}");
    });
}

#[test]
fn only_what_was_asked_for_is_told() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let mut links = Monitor::open(Topics::default()).unwrap();
        let (device, destination) = (Some(a.index), "10.0.0.0/26".parse().unwrap());
        change(socket, |batch| {
            batch.add_address(a.index, "192.0.2.1/24".parse().unwrap());
        });
        change(socket, |batch| {
            batch.add_route(&Route {
                device,
                ..Route::to(destination)
            });
        });
        change(socket, |batch| batch.set_link_mtu(a.index, 1400));
        let events = links.drain().unwrap();
        assert!(
            events
                .iter()
                .any(|e| matches!(e, Event::Link(l) if l.mtu == 1400))
        );
        assert!(
            events.iter().all(|e| matches!(e, Event::Link(_))),
            "{events:?}"
        );
    });
}

#[test]
fn what_did_not_fit_is_told_as_lost_and_then_it_goes_on() {
    in_namespace(|socket| {
        let (a, _) = veth(socket, "a", "b");
        let mut monitor = Monitor::open(EVERYTHING).unwrap();
        let route = |number: u32| {
            let destination = IpNet::new((0x0a00_0000 + number).to_be_bytes().into(), 32).unwrap();
            Route {
                device: Some(a.index),
                ..Route::to(destination)
            }
        };
        // Each notification takes most of a kilobyte there.
        change(socket, |batch| {
            for number in 0..60_000 {
                batch.add_route(&route(number));
            }
        });
        let events = monitor.drain().unwrap();
        assert!(events.contains(&Event::Lost));
        assert!(events.len() < 60_000);

        change(socket, |batch| batch.add_route(&route(70_000)));
        let events = monitor.drain().unwrap();
        assert!(events.contains(&Event::Route(route(70_000))), "{events:?}");
        assert!(!events.contains(&Event::Lost));
    });
}

#[test]
fn one_thread_waits_for_the_monitor_and_a_waker() {
    in_namespace(|socket| {
        let monitor = Monitor::open(Topics::default()).unwrap();
        let waker = Waker::new().unwrap();
        let both = || {
            wait(
                &[monitor.as_fd(), waker.as_fd()],
                Some(Duration::from_mins(1)),
            )
            .unwrap()
        };
        waker.wake();
        assert_eq!(both(), [false, true]);
        waker.clear();
        let here = this_namespace();
        change(socket, |batch| batch.create_veth("a", "b", here.as_fd()));
        assert_eq!(both(), [true, false]);
    });
}

#[track_caller]
fn change(socket: &mut Socket, fill: impl FnOnce(&mut Batch)) {
    socket.execute(fill).unwrap();
}
