//! What the kernels of a cluster's nodes have: routes, tunnel entries and interfaces.

use crate::multi_node::cluster::Cluster;
use crate::multi_node::reach::Pod;

impl Cluster {
    /// The routes of a node that lead to a pod in particular.
    pub(crate) fn routes_to(&self, node: usize, pod: &Pod) -> Vec<String> {
        let routes = self.routes_to_block_of(node, pod);
        assert_eq!(routes.len(), pod.addresses.len(), "{routes:?}");
        routes
    }

    /// The same, where there may be none.
    pub(crate) fn routes_to_block_of(&self, node: usize, pod: &Pod) -> Vec<String> {
        let addresses = pod.addresses.iter();
        let printed = addresses.map(|address| {
            let family = if address.is_ipv4() { "-4" } else { "-6" };
            self.members()[node].run("ip", &format!("{family} route show to match {address}"))
        });
        let lines: Vec<String> = printed.flat_map(|printed| lines(&printed)).collect();
        let in_particular = lines
            .into_iter()
            .filter(|line| !line.starts_with("default"));
        in_particular.collect()
    }

    /// All routes of a node.
    pub(crate) fn routes(&self, node: usize) -> Vec<String> {
        let member = &self.members()[node];
        let mut all = lines(&member.run("ip", "-4 route show"));
        all.extend(lines(&member.run("ip", "-6 route show")));
        all
    }

    /// What a node's tunnel devices know of other nodes.
    pub(crate) fn tunnel_entries(&self, node: usize) -> Vec<String> {
        let devices = ["vxlan.calico", "vxlan-v6.calico"];
        let printed = devices
            .map(|device| self.members()[node].run("bridge", &format!("fdb show dev {device}")));
        printed.iter().flat_map(|printed| lines(printed)).collect()
    }

    /// The names of a node's interfaces.
    pub(crate) fn links(&self, node: usize) -> Vec<String> {
        let links = lines(&self.members()[node].run("ip", "-o link show"));
        let names = links.iter().filter_map(|line| {
            let name = line.split(": ").nth(1)?;
            Some(name.split('@').next()?.to_owned())
        });
        names.collect()
    }

    pub(crate) fn has_link(&self, node: usize, name: &str) -> bool {
        self.links(node).iter().any(|link| link == name)
    }
}

fn lines(printed: &str) -> Vec<String> {
    let lines = printed.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}
