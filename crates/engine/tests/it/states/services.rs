//! Rules about services: the endpoints in the slices, with their ports for destinations, without for sources.

use crate::states::build::{pod, policy, slice};
use crate::states::list::{State, check, world};
use crate::states::rule::{RuleOf, allow};

fn under(rule: RuleOf) -> State {
    world([pod("a"), policy("p").outbound(rule)])
}

#[test]
fn a_service_as_destination_is_its_endpoints_with_their_ports() {
    let rule = || allow().to_service("ns/web");
    check([
        under(rule()).gives(
            "{svc ns/web}:
             policy gnp/p: out allow to service {svc ns/web}
             pod a | default=deny both gnp/p",
        ),
        under(rule())
            .and([slice(
                "ns/web-1",
                "web",
                &["10.0.0.2", "10.0.0.3"],
                &["tcp:80", "udp:53"],
            )])
            .gives(
                "{svc ns/web}: 10.0.0.2,tcp:80 10.0.0.2,udp:53 10.0.0.3,tcp:80 10.0.0.3,udp:53
                 policy gnp/p: out allow to service {svc ns/web}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([slice("ns/web-1", "web", &["10.0.0.3"], &["sctp:80"])])
            .gives(
                "{svc ns/web}: 10.0.0.3,sctp:80
                 policy gnp/p: out allow to service {svc ns/web}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([slice("ns/web-1", "web", &["10.0.0.3"], &[])])
            .gives(
                "{svc ns/web}:
             policy gnp/p: out allow to service {svc ns/web}
             pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn a_service_as_source_is_the_addresses_of_its_endpoints() {
    let rule = || allow().from_service("ns/web");
    check([
        under(rule())
            .and([slice(
                "ns/web-1",
                "web",
                &["10.0.0.2", "10.0.0.3"],
                &["tcp:80", "tcp:81"],
            )])
            .gives(
                "{svcnoport ns/web}: 10.0.0.2/32 10.0.0.3/32
                 policy gnp/p: out allow from {svcnoport ns/web}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([slice("ns/web-1", "web", &["10.0.0.3"], &[])])
            .gives(
                "{svcnoport ns/web}: 10.0.0.3/32
             policy gnp/p: out allow from {svcnoport ns/web}
             pod a | default=deny both gnp/p",
            ),
        under(rule().from("app == 'web'").to_service("ns/web"))
            .and([slice("ns/web-1", "web", &["10.0.0.3"], &["tcp:80"])])
            .gives(
                "{app == 'web'}:
                 {svcnoport ns/web}: 10.0.0.3/32
                 {svc ns/web}: 10.0.0.3,tcp:80
                 policy gnp/p: out allow from {app == 'web'},{svcnoport ns/web} \
                 to service {svc ns/web}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}

#[test]
fn several_slices_make_one_service() {
    let first = || slice("ns/web-1", "web", &["10.0.0.2", "10.0.0.3"], &["tcp:80"]);
    let second = || slice("ns/web-2", "web", &["10.0.0.3", "10.0.0.4"], &["tcp:80"]);
    let rule = || allow().to_service("ns/web");
    check([
        under(rule()).and([first()]).gives(
            "{svc ns/web}: 10.0.0.2,tcp:80 10.0.0.3,tcp:80
             policy gnp/p: out allow to service {svc ns/web}
             pod a | default=deny both gnp/p",
        ),
        under(rule()).and([first(), second()]).gives(
            "{svc ns/web}: 10.0.0.2,tcp:80 10.0.0.3,tcp:80 10.0.0.4,tcp:80
             policy gnp/p: out allow to service {svc ns/web}
             pod a | default=deny both gnp/p",
        ),
        under(rule()).and([second()]).gives(
            "{svc ns/web}: 10.0.0.3,tcp:80 10.0.0.4,tcp:80
             policy gnp/p: out allow to service {svc ns/web}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn a_slice_moves_to_another_service() {
    let objects = |service: &str| {
        world([
            pod("a"),
            policy("p")
                .outbound(allow().to_service("ns/web"))
                .outbound(allow().from_service("ns/db")),
            slice("ns/s", service, &["10.0.0.2"], &["tcp:80"]),
        ])
    };
    check([
        objects("web").gives(
            "{svc ns/web}: 10.0.0.2,tcp:80
             {svcnoport ns/db}:
             policy gnp/p: out allow to service {svc ns/web}; out allow from {svcnoport ns/db}
             pod a | default=deny both gnp/p",
        ),
        objects("db").gives(
            "{svc ns/web}:
             {svcnoport ns/db}: 10.0.0.2/32
             policy gnp/p: out allow to service {svc ns/web}; out allow from {svcnoport ns/db}
             pod a | default=deny both gnp/p",
        ),
        objects("other").gives(
            "{svc ns/web}:
             {svcnoport ns/db}:
             policy gnp/p: out allow to service {svc ns/web}; out allow from {svcnoport ns/db}
             pod a | default=deny both gnp/p",
        ),
    ]);
}

#[test]
fn services_of_other_namespaces_are_other_services() {
    let slices = || {
        [
            slice("red/s", "web", &["10.0.0.2"], &["tcp:80"]),
            slice("blue/s", "web", &["10.0.0.3"], &["tcp:80"]),
        ]
    };
    check([
        under(allow().to_service("red/web")).and(slices()).gives(
            "{svc red/web}: 10.0.0.2,tcp:80
             policy gnp/p: out allow to service {svc red/web}
             pod a | default=deny both gnp/p",
        ),
        under(allow().to_service("blue/web")).and(slices()).gives(
            "{svc blue/web}: 10.0.0.3,tcp:80
             policy gnp/p: out allow to service {svc blue/web}
             pod a | default=deny both gnp/p",
        ),
        under(allow().from_service("blue/web")).and(slices()).gives(
            "{svcnoport blue/web}: 10.0.0.3/32
             policy gnp/p: out allow from {svcnoport blue/web}
             pod a | default=deny both gnp/p",
        ),
        world([pod("a")]).and(slices()).gives("pod a"),
    ]);
}

#[test]
fn an_address_in_two_slices_or_twice_in_one_is_one_member() {
    let rule = || allow().from_service("ns/web").to_service("ns/web");
    check([
        under(rule())
            .and([
                slice(
                    "ns/1",
                    "web",
                    &["10.0.0.2", "10.0.0.2"],
                    &["tcp:80", "tcp:80"],
                ),
                slice("ns/2", "web", &["10.0.0.2"], &["tcp:80"]),
            ])
            .gives(
                "{svcnoport ns/web}: 10.0.0.2/32
                 {svc ns/web}: 10.0.0.2,tcp:80
                 policy gnp/p: out allow from {svcnoport ns/web} to service {svc ns/web}
                 pod a | default=deny both gnp/p",
            ),
        under(rule())
            .and([slice("ns/1", "web", &["10.0.0.2"], &["tcp:81"])])
            .gives(
                "{svcnoport ns/web}: 10.0.0.2/32
                 {svc ns/web}: 10.0.0.2,tcp:81
                 policy gnp/p: out allow from {svcnoport ns/web} to service {svc ns/web}
                 pod a | default=deny both gnp/p",
            ),
    ]);
}
