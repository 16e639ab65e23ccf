//! Workloads that peer with their node, from the files that the agent has for those whose policy is in force.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use tokio::time::sleep;

use crate::Update;
use crate::inputs::WorkloadPeer;

/// How often the folder is read where a peer selects workloads. Reading it costs less than a millisecond.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is used of a file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Content {
    ipv4_nets: Vec<IpNet>,
    ipv6_nets: Vec<IpNet>,
    bgp_peer_name: String,
}

/// Looks at the folder, as long as somebody wants it.
pub(super) struct Workloads {
    folder: PathBuf,
    is_wanted: bool,
    known: BTreeMap<String, WorkloadPeer>,
}

impl Workloads {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            is_wanted: false,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn follow(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    pub(super) async fn changed(&self) {
        loop {
            sleep(INTERVAL).await;
            if self.is_wanted && self.read() != self.known {
                return;
            }
        }
    }

    /// What is new.
    pub(super) fn take(&mut self) -> Vec<Update> {
        let now = if self.is_wanted {
            self.read()
        } else {
            BTreeMap::new()
        };
        let before = std::mem::replace(&mut self.known, now);
        let gone = before.keys().filter(|id| !self.known.contains_key(*id));
        let gone = gone.map(|id| Update::WorkloadPeer(id.clone(), None));
        let is_new = |(id, peer): &(&String, &WorkloadPeer)| before.get(*id) != Some(*peer);
        let new = self.known.iter().filter(is_new);
        let new = new.map(|(id, peer)| Update::WorkloadPeer(id.clone(), Some(peer.clone())));
        gone.chain(new).collect()
    }

    /// Files that say nothing of a peer, or cannot be read, are of no workload that peers.
    fn read(&self) -> BTreeMap<String, WorkloadPeer> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let peers = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let text = fs::read_to_string(entry.path()).ok()?;
            let content: Content = serde_json::from_str(&text).ok()?;
            Some((name, peer(content)?))
        });
        peers.collect()
    }
}

fn peer(content: Content) -> Option<WorkloadPeer> {
    if content.bgp_peer_name.is_empty() {
        return None;
    }
    let first = |nets: &[IpNet]| nets.first().map(IpNet::addr);
    Some(WorkloadPeer {
        bgp_peer: content.bgp_peer_name,
        ipv4: first(&content.ipv4_nets).and_then(|address| match address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }),
        ipv6: first(&content.ipv6_nets).and_then(|address| match address {
            IpAddr::V6(address) => Some(address),
            IpAddr::V4(_) => None,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_with_a_peer_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let mut workloads = Workloads::new(folder.path().to_owned());
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "k8s a eth0",
            r#"{"ipv4Nets": ["10.0.0.1/32"], "bgpPeerName": "p"}"#,
        );
        write("k8s b eth0", r#"{"ipv4Nets": ["10.0.0.2/32"]}"#);
        write("broken", "{");
        assert!(workloads.take().is_empty(), "nobody asked");
        workloads.follow(true);
        let peers = |updates: Vec<Update>| -> Vec<_> {
            let updates = updates.into_iter();
            updates
                .map(|update| match update {
                    Update::WorkloadPeer(id, peer) => (id, peer.and_then(|peer| peer.ipv4)),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        let a = "k8s a eth0".to_owned();
        let address = Some([10, 0, 0, 1].into());
        assert_eq!(peers(workloads.take()), [(a.clone(), address)]);
        assert!(workloads.take().is_empty(), "nothing is new");
        fs::remove_file(folder.path().join(&a)).unwrap();
        assert_eq!(peers(workloads.take()), [(a, None)]);
    }
}
