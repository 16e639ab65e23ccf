use std::time::Duration;

use tortie_testkit::net::{Fabric, Node, ping};

#[test]
fn nodes_reach_each_other_within_and_between_networks() {
    let mut fabric = Fabric::new(2).unwrap();
    let mut nodes = [0, 0, 1].map(|network| (Node::new().unwrap(), network));
    let addresses = nodes
        .each_mut()
        .map(|(node, network)| fabric.join(node, *network).unwrap());
    for (node, _) in &nodes {
        for address in addresses.as_flattened() {
            let timeout = Duration::from_secs(5);
            let arrives = ping(node.namespace(), address.addr(), timeout).unwrap();
            assert!(arrives, "{address}");
        }
    }
}
