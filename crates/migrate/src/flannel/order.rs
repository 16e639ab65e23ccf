//! Which nodes are still to be moved, and in which order.

use k8s_openapi::api::core::v1::Node;

use super::{CALICO, IN_PROGRESS_LABEL, NEITHER, NETWORK_LABEL};

/// Labels of nodes that run the cluster itself.
const CONTROL_PLANE: [&str; 3] = [
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/controlplane",
];

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is in flannel's network, or new.
    Flannel,
    /// It has been begun with, and flannel is off, perhaps with Calico on.
    Begun,
    /// It has been moved.
    Done,
}

/// How far a node has come.
pub(super) fn progress(node: &Node) -> Progress {
    let is_in_progress = label(node, IN_PROGRESS_LABEL) == Some("true");
    match label(node, NETWORK_LABEL) {
        Some(CALICO) if !is_in_progress => Progress::Done,
        Some(CALICO | NEITHER) => Progress::Begun,
        _ => Progress::Flannel,
    }
}

/// The nodes that are still to be moved: by name, those that run the cluster after the others, and that of this process last.
/// The order never changes, so that a process that starts anew begins with the node that the last one failed at.
pub(super) fn to_move<'a>(nodes: &'a [Node], own: &str) -> Vec<&'a Node> {
    let mut left: Vec<&Node> = nodes
        .iter()
        .filter(|node| progress(node) != Progress::Done)
        .collect();
    left.sort_by_key(|node| {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let is_control_plane = CONTROL_PLANE.iter().any(|role| label(node, role).is_some());
        (name == own, is_control_plane, name.to_owned())
    });
    left
}

fn label<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    let labels = node.metadata.labels.as_ref()?;
    labels.get(name).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, labels: &[(&str, &str)]) -> Node {
        let labels: std::collections::BTreeMap<_, _> = labels.iter().copied().collect();
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
    }

    #[test]
    fn labels_tell_how_far_a_node_has_come() {
        let network = |network| (NETWORK_LABEL, network);
        let busy = (IN_PROGRESS_LABEL, "true");
        for (labels, expected) in [
            (vec![], Progress::Flannel),
            (vec![network("flannel")], Progress::Flannel),
            (vec![network("flannel"), busy], Progress::Flannel),
            (vec![network("none"), busy], Progress::Begun),
            (vec![network("calico"), busy], Progress::Begun),
            (vec![network("calico")], Progress::Done),
        ] {
            assert_eq!(progress(&node("n", &labels)), expected, "{labels:?}");
        }
    }

    #[test]
    fn workers_come_first_and_the_own_node_last() {
        let master = ("node-role.kubernetes.io/master", "");
        let nodes = [
            node("own", &[]),
            node("b", &[]),
            node("m", &[master]),
            node("a", &[]),
            node("done", &[(NETWORK_LABEL, "calico")]),
        ];
        let order = to_move(&nodes, "own");
        let order: Vec<&str> = order
            .iter()
            .filter_map(|node| node.metadata.name.as_deref())
            .collect();
        assert_eq!(order, ["a", "b", "m", "own"]);
    }
}
