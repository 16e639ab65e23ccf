//! Commands on nodes, each in a pod of its own.

use serde_json::{Value, json};

/// A command that is run on a node, in a pod of its own.
pub(super) struct Command {
    /// What names of its pods begin with.
    pub(super) name: &'static str,
    /// What it is for, for messages.
    pub(super) what: &'static str,
    pub(super) shell: String,
    /// The folder of the node that it sees, below `/host`.
    pub(super) folder: String,
}

impl Command {
    /// A pod that no scheduler and no taint keeps from its node.
    pub(super) fn pod(&self, node: &str, image: &str) -> Value {
        json!({
            "metadata": {
                "generateName": format!("{}-", self.name),
                "labels": {"flannel-migration": node},
            },
            "spec": {
                "nodeName": node,
                "hostNetwork": true,
                "restartPolicy": "Never",
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": self.name,
                    "image": image,
                    "command": ["/bin/sh", "-c", self.shell],
                    "securityContext": {"privileged": true},
                    "volumeMounts": [{"name": "host-dir", "mountPath": format!("/host{}", self.folder)}],
                }],
                "volumes": [{
                    "name": "host-dir",
                    "hostPath": {"path": self.folder, "type": "Directory"},
                }],
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn commands_reach_nodes_that_are_out_of_service() {
        let command = Command {
            name: "read-flannel",
            what: "reading",
            shell: "cat /host/run/flannel/subnet.env".to_owned(),
            folder: "/run/flannel".to_owned(),
        };
        let pod: Pod = serde_json::from_value(command.pod("n1", "calico/node")).unwrap();
        let spec = pod.spec.unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("n1"));
        assert_eq!(
            spec.tolerations.unwrap()[0].operator.as_deref(),
            Some("Exists")
        );
        let mount = &spec.containers[0].volume_mounts.as_ref().unwrap()[0];
        assert_eq!(mount.mount_path, "/host/run/flannel");
    }
}
