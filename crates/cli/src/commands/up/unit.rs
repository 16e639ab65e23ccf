//! The unit for systemd that runs what was asked for, with no more rights than that takes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use tortie_apiserver::http::DEFAULT_MEMORY;
use tortie_apiserver::standalone::SERVICE_NETWORK;
use tortie_client::connect::{self, DatastoreType, Settings, Target};
use tortie_store::embedded::DEFAULT_QUOTA;

use crate::args::{Global, Part, Up};
use crate::config::{data_folder, target_of_up};

/// Where systemd makes folders for services.
const STATE: &str = "/var/lib";

/// The folders there that are always needed: for what waits for confirmation, and for what CNI plugins read.
const FOLDERS: [&str; 2] = ["tortie", "calico"];

/// Where secrets and other variables are given.
const ENVIRONMENT_FILE: &str = "/etc/tortie/environment";

/// A unit that runs what was asked for.
pub(super) fn unit(args: &Up, global: &Global) -> Result<String> {
    let target = target_of_up(global, &connect::environment)?.pinned()?;
    let folder = std::path::absolute(data_folder(global))?;
    let program = std::env::current_exe().context("the path of this program")?;
    let command = command(&program, args, global, &target, &folder);
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let mut text = String::new();
    let is_kubernetes = target.datastore == DatastoreType::Kubernetes;
    let before = if is_kubernetes {
        "# Not before the kubelet, which may have to start the API server that this needs.\n"
    } else {
        "# No pod starts before its policy is in force.\nBefore=kubelet.service containerd.service crio.service\n"
    };
    let has_api_server = target.datastore == DatastoreType::Embedded;
    let is_low = has_api_server && (1..1024).contains(&args.listen.port());
    // BGP has port 179.
    let ports = if is_low || !args.without.contains(&Part::Agent) {
        " CAP_NET_BIND_SERVICE"
    } else {
        ""
    };
    // Writing to a text does not fail.
    let _ = write!(
        text,
        "\
[Unit]
Description=Tortie: network policy and pod networking
Wants=network-online.target
After=network-online.target
{before}
[Service]
Type=notify
ExecStart={command}
{environment}# Secrets and other variables, readable for root alone.
EnvironmentFile=-{ENVIRONMENT_FILE}
Restart=always
RestartSec=2
TimeoutStopSec=30
# BIRD goes on, if BGP is asked for: peers keep this node's routes while this is restarted.
KillMode=process
LimitNOFILE=65536
MemoryMax=50%

# Files: it writes its data, what CNI plugins read, and the lock of iptables in /run.
StateDirectory={states}
StateDirectoryMode=0700
ReadWritePaths={writable}
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=true
PrivateDevices=true
PrivateMounts=true
UMask=0077

# Rights: rules, routes, interfaces and their settings; raw sockets are what iptables talks to the kernel through.
# Modules are loaded by the kernel itself; those of the older iptables (ip_tables, ip6_tables) belong in modules-load.d.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW{ports}
NoNewPrivileges=true
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
LockPersonality=true
MemoryDenyWriteExecute=true
KeyringMode=private
RemoveIPC=true

# The rest of the machine. It runs as root in the machine's own network because that is what it programs, and
# ProtectKernelTunables stays off because settings of interfaces are sysctls.
ProtectClock=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectControlGroups=true
ProtectProc=invisible

[Install]
WantedBy=multi-user.target
",
        command = command.join(" "),
        environment = environment(&target),
        states = FOLDERS.join(" "),
        writable = writable(&folder, &target),
    );
    Ok(text)
}

/// The command line: all that was said, and the datastore that was meant.
fn command(
    program: &Path,
    args: &Up,
    global: &Global,
    target: &Target,
    folder: &Path,
) -> Vec<String> {
    let mut command = vec![program.display().to_string(), "up".to_owned()];
    let mut option = |name: &str, value: &dyn std::fmt::Display| {
        command.push(format!("--{name}={value}"));
    };
    option("datastore", &target.datastore);
    option("data-dir", &folder.display());
    if global.data_file.is_some() {
        option("data-file", &target.data_file.display());
    }
    if target.config.exists() {
        option("config", &target.config.display());
    }
    if !target.settings.k8s_current_context.is_empty() {
        option("context", &target.settings.k8s_current_context);
    }
    if target.datastore == DatastoreType::Embedded {
        option("listen", &args.listen);
        if args.service_cidr != SERVICE_NETWORK.into() {
            option("service-cidr", &args.service_cidr);
        }
        if args.quota != DEFAULT_QUOTA >> 20 {
            option("quota", &args.quota);
        }
        if args.memory_budget != DEFAULT_MEMORY >> 20 {
            option("memory-budget", &args.memory_budget);
        }
    }
    if let Some(node) = &args.node {
        option("node", node);
    }
    for part in &args.without {
        if let Some(part) = part.to_possible_value() {
            option("without", &part.get_name());
        }
    }
    if args.allow_cleartext {
        command.push("--allow-cleartext".to_owned());
    }
    command
}

/// The variables that say where the datastore is; those that are secret only by name.
fn environment(target: &Target) -> String {
    let mut text = String::new();
    if target.datastore == DatastoreType::Embedded {
        return text;
    }
    let given = target.settings.given();
    for (name, variable, value) in given.filter(|(_, variable, _)| !variable.is_empty()) {
        let _ = if Settings::is_secret(name) {
            writeln!(
                text,
                "# {variable} is secret: it belongs in {ENVIRONMENT_FILE}"
            )
        } else {
            writeln!(
                text,
                "Environment={}",
                quoted(&format!("{variable}={value}"))
            )
        };
    }
    text
}

/// What is written besides the folders that systemd makes.
fn writable(folder: &Path, target: &Target) -> String {
    let mut paths = vec![PathBuf::from("/run"), folder.to_owned()];
    if target.datastore == DatastoreType::Embedded {
        paths.extend(target.data_file.parent().map(Path::to_owned));
    }
    paths.retain(|path| {
        !FOLDERS
            .iter()
            .any(|name| *path == Path::new(STATE).join(name))
    });
    paths.dedup();
    let paths: Vec<String> = paths
        .iter()
        .map(|path| quoted(&path.display().to_string()))
        .collect();
    paths.join(" ")
}

/// A word as systemd reads it back.
fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.:,%$@+".contains(c);
    if word.chars().all(is_plain) {
        return word;
    }
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_systemd() {
        assert_eq!(quoted("/usr/bin/tortie"), "/usr/bin/tortie");
        assert_eq!(quoted("--data-dir=/a b"), "\"--data-dir=/a b\"");
        assert_eq!(quoted("100%"), "100%%");
        assert_eq!(quoted("a\"b\\"), "\"a\\\"b\\\\\"");
    }
}
