//! The unit for systemd, and telling systemd that the process is ready.

use std::io::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use anyhow::{Context as _, Result};

use crate::args::{Global, Up};
use crate::config::data_folder;

/// Prints a unit that runs what was asked for.
pub(super) fn print_unit(args: &Up, global: &Global) -> Result<()> {
    let program = std::env::current_exe().context("the path of this program")?;
    let mut command = vec![program.display().to_string(), "up".to_owned()];
    let folder = std::path::absolute(data_folder(global))?;
    command.push(format!("--data-dir={}", folder.display()));
    command.push(format!("--listen={}", args.listen));
    command.extend(args.node.iter().map(|node| format!("--node={node}")));
    for part in &args.without {
        let name = clap::ValueEnum::to_possible_value(part);
        let name = name.map(|name| name.get_name().to_owned());
        command.extend(name.map(|name| format!("--without={name}")));
    }
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    writeln!(
        std::io::stdout(),
        "\
[Unit]
Description=Tortie: network policy and pod networking
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={}
Restart=always
RestartSec=2
TimeoutStopSec=30
LimitNOFILE=65536
ProtectHome=read-only
PrivateTmp=true
NoNewPrivileges=true
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN CAP_DAC_OVERRIDE CAP_BPF CAP_PERFMON CAP_SYS_MODULE

[Install]
WantedBy=multi-user.target",
        command.join(" ")
    )?;
    Ok(())
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

/// Tells systemd, if it waits, that everything runs.
pub(super) fn notify_ready() {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let send = || -> std::io::Result<()> {
        let address = match path.as_bytes().split_first() {
            Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address)?;
        Ok(())
    };
    if let Err(error) = send() {
        tracing::warn!(%error, "systemd cannot be told that everything runs");
    }
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
