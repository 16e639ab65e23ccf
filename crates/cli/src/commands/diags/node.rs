//! `tortie node diags`

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tortie_agent::RecordingFile;
use tortie_engine::record::Event;

use super::{Gatherer, bird, commands, files, progress};
use crate::args::{BIRD2_FOLDER, Diags, Global};
use crate::commands::{root, why::load};

/// What this program says: the file, and the arguments.
const OWN: [(&str, &[&str]); 8] = [
    ("version.txt", &["version", "--client"]),
    ("status.json", &["status", "-o", "json"]),
    ("parameters.txt", &["agent", "--explain-config"]),
    ("checksystem.json", &["node", "checksystem", "-o", "json"]),
    ("verify.json", &["node", "verify", "-o", "json"]),
    ("ipam.txt", &["ipam", "show", "--show-blocks"]),
    ("bgp/status.json", &["bgp", "status", "-o", "json"]),
    ("bgp/configuration.txt", &["bgp", "render"]),
];

/// What other programs say of the machine: the file, the program and its arguments.
const OTHERS: [(&str, &str, &[&str]); 26] = [
    ("machine/uname.txt", "uname", &["-a"]),
    ("machine/modules.txt", "lsmod", &[]),
    ("machine/kernel-log.txt", "dmesg", &["--ctime"]),
    (
        "machine/processes.txt",
        "ps",
        &["-eo", "pid,ppid,user,etime,rss,args"],
    ),
    ("machine/disks.txt", "df", &["-h"]),
    (
        "machine/sysctl.txt",
        "sysctl",
        &["net.ipv4", "net.ipv6", "net.netfilter", "net.core"],
    ),
    (
        "machine/journal.txt",
        "journalctl",
        &[
            "--no-pager",
            "--lines=50000",
            "--unit=tortie*",
            "--unit=calico*",
            "--unit=kubelet",
            "--unit=containerd",
            "--unit=bird*",
        ],
    ),
    (
        "network/links.txt",
        "ip",
        &["-details", "-statistics", "link"],
    ),
    ("network/addresses.txt", "ip", &["address"]),
    ("network/rules.txt", "ip", &["rule"]),
    ("network/rules6.txt", "ip", &["-6", "rule"]),
    (
        "network/routes.txt",
        "ip",
        &["-4", "route", "show", "table", "all"],
    ),
    (
        "network/routes6.txt",
        "ip",
        &["-6", "route", "show", "table", "all"],
    ),
    ("network/neighbours.txt", "ip", &["neighbour"]),
    ("network/namespaces.txt", "ip", &["netns"]),
    (
        "network/forwarding-database.txt",
        "bridge",
        &["fdb", "show"],
    ),
    ("network/sockets.txt", "ss", &["-tuanp"]),
    ("network/tracked-connections.txt", "conntrack", &["-S"]),
    ("rules/nftables.txt", "nft", &["-a", "list", "ruleset"]),
    ("rules/iptables-legacy.txt", "iptables-legacy-save", &["-c"]),
    (
        "rules/ip6tables-legacy.txt",
        "ip6tables-legacy-save",
        &["-c"],
    ),
    ("rules/iptables-nft.txt", "iptables-nft-save", &["-c"]),
    ("rules/ip6tables-nft.txt", "ip6tables-nft-save", &["-c"]),
    ("rules/ipset.txt", "ipset", &["save"]),
    ("rules/traffic-control.txt", "tc", &["-statistics", "qdisc"]),
    ("machine/containers.txt", "crictl", &["ps", "-a"]),
];

/// Files and folders of Calico's places and ours.
const FILES: [&str; 9] = [
    "/etc/os-release",
    "/proc/cmdline",
    "/proc/meminfo",
    "/etc/calico",
    "/etc/cni/net.d",
    "/var/lib/calico",
    "/var/run/calico/endpoint-status",
    BIRD2_FOLDER,
    "/proc/net/nf_conntrack_stat",
];

pub(in crate::commands) async fn run(args: &Diags, global: &Global) -> Result<ExitCode> {
    root::check_diags()?;
    let mut gatherer = Gatherer::new(&args.output_folder, "diags")?;

    progress("what Tortie says of this node")?;
    let program = std::env::current_exe().context("this program cannot be found")?;
    let program = program.to_string_lossy();
    for (file, arguments) in OWN {
        let mut arguments = arguments.to_vec();
        let given = options(global);
        arguments.extend(given.iter().map(String::as_str));
        gatherer.add(file, commands::output(&program, &arguments).await)?;
    }

    progress("a recording of the policy engine's input")?;
    gatherer.add("recording.jsonl", recording(global).await)?;

    progress("interfaces, routes, rules and sets")?;
    for (file, program, arguments) in OTHERS {
        gatherer.add(file, commands::output(program, arguments).await)?;
    }

    progress("BIRD's sessions and routes")?;
    bird::add(&mut gatherer).await?;

    progress("configuration and logs")?;
    let logs = args.log_dir.as_path();
    for path in FILES.map(Path::new).into_iter().chain([logs]) {
        for file in files::below(path) {
            let name = format!("files{}", file.display());
            if let Some(read) = files::read(&file).transpose() {
                gatherer.add(&name, read)?;
            }
        }
    }
    gatherer.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The options that lead to the same datastore.
fn options(global: &Global) -> Vec<String> {
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| format!("--{name}={value}")));
    };
    let path = |path: &Path| path.display().to_string();
    add("datastore", global.datastore.map(|kind| kind.to_string()));
    add("data-dir", global.data_dir.as_deref().map(path));
    add("data-file", global.data_file.as_deref().map(path));
    add("config", Some(path(&global.config)));
    add("context", global.context.clone());
    options
}

/// What an agent would be told that starts now, for `tortie replay`.
async fn recording(global: &Global) -> Result<String> {
    let updates = load::updates_of_datastore(global).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("recording");
    let mut file = RecordingFile::create(&path)?;
    file.write(&Event::Start(tortie_engine::Config::for_node("")));
    for update in updates {
        file.write(&Event::Update(Box::new(update)));
    }
    file.write(&Event::InSync);
    file.write(&Event::Flush);
    file.finish()?;
    Ok(std::fs::read_to_string(&path)?)
}
