//! Files that tell who sets workloads up that an endpoint's policy is in force.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tortie_engine::message::{WorkloadEndpoint, WorkloadEndpointId};
use tortie_files::places;

/// The files, and what is in them.
#[derive(Debug)]
pub(crate) struct StatusFiles {
    folder: PathBuf,
    written: BTreeMap<String, String>,
    is_clean: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    iface_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    mac: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ipv4_nets: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ipv6_nets: Vec<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    bgp_peer_name: &'a str,
}

impl StatusFiles {
    pub(crate) fn new(prefix: &Path) -> Self {
        Self {
            folder: prefix.join(places::ENDPOINT_STATUS),
            written: BTreeMap::new(),
            is_clean: false,
        }
    }

    /// Makes the files those of the endpoints that are up.
    pub(crate) fn update<'a>(
        &mut self,
        up: impl Iterator<Item = (&'a WorkloadEndpointId, &'a WorkloadEndpoint)>,
    ) -> io::Result<()> {
        let wanted: BTreeMap<String, String> = up
            .map(|(id, endpoint)| (file_name(id), content(endpoint)))
            .collect();
        if self.is_clean && wanted == self.written {
            return Ok(());
        }
        if !self.is_clean {
            fs::create_dir_all(&self.folder)?;
            self.remove_left_overs(&wanted)?;
            self.is_clean = true;
        }
        for name in self
            .written
            .keys()
            .filter(|name| !wanted.contains_key(*name))
        {
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        for (name, content) in &wanted {
            if self.written.get(name) != Some(content) {
                fs::write(self.folder.join(name), content)?;
            }
        }
        self.written = wanted;
        Ok(())
    }

    fn remove_left_overs(&self, wanted: &BTreeMap<String, String>) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_wanted = entry
                .file_name()
                .to_str()
                .is_some_and(|name| wanted.contains_key(name));
            if !is_wanted {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn file_name(id: &WorkloadEndpointId) -> String {
    places::endpoint_status(&id.orchestrator_id, &id.workload_id, &id.endpoint_id)
}

fn content(endpoint: &WorkloadEndpoint) -> String {
    let peer = endpoint.local_bgp_peer.as_ref();
    let content = Content {
        iface_name: &endpoint.name,
        mac: &endpoint.mac,
        ipv4_nets: endpoint.ipv4_nets.iter().map(ToString::to_string).collect(),
        ipv6_nets: endpoint.ipv6_nets.iter().map(ToString::to_string).collect(),
        bgp_peer_name: peer.map_or("", |peer| &peer.bgp_peer_name),
    };
    serde_json::to_string(&content).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(workload: &str) -> WorkloadEndpointId {
        WorkloadEndpointId {
            orchestrator_id: "k8s".to_owned(),
            workload_id: workload.to_owned(),
            endpoint_id: "eth0".to_owned(),
        }
    }

    #[test]
    fn files_follow_the_endpoints_that_are_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let stale = folder.path().join(places::ENDPOINT_STATUS);
        fs::create_dir_all(&stale).expect("a folder");
        fs::write(stale.join("k8s old eth0"), "{}").expect("a file");
        let endpoint = WorkloadEndpoint {
            name: "cali123".to_owned(),
            ipv4_nets: vec!["10.0.0.1/32".parse().expect("a network")],
            ..WorkloadEndpoint::default()
        };
        let mut files = StatusFiles::new(folder.path());
        let (one, two) = (id("default/one"), id("default/two"));
        let both = [(&one, &endpoint), (&two, &endpoint)];
        files.update(both.into_iter()).expect("files");
        let names = || {
            let mut names: Vec<String> = fs::read_dir(&stale)
                .expect("a folder")
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .collect();
            names.sort();
            names
        };
        assert_eq!(
            names(),
            ["k8s default%2Fone eth0", "k8s default%2Ftwo eth0"]
        );
        let text = fs::read_to_string(stale.join("k8s default%2Fone eth0")).expect("a file");
        assert_eq!(
            text,
            r#"{"ifaceName":"cali123","ipv4Nets":["10.0.0.1/32"]}"#
        );
        files
            .update([(&two, &endpoint)].into_iter())
            .expect("files");
        assert_eq!(names(), ["k8s default%2Ftwo eth0"]);
    }
}
