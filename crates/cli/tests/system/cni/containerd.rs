//! A real container runtime calls the plugins.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::cni::site::{NODE_IPV4, Site, run_in};

/// Runs a container of busybox, with mounts of its own: the runtime looks for plugins in two fixed folders. `$1` is the
/// folder with everything, `$2` what the container does.
const SCRIPT: &str = r#"
set -eu
folder=$1
mount --make-rprivate /
for part in etc opt; do
    mkdir -p "$folder/$part/upper" "$folder/$part/work"
    mount -t tmpfs tmpfs "$folder/$part"
    mkdir "$folder/$part/upper" "$folder/$part/work"
    mount -t overlay overlay -o "lowerdir=/$part,upperdir=$folder/$part/upper,workdir=$folder/$part/work" "/$part"
done
mkdir -p /etc/cni/net.d /opt/cni/bin
cp "$folder/net.conflist" /etc/cni/net.d/10-calico.conflist
cp -P "$folder/bin/"* /opt/cni/bin/
printf 'version = 2\nroot = "%s/root"\nstate = "%s/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "%s/sock"\n[ttrpc]\naddress = "%s/ttrpc"\n' \
    "$folder" "$folder" "$folder" "$folder" >"$folder/config.toml"
containerd --config "$folder/config.toml" >"$folder/log" 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon || true' EXIT
ctr() { command ctr --address "$folder/sock" "$@"; }
for _ in $(seq 200); do
    if ctr version >/dev/null 2>&1; then break; fi
    sleep 0.1
done
ctr image import --no-unpack "$folder/image.tar" >&2
ctr run --rm --cni --snapshotter native docker.io/library/busybox:test tortie-test /bin/busybox sh -c "$2"
"#;

/// An image with busybox in it, as an archive of the form that Docker made.
fn write_image(folder: &Path) {
    let root = folder.join("image");
    fs::create_dir_all(root.join("layer/bin")).unwrap();
    let busybox = ["/bin/busybox", "/usr/bin/busybox"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    fs::copy(busybox.unwrap(), root.join("layer/bin/busybox")).unwrap();
    let tar = |archive: &Path, from: &Path, names: &[&str]| {
        let status = Command::new("tar")
            .arg("-cf")
            .arg(archive)
            .arg("-C")
            .arg(from)
            .args(names)
            .status();
        assert!(status.unwrap().success());
    };
    tar(&root.join("layer.tar"), &root.join("layer"), &["bin"]);
    let digest = Command::new("sha256sum")
        .arg(root.join("layer.tar"))
        .output()
        .unwrap();
    let digest = String::from_utf8(digest.stdout).unwrap();
    let digest = digest.split_whitespace().next().unwrap();
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    fs::write(root.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{
        "Config": "config.json", "RepoTags": ["docker.io/library/busybox:test"], "Layers": ["layer.tar"],
    }]);
    fs::write(root.join("manifest.json"), manifest.to_string()).unwrap();
    tar(
        &folder.join("image.tar"),
        &root,
        &["manifest.json", "config.json", "layer.tar"],
    );
}

#[test]
fn containerd_connects_a_container_and_gives_everything_back() {
    let mut site = Site::new();
    let folder = site.folder.path().to_owned();
    write_image(&folder);
    fs::create_dir(folder.join("bin")).unwrap();
    for name in [
        "calico",
        "calico-ipam",
        "loopback",
        "portmap",
        "bandwidth",
        "tuning",
    ] {
        symlink(env!("CARGO_BIN_EXE_tortie"), folder.join("bin").join(name)).unwrap();
    }
    let mut calico = site.config(&json!({"log_file_path": folder.join("cni.log")}));
    let plugin = calico.as_object_mut().unwrap();
    plugin.remove("cniVersion");
    plugin.remove("name");
    // What a runtime hands over for a pod, here for all containers.
    let ports = [json!({"hostPort": 8080, "containerPort": 80, "protocol": "tcp"})];
    let limits = json!({"ingressRate": 80_000_000, "ingressBurst": 8_000_000, "egressRate": 80_000_000, "egressBurst": 8_000_000});
    let list = json!({"cniVersion": "0.4.0", "name": "net", "plugins": [
        calico,
        {"type": "portmap", "runtimeConfig": {"portMappings": ports}},
        {"type": "bandwidth", "runtimeConfig": {"bandwidth": limits}},
        {"type": "tuning", "mtu": 1300, "sysctl": {"net.core.somaxconn": "321"}, "dataDir": folder.join("tuning")},
    ]});
    fs::write(folder.join("net.conflist"), list.to_string()).unwrap();

    let inside = format!(
        "busybox ip -o addr show eth0; busybox ip route; busybox ping -c 1 -W 5 {NODE_IPV4} && echo reached; busybox ip link; busybox cat /proc/sys/net/core/somaxconn"
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", SCRIPT, "sh"])
        .arg(&folder)
        .arg(&inside);
    let text = run_in(site.node.namespace(), command, "");
    assert!(text.contains("inet 10.65.0."), "{text}");
    assert!(text.contains("default via 169.254.1.1 dev eth0"), "{text}");
    assert!(text.contains("reached"), "{text}");
    assert!(text.contains("mtu 1300") && text.contains("321"), "{text}");
    assert!(text.contains("<LOOPBACK,UP"), "{text}");
    let on_node = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        run_in(site.node.namespace(), command, "")
    };
    // The plugins were there, and have taken away what was theirs.
    let rules = on_node(&["nft", "list", "ruleset"]);
    assert!(
        rules.contains("tortie-portmap") && !rules.contains("dnat"),
        "{rules}"
    );
    assert!(!on_node(&["ip", "link"]).contains("bwp"));
    assert_eq!(fs::read_dir(folder.join("tuning")).unwrap().count(), 0);
    site.assert_nothing_left();
    let profile: Value =
        serde_json::from_str(&site.tortie(&["get", "profile", "net", "-o", "json"], "")).unwrap();
    assert_eq!(profile["metadata"]["name"], "net");
}
