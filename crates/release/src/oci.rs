//! An image: its layers, its configuration, and the index that names them (OCI image specification 1.0).

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::digest::{gzip, sha256};
use crate::tree::{File, Tree};

/// Who runs it if nobody says: agents of nodes are told otherwise.
const USER: &str = "65532:65532";

/// The whole image as one archive, which `ctr images import` and registries take.
pub(crate) fn archive(layers: &[Vec<u8>], name: &str, arch: &str, time: u64) -> Result<Vec<u8>> {
    let mut blobs = Tree::default();
    let mut put = |kind: &str, bytes: Vec<u8>| {
        let digest = sha256(&bytes);
        let descriptor = json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        });
        blobs.put(&format!("blobs/sha256/{digest}"), File::data(bytes));
        descriptor
    };
    let mut descriptors = Vec::new();
    let mut unpacked = Vec::new();
    for layer in layers {
        unpacked.push(format!("sha256:{}", sha256(layer)));
        descriptors.push(put("layer.v1.tar+gzip", gzip(layer)?));
    }
    let config = json!({
        "architecture": arch,
        "os": "linux",
        "created": timestamp(time)?,
        "config": {
            "User": USER,
            "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": ["/usr/bin/tortie"],
            "Labels": {"org.opencontainers.image.title": "tortie", "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": unpacked},
    });
    let config = put("config.v1+json", serde_json::to_vec(&config)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": descriptors,
    });
    let mut manifest = put("manifest.v1+json", serde_json::to_vec(&manifest)?);
    manifest["platform"] = json!({"architecture": arch, "os": "linux"});
    manifest["annotations"] = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rsplit_once(':').map_or("latest", |(_, tag)| tag),
    });
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    put_json(&mut blobs, "index.json", &index);
    put_json(
        &mut blobs,
        "oci-layout",
        &json!({"imageLayoutVersion": "1.0.0"}),
    );
    blobs.tar(time)
}

fn put_json(tree: &mut Tree, path: &str, value: &Value) {
    tree.put_text(path, &value.to_string());
}

/// As RFC 3339 has it.
pub(crate) fn timestamp(seconds: u64) -> Result<String> {
    Ok(Timestamp::from_second(seconds.try_into()?)?.to_string())
}
