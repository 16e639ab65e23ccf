use serde_json::{Value, json};

use super::*;

fn metadata(value: Value) -> ObjectMeta {
    serde_json::from_value(value).expect("metadata")
}

fn owned_by(kind: &str, version: &str, controller: bool) -> Value {
    json!([{"apiVersion": version, "kind": kind, "name": "vm", "uid": "u1", "controller": controller}])
}

fn pod(owners: &Value, labels: &Value) -> Pod {
    let metadata = metadata(json!({
        "name": "virt-launcher-vm-1", "namespace": "shop", "ownerReferences": owners, "labels": labels,
    }));
    Pod {
        metadata,
        ..Pod::default()
    }
}

fn launcher(labels: &Value) -> Launcher {
    let owners = owned_by("VirtualMachineInstance", "kubevirt.io/v1", true);
    Launcher::read(&pod(&owners, labels))
        .expect("a pod")
        .expect("one that runs a machine")
}

#[test]
fn only_the_owner_tells_whether_a_pod_runs_a_machine() {
    let is_launcher = |owners: &Value| {
        let read = Launcher::read(&pod(owners, &json!({})));
        read.expect("a pod").is_some()
    };
    let kind = "VirtualMachineInstance";
    assert!(is_launcher(&owned_by(kind, "kubevirt.io/v1", true)));
    assert!(!is_launcher(&owned_by(kind, "kubevirt.io/v1", false)));
    assert!(!is_launcher(&owned_by(kind, "example.org/v1", true)));
    assert!(!is_launcher(&owned_by("ReplicaSet", "apps/v1", true)));
    assert!(!is_launcher(&json!([])));
}

#[test]
fn an_owner_without_a_name_is_an_error() {
    let mut owners = owned_by("VirtualMachineInstance", "kubevirt.io/v1", true);
    owners[0]["uid"] = json!("");
    let error = Launcher::read(&pod(&owners, &json!({}))).expect_err("a refusal");
    let text = error.to_string();
    assert!(
        text.contains("shop/virt-launcher-vm-1") && text.contains("`uid` ``"),
        "{text}"
    );
}

#[test]
fn what_is_known_of_the_machine_goes_with_its_addresses() {
    let machine = metadata(json!({"name": "vm", "uid": "u0"}));
    let first = launcher(&json!({})).machine("net", Some(&machine));
    assert_eq!(
        (first.handle.as_str(), first.is_target),
        ("net.vmi.shop.vm", false)
    );
    let facts = |machine: &Machine| {
        let facts = machine.facts.iter();
        facts
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(facts(&first), "vm-uid=u0 vmi-name=vm vmi-uid=u1");
    let target = launcher(&json!({MIGRATION_LABEL: "m1"})).machine("net", None);
    assert!(target.is_target);
    assert_eq!(facts(&target), "vmi-name=vm vmi-uid=u1 vmim-uid=m1");
}

#[test]
fn without_persistence_only_the_target_of_a_migration_is_refused() {
    assert!(launcher(&json!({})).without_persistence().is_ok());
    let target = launcher(&json!({MIGRATION_LABEL: "m1"}));
    let text = target
        .without_persistence()
        .expect_err("a refusal")
        .to_string();
    for part in ["virt-launcher-vm-1", "m1", "kubeVirtVMAddressPersistence"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_instance_must_be_the_pods_own() {
    let launcher = launcher(&json!({}));
    let uid = |uid: &str| Some(metadata(json!({"name": "vm", "uid": uid})));
    assert!(launcher.checked(uid("u1")).is_ok());
    let text = launcher
        .checked(uid("u2"))
        .expect_err("another")
        .to_string();
    assert!(text.contains("u1") && text.contains("u2"), "{text}");
    let text = launcher.checked(None).expect_err("nothing").to_string();
    assert!(text.contains("VirtualMachineInstance shop/vm"), "{text}");
}

#[test]
fn a_machine_keeps_its_addresses_until_it_is_deleted_whatever_becomes_of_its_instance() {
    let object = |owned: bool, is_deleted: bool| {
        let mut value = json!({"name": "vm"});
        if owned {
            value["ownerReferences"] = owned_by("VirtualMachine", "kubevirt.io/v1", true);
        }
        if is_deleted {
            value["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Some(metadata(value))
    };
    for (instance, machine, expected) in [
        (object(true, false), object(false, false), true),
        (object(true, true), object(false, false), true),
        (None, object(false, false), true),
        (object(true, false), object(false, true), false),
        (object(true, false), None, false),
        (None, object(false, true), false),
        (None, None, false),
        (object(false, false), None, true),
        (object(false, true), None, false),
    ] {
        let found = is_alive(instance.as_ref(), machine.as_ref());
        assert_eq!(found, expected, "{instance:?} {machine:?}");
    }
    let launcher = launcher(&json!({}));
    let name = |instance: Option<ObjectMeta>| launcher.possible_machine(instance.as_ref());
    assert_eq!(name(None).as_deref(), Some("vm"));
    assert_eq!(name(object(false, false)), None);
    assert_eq!(name(object(true, false)).as_deref(), Some("vm"));
}
