//! What local workloads are besides subjects of policy: BGP peers, parts of a mesh, machines on the move.

use tortie_engine::Config;
use tortie_engine::input::{MigrationSource, MigrationTarget};

use crate::states::build::{
    LOCAL, Object, host, migration, node, peer, pod, pod_key, profile, remote_pod,
};
use crate::states::list::{bare_world, check, check_with};

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

/// A pod of Kubernetes in a namespace.
fn in_namespace(name: &str) -> Object {
    pod(name)
        .label("projectcalico.org/orchestrator", "k8s")
        .profiles(&["kns.mesh"])
}

#[test]
fn workloads_join_the_mesh_by_their_label_or_that_of_their_namespace() {
    let config = Config {
        istio_ambient: true,
        ..Config::for_node(LOCAL)
    };
    let mode = |object: Object, value: &str| object.label("istio.io/dataplane-mode", value);
    let namespace = |value: &str| profile("kns.mesh").label("pcns.istio.io/dataplane-mode", value);
    let a = || in_namespace("a").ip("10.0.0.1");
    let b = || {
        remote_pod("b")
            .ip("10.0.0.2")
            .label("projectcalico.org/orchestrator", "k8s")
    };
    check_with(
        &config,
        [
            bare_world([a(), b(), namespace("ambient")]).gives(
                "{all-istio-weps}: 10.0.0.1/32
                 profile kns.mesh
                 pod a 10.0.0.1 | profiles kns.mesh | ambient
                 namespace mesh: istio.io/dataplane-mode=ambient",
            ),
            bare_world([
                mode(a(), "none"),
                mode(b(), "ambient"),
                namespace("ambient"),
            ])
            .gives(
                "{all-istio-weps}: 10.0.0.2/32
                 profile kns.mesh
                 pod a 10.0.0.1 | profiles kns.mesh
                 namespace mesh: istio.io/dataplane-mode=ambient",
            ),
            bare_world([
                mode(a(), "ambient"),
                mode(b(), "ambient"),
                namespace("other"),
            ])
            .gives(
                "{all-istio-weps}: 10.0.0.1/32 10.0.0.2/32
                 profile kns.mesh
                 pod a 10.0.0.1 | profiles kns.mesh | ambient
                 namespace mesh: istio.io/dataplane-mode=other",
            ),
            bare_world([a(), namespace("other")]).gives(
                "{all-istio-weps}:
                 profile kns.mesh
                 pod a 10.0.0.1 | profiles kns.mesh
                 namespace mesh: istio.io/dataplane-mode=other",
            ),
        ],
    );
}

#[test]
fn without_a_mesh_its_labels_mean_nothing() {
    check([
        bare_world([in_namespace("a").label("istio.io/dataplane-mode", "ambient")]).gives(
            "profile kns.mesh: in deny; out deny
             pod a | profiles kns.mesh",
        ),
    ]);
}
