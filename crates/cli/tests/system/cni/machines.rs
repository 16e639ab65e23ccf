//! Virtual machines of `KubeVirt`, of which only the objects are there: they keep their addresses from pod to pod.

mod cluster;

use serde_json::json;

use self::cluster::{Machine, Machines, owner};
use crate::cni::site::{Container, addresses};

const HANDLE: &str = "net.vmi.shop.vm";

#[test]
fn a_machine_has_one_address_in_all_its_pods_until_it_is_deleted() {
    let mut machines = Machines::new();
    let vm = machines.machine("vm");
    let first = machines.pod("a", &vm, None);
    let (address, _) = machines.add(&first);
    machines.cluster.site.assert_reachable(&first, &address);
    assert_eq!(machines.handles(), [HANDLE]);
    let (facts, alternate) = machines.owners(&address);
    assert_eq!(facts["pod"], "virt-launcher-a");
    assert_eq!(facts["namespace"], "shop");
    assert_eq!(facts["node"], "n1");
    assert_eq!(facts["vmi-name"], "vm");
    assert_eq!(facts["vmi-uid"], vm.uid.as_str());
    assert!(facts["vm-uid"].is_string() && facts["vmim-uid"].is_null());
    assert!(alternate.is_null());
    let (again, result) = machines.add(&first);
    assert_eq!(again, address);
    machines.check(&first, &result);

    // No container that is known to the runtime runs it, and it stays nevertheless.
    let mut settings = machines.settings.clone();
    settings["cniVersion"] = json!("1.1.0");
    settings["cni.dev/valid-attachments"] = json!([]);
    let collected = machines.cluster.site.calico("GC", &first, &settings);
    collected.unwrap();
    assert_eq!(machines.handles(), [HANDLE]);

    for _ in 0..2 {
        machines.del(&first);
        assert_eq!(machines.handles(), [HANDLE]);
        assert_eq!(machines.pods_of(&address), ["", ""]);
    }
    assert_eq!(machines.cluster.site.interfaces(), Vec::<String>::new());
    let why = machines.cluster.tortie(&["ipam", "why", &address], "");
    assert!(why.contains("in use by virtual machine shop/vm"), "{why}");
    let checked = machines
        .cluster
        .tortie(&["ipam", "check", "--show-problem-ips"], "");
    assert!(checked.contains("found 0 problems"), "{checked}");

    // A new instance of the same machine.
    machines.delete("VirtualMachineInstance", "vm");
    machines.let_go("VirtualMachineInstance", "vm");
    let vm = machines.machine("vm");
    let second = machines.pod("b", &vm, None);
    assert_eq!(machines.add(&second).0, address);
    assert_eq!(machines.pods_of(&address), ["b", ""]);
    machines.cluster.site.assert_reachable(&second, &address);
    // One that takes its place while it is stuck.
    let third = machines.pod("c", &vm, None);
    machines.del(&second);
    machines.add(&third);
    machines.del(&second);
    assert_eq!(machines.pods_of(&address), ["c", ""]);

    // Whatever becomes of the instance, the machine decides.
    machines.delete("VirtualMachineInstance", "vm");
    machines.del(&third);
    machines.let_go("VirtualMachineInstance", "vm");
    machines.del(&third);
    assert_eq!(machines.handles(), [HANDLE]);
    machines.delete("VirtualMachine", "vm");
    machines.del(&third);
    assert_eq!(machines.handles(), Vec::<String>::new());
    machines.del(&third);

    let other = machines.machine("other");
    let last = machines.pod("d", &other, None);
    machines.add(&last);
    for kind in ["VirtualMachine", "VirtualMachineInstance"] {
        machines.delete(kind, "other");
        machines.let_go(kind, "other");
    }
    machines.del(&last);
    assert_eq!(machines.handles(), Vec::<String>::new());
}

#[test]
fn a_machine_that_moves_is_in_two_pods_and_packets_go_to_the_first_until_that_is_gone() {
    let machines = Machines::new();
    let vm = machines.machine("vm");
    let target = machines.pod("b", &vm, Some("m1"));
    machines.refuse(&target, &["virt-launcher-b", HANDLE]);
    let source = machines.pod("a", &vm, None);
    let (address, source_result) = machines.add(&source);
    let (found, target_result) = machines.add(&target);
    assert_eq!(found, address);
    assert_eq!(
        source_result["routes"][0]["dst"],
        json!(format!("{address}/29"))
    );
    assert_eq!(target_result.get("routes"), None, "{target_result}");
    assert_eq!(machines.pods_of(&address), ["a", "b"]);
    assert_eq!(machines.owners(&address).1["vmim-uid"], "m1");
    machines.cluster.site.assert_reachable(&source, &address);
    machines.check(&source, &source_result);
    machines.check(&target, &target_result);
    let checked = machines
        .cluster
        .tortie(&["ipam", "check", "--show-problem-ips"], "");
    assert!(checked.contains("found 0 problems"), "{checked}");

    // It fails, and is tried again with another pod.
    machines.del(&target);
    assert_eq!(machines.pods_of(&address), ["a", ""]);
    let target = machines.pod("c", &vm, Some("m2"));
    assert_eq!(machines.add(&target).0, address);
    for _ in 0..2 {
        machines.del(&source);
        assert_eq!(machines.pods_of(&address), ["c", ""]);
    }
    let (found, result) = machines.add(&target);
    assert_eq!(found, address);
    assert_eq!(result["routes"][0]["dst"], json!(format!("{address}/32")));
    machines.cluster.site.assert_reachable(&target, &address);

    // Both go while the machine is deleted.
    let next = machines.pod("d", &vm, Some("m3"));
    machines.add(&next);
    machines.delete("VirtualMachine", "vm");
    machines.del(&target);
    assert_eq!(machines.pods_of(&address), ["d", ""]);
    machines.del(&next);
    assert_eq!(machines.handles(), Vec::<String>::new());
}

#[test]
fn pods_have_addresses_of_their_own_where_machines_do_not_keep_theirs() {
    let machines = Machines::new();
    let vm = machines.machine("vm");
    machines.set_persistence("Disabled");
    let target = machines.pod("b", &vm, Some("m1"));
    machines.refuse(
        &target,
        &["virt-launcher-b", "kubeVirtVMAddressPersistence", "m1"],
    );
    let pod = machines.pod("a", &vm, None);
    let (_, result) = machines.add(&pod);
    assert_eq!(machines.handles(), ["net.id-virt-launcher-a"]);
    machines.check(&pod, &result);
    machines.set_persistence("Enabled");
    machines.check(&pod, &result);
    machines.del(&pod);
    assert_eq!(machines.handles(), Vec::<String>::new());

    machines.add(&pod);
    assert_eq!(machines.handles(), [HANDLE]);
    machines.set_persistence("Disabled");
    machines.del(&pod);
    assert_eq!(machines.handles(), Vec::<String>::new());
}

#[test]
fn an_instance_on_its_own_keeps_its_address_and_errors_name_what_is_missing() {
    let machines = Machines::new();
    let alone = machines.instance("vm", &json!([]));
    let pod = machines.pod("a", &alone, None);
    let call = |command, container: &Container| {
        let site = &machines.cluster.site;
        site.plugin("calico-ipam", command, container, &machines.settings)
    };
    let result = call("ADD", &pod).unwrap();
    let address = addresses(&result).remove(0);
    assert!(machines.owners(&address).0["vm-uid"].is_null());
    call("DEL", &pod).unwrap();
    assert_eq!(addresses(&call("ADD", &pod).unwrap()), [address]);
    call("CHECK", &pod).unwrap();
    // The pod is gone before its container is.
    let gone = machines.pod("gone", &alone, None);
    call("ADD", &gone).unwrap();
    machines.kubectl(&[
        "delete",
        "pod",
        "-n",
        "shop",
        "virt-launcher-gone",
        "--force",
    ]);
    call("DEL", &gone).unwrap();
    assert_eq!(machines.handles(), [HANDLE]);
    let (_, message) = call("ADD", &gone).unwrap_err();
    assert!(message.contains("shop/virt-launcher-gone"), "{message}");
    call("ADD", &pod).unwrap();
    machines.delete("VirtualMachineInstance", "vm");
    call("DEL", &pod).unwrap();
    assert_eq!(machines.handles(), Vec::<String>::new());

    let unknown = Machine {
        name: "nothing".to_owned(),
        uid: "u1".to_owned(),
    };
    let pod = machines.pod("b", &unknown, None);
    machines.refuse(&pod, &["VirtualMachineInstance shop/nothing"]);
    machines.del(&pod);
    let other = Machine {
        name: "vm".to_owned(),
        ..unknown
    };
    let pod = machines.pod("c", &other, None);
    machines.refuse(&pod, &["`uid` u1", &alone.uid]);
    let owners = json!([owner("VirtualMachine", "lost", "u2")]);
    let orphan = machines.instance("orphan", &owners);
    let pod = machines.pod("d", &orphan, None);
    machines.refuse(&pod, &["VirtualMachine shop/lost"]);
    assert_eq!(machines.handles(), Vec::<String>::new());
}

#[test]
fn a_cluster_without_virtual_machines_has_pods_of_such_names_like_any_other() {
    let machines = Machines::without_kinds();
    machines.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "virt-launcher-x", "namespace": "shop"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }));
    let pod = Container::of_pod("id-x", "shop", "virt-launcher-x");
    let (address, _) = machines.add(&pod);
    assert_eq!(machines.handles(), ["net.id-x"]);
    machines.cluster.site.assert_reachable(&pod, &address);
    machines.del(&pod);
    assert_eq!(machines.handles(), Vec::<String>::new());

    let unknown = Machine {
        name: "vm".to_owned(),
        uid: "u1".to_owned(),
    };
    let pod = machines.pod("y", &unknown, None);
    machines.refuse(&pod, &["VirtualMachineInstance shop/vm"]);
    machines.del(&pod);
}
