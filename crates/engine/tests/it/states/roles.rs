//! What local workloads are besides subjects of policy: BGP peers, machines on the move.

use tortie_engine::input::{MigrationSource, MigrationTarget};

use crate::states::build::{
    LOCAL, Object, host, migration, node, peer, pod, pod_key, profile, remote_pod,
};
use crate::states::list::{bare_world, check};

fn router() -> Object {
    pod("a").label("role", "router")
}

#[test]
fn a_workload_is_the_first_peer_by_name_that_selects_it() {
    check([
        bare_world([router(), peer("p2", "role == 'router'", "")]).gives("pod a | peer p2"),
        bare_world([
            router(),
            peer("p2", "role == 'router'", ""),
            peer("p1", "has(role)", ""),
            peer("p0", "has(other)", ""),
            peer("p", "", ""),
        ])
        .gives("pod a | peer p1"),
        bare_world([
            router(),
            pod("b"),
            host("h").label("role", "router"),
            peer("p", "all()", ""),
        ])
        .gives(
            "pod a | peer p
                 pod b | peer p
                 host h on eth0",
        ),
        bare_world([router(), peer("p", "role ==", "")]).gives("pod a"),
    ]);
}

#[test]
fn a_peer_is_for_the_nodes_that_it_selects() {
    let here = |rack: &str| node(LOCAL, &[("rack", rack)]);
    check([
        bare_world([router(), here("1"), peer("p", "has(role)", "rack == '1'")]).gives(
            "pod a | peer p
             node here: {\"hostname\":\"here\",\"labels\":{\"rack\":\"1\"}}",
        ),
        bare_world([router(), here("2"), peer("p", "has(role)", "rack == '1'")]).gives(
            "pod a
             node here: {\"hostname\":\"here\",\"labels\":{\"rack\":\"2\"}}",
        ),
        bare_world([
            router(),
            here("2"),
            peer("p", "has(role)", "rack == '1'"),
            peer("q", "has(role)", "rack != '1'"),
        ])
        .gives(
            "pod a | peer q
             node here: {\"hostname\":\"here\",\"labels\":{\"rack\":\"2\"}}",
        ),
        // Labels of other nodes do not matter.
        bare_world([
            router(),
            node("there", &[("rack", "1")]),
            peer("p", "has(role)", "rack == '1'"),
        ])
        .gives(
            "pod a
                 node there: {\"hostname\":\"there\",\"labels\":{\"rack\":\"1\"}}",
        ),
    ]);
}

#[test]
fn peers_select_by_inherited_labels_too() {
    let a = || pod("a").profiles(&["t"]);
    check([
        bare_world([
            a(),
            profile("t").label("role", "router"),
            peer("p", "role == 'router'", ""),
        ])
        .gives(
            "profile t
                 pod a | profiles t | peer p",
        ),
        bare_world([
            a(),
            profile("t").label("role", "x"),
            peer("p", "role == 'router'", ""),
        ])
        .gives(
            "profile t
             pod a | profiles t",
        ),
        bare_world([
            a().label("role", "router"),
            peer("p", "role == 'router'", ""),
        ])
        .gives(
            "profile t: in deny; out deny
             pod a | profiles t | peer p",
        ),
    ]);
}

#[test]
fn a_migration_has_a_source_and_a_target() {
    let source = || {
        Some(MigrationSource::Workload {
            node: String::new(),
            orchestrator: "k8s".to_owned(),
            workload: "default/a".to_owned(),
        })
    };
    let target = || Some(MigrationTarget::Selector("uid == 'm'".to_owned()));
    let b = || pod("b").label("uid", "m");
    check([
        bare_world([pod("a"), migration("u1", source(), target())]).gives("pod a | source of u1"),
        bare_world([pod("a"), b(), migration("u1", source(), target())]).gives(
            "pod a | source of u1
             pod b | target of u1",
        ),
        bare_world([pod("a"), b()]).gives(
            "pod a
             pod b",
        ),
        bare_world([remote_pod("a"), b(), migration("u1", source(), target())])
            .gives("pod b | target of u1"),
    ]);
}

#[test]
fn of_several_migrations_the_greatest_identifier_counts_and_targets_come_first() {
    let a = || pod_key("elsewhere", "a");
    let from_a = || Some(MigrationSource::Endpoint(a()));
    let to_a = || Some(MigrationTarget::Endpoint(a()));
    let to_selected = || Some(MigrationTarget::Selector("has(machine)".to_owned()));
    let machine = || pod("a").label("machine", "1");
    check([
        bare_world([
            machine(),
            migration("u1", from_a(), None),
            migration("u2", from_a(), None),
        ])
        .gives("pod a | source of u2"),
        bare_world([
            machine(),
            migration("u1", None, to_a()),
            migration("u2", from_a(), None),
        ])
        .gives("pod a | target of u1"),
        bare_world([
            machine(),
            migration("u1", None, to_selected()),
            migration("u2", None, to_a()),
            migration("u3", from_a(), None),
        ])
        .gives("pod a | target of u1"),
        bare_world([machine(), migration("u1", None, None)]).gives("pod a"),
    ]);
}

#[test]
fn a_pod_of_a_virtual_machine_names_it() {
    check([
        bare_world([pod("a").label("vm.kubevirt.io/name", "vm")]).gives("pod a | machine vm"),
        bare_world([pod("a")
            .label("vm.kubevirt.io/name", "vm")
            .label("vmi.kubevirt.io/id", "vmi")
            .label("kubevirt.io", "virt-launcher")])
        .gives("pod a | machine vmi | no short cut in"),
    ]);
}
