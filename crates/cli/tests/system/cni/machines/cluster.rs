//! A cluster with objects of `KubeVirt`.

use serde_json::{Value, json};
use tortie_testkit::cni::Answer;

use crate::cni::kubernetes::Cluster;
use crate::cni::site::{Container, addresses};

/// A cluster that knows virtual machines.
pub(super) struct Machines {
    pub(super) cluster: Cluster,
    pub(super) settings: Value,
}

/// A virtual machine.
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) uid: String,
}

impl Machines {
    pub(super) fn new() -> Self {
        let machines = Self::without_kinds();
        let crds = [
            ("VirtualMachine", "virtualmachines"),
            ("VirtualMachineInstance", "virtualmachineinstances"),
        ]
        .map(|(kind, plural)| {
            let schema = json!({"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }});
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.kubevirt.io")},
                "spec": {
                    "group": "kubevirt.io", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
                },
            })
        });
        machines.apply(&json!({"apiVersion": "v1", "kind": "List", "items": crds}));
        let established = "--for=condition=Established";
        machines.kubectl(&["wait", established, "crd", "--all", "--timeout=60s"]);
        machines
    }

    pub(super) fn without_kinds() -> Self {
        let cluster = Cluster::new();
        let mut settings = cluster.settings();
        // Else nobody would ask who has an address.
        settings["feature_control"] = json!({});
        Self { cluster, settings }
    }

    #[track_caller]
    pub(super) fn apply(&self, object: &Value) {
        self.cluster.kubectl(
            &["apply", "--validate=false", "-f", "-"],
            &object.to_string(),
        );
    }

    #[track_caller]
    pub(super) fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(arguments, "")
    }

    /// Makes an object that stays after its deletion until somebody says that it may go, as those of `KubeVirt` do. Gives
    /// its uid.
    pub(super) fn create(&self, kind: &str, name: &str, owners: &Value) -> String {
        let metadata = json!({
            "name": name, "namespace": "shop", "finalizers": ["kubevirt.io/test"], "ownerReferences": owners,
        });
        self.apply(&json!({"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": metadata}));
        let resource = format!("{kind}.kubevirt.io");
        let uid = "jsonpath={.metadata.uid}";
        self.kubectl(&["get", &resource, name, "-n", "shop", "-o", uid])
    }

    /// Makes a machine and its instance.
    pub(super) fn machine(&self, name: &str) -> Machine {
        let uid = self.create("VirtualMachine", name, &json!([]));
        self.instance(name, &json!([owner("VirtualMachine", name, &uid)]))
    }

    /// Makes an instance.
    pub(super) fn instance(&self, name: &str, owners: &Value) -> Machine {
        Machine {
            name: name.to_owned(),
            uid: self.create("VirtualMachineInstance", name, owners),
        }
    }

    /// Begins to delete an object.
    pub(super) fn delete(&self, kind: &str, name: &str) {
        let resource = format!("{kind}.kubevirt.io");
        self.kubectl(&["delete", &resource, name, "-n", "shop", "--wait=false"]);
    }

    /// Lets an object that is being deleted go.
    pub(super) fn let_go(&self, kind: &str, name: &str) {
        let resource = format!("{kind}.kubevirt.io");
        let patch = r#"{"metadata": {"finalizers": null}}"#;
        self.kubectl(&[
            "patch",
            &resource,
            name,
            "-n",
            "shop",
            "--type=merge",
            "-p",
            patch,
        ]);
    }

    /// Makes a pod that runs a machine, or that it is to move to, and a container for it.
    pub(super) fn pod(&self, name: &str, machine: &Machine, migration: Option<&str>) -> Container {
        let name = format!("virt-launcher-{name}");
        let mut labels = json!({"kubevirt.io": "virt-launcher"});
        if let Some(uid) = migration {
            labels["kubevirt.io/migrationJobUID"] = json!(uid);
        }
        let owner = owner("VirtualMachineInstance", &machine.name, &machine.uid);
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": [owner]},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        }));
        Container::of_pod(&format!("id-{name}"), "shop", &name)
    }

    pub(super) fn call(&self, command: &str, container: &Container) -> Answer {
        self.cluster.site.calico(command, container, &self.settings)
    }

    #[track_caller]
    pub(super) fn add(&self, container: &Container) -> (String, Value) {
        let result = self.call("ADD", container).unwrap();
        let mut found = addresses(&result);
        assert_eq!(found.len(), 1, "{result}");
        (found.remove(0), result)
    }

    #[track_caller]
    pub(super) fn refuse(&self, container: &Container, parts: &[&str]) {
        let (_, message) = self.call("ADD", container).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }

    #[track_caller]
    pub(super) fn del(&self, container: &Container) {
        self.call("DEL", container).unwrap();
    }

    #[track_caller]
    pub(super) fn check(&self, container: &Container, result: &Value) {
        let mut settings = self.settings.clone();
        settings["prevResult"] = result.clone();
        let answer = self.cluster.site.calico("CHECK", container, &settings);
        answer.unwrap();
    }

    /// The handles there are.
    pub(super) fn handles(&self) -> Vec<String> {
        let ids = "jsonpath={range .items[*]}{.spec.handleID}{\"\\n\"}{end}";
        let text = self.kubectl(&["get", "ipamhandles.crd.projectcalico.org", "-o", ids]);
        text.lines().map(str::to_owned).collect()
    }

    /// The active and the alternate owner of an address.
    pub(super) fn owners(&self, address: &str) -> (Value, Value) {
        let text = self.kubectl(&["get", "ipamblocks.crd.projectcalico.org", "-o", "json"]);
        let blocks: Value = serde_json::from_str(&text).unwrap();
        let last: usize = address.rsplit('.').next().unwrap().parse().unwrap();
        for block in blocks["items"].as_array().unwrap() {
            let spec = &block["spec"];
            let net: ipnet::IpNet = spec["cidr"].as_str().unwrap().parse().unwrap();
            if net.contains(&address.parse::<std::net::IpAddr>().unwrap()) {
                let index = spec["allocations"][last % 8].as_u64().unwrap();
                let held = &spec["attributes"][usize::try_from(index).unwrap()];
                return (
                    held["secondary"].clone(),
                    held["alternateOwnerAttrs"].clone(),
                );
            }
        }
        panic!("no block has {address}");
    }

    /// The pods that are the active and the alternate owner.
    pub(super) fn pods_of(&self, address: &str) -> [String; 2] {
        let (active, alternate) = self.owners(address);
        [active, alternate].map(|owner| {
            let pod = owner["pod"].as_str().unwrap_or_default();
            pod.trim_start_matches("virt-launcher-").to_owned()
        })
    }

    pub(super) fn set_persistence(&self, value: &str) {
        let option = format!("--kubevirt-ip-persistence={value}");
        self.cluster.tortie(&["ipam", "configure", &option], "");
    }
}

pub(super) fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": uid, "controller": true})
}
