//! What BIRD says of itself.

use std::path::Path;

use anyhow::Result;
use tortie_bgp::bird::Socket;
use tortie_bgp::bird::status::Sockets;

use super::Gatherer;
use crate::args::BGP_RUN_FOLDER;

/// The file, and what BIRD is asked.
const ASKED: [(&str, &str); 5] = [
    ("status.txt", "show status"),
    ("memory.txt", "show memory"),
    ("interfaces.txt", "show interfaces"),
    ("protocols.txt", "show protocols all"),
    ("routes.txt", "show route all"),
];

pub(super) async fn add(gatherer: &mut Gatherer) -> Result<()> {
    let Sockets { main, ipv6 } = Sockets::in_folder(Path::new(BGP_RUN_FOLDER));
    let daemons = [("bgp/bird", main), ("bgp/bird6", ipv6)];
    let there = daemons.iter().filter(|(_, socket)| socket.path().exists());
    let there: Vec<_> = there.collect();
    if there.is_empty() {
        gatherer.note("bgp/bird", "there is no BIRD here");
    }
    for (folder, socket) in there {
        for (file, command) in ASKED {
            gatherer.add(&format!("{folder}/{file}"), ask(socket, command).await)?;
        }
    }
    Ok(())
}

async fn ask(socket: &Socket, command: &str) -> Result<String> {
    let reply = socket.ask(command).await?;
    let lines: Vec<&str> = reply.lines.iter().map(|line| line.text.as_str()).collect();
    Ok(lines.join("\n") + "\n")
}
