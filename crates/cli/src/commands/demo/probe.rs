//! Whether connections are possible: ordinary clients in pods ask the servers of others.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::cast::{Cell, Protocol};
use super::pod::Pod;

/// How long a client waits for an answer, which mostly takes less than a millisecond.
const PATIENCE: Duration = Duration::from_millis(250);

/// What does not get through is tried so many times: an answer may be late on a busy machine.
const ROUNDS: usize = 2;

/// Tries all connections at the same time, and tells for each whether it is possible.
pub(super) async fn probe_all(pods: &[Pod], cells: &[Cell]) -> Result<Vec<bool>> {
    let mut open = vec![false; cells.len()];
    for _ in 0..ROUNDS {
        let missing = cells.iter().zip(&open).filter(|(_, open)| !**open);
        let missing: Vec<&Cell> = missing.map(|(cell, _)| cell).collect();
        let answers = try_join_all(missing.iter().map(|cell| probe(pods, cell))).await?;
        let mut answers = answers.into_iter();
        for open in open.iter_mut().filter(|open| !**open) {
            *open = answers.next().unwrap_or_default();
        }
    }
    Ok(open)
}

async fn probe(pods: &[Pod], cell: &Cell) -> Result<bool> {
    let role = cell.destination();
    let destination = SocketAddr::new(role.address(cell.version), cell.port());
    let (protocol, name) = (cell.protocol, role.name.as_bytes());
    let ask = async move {
        match protocol {
            Protocol::Tcp => ask_tcp(destination, name).await,
            Protocol::Udp => ask_udp(destination, name).await,
        }
    };
    // Both being late and being refused mean that it is not possible.
    let attempt = async move {
        timeout(PATIENCE, ask)
            .await
            .is_ok_and(|asked| asked.unwrap_or(false))
    };
    pods[cell.from].run(attempt).await
}

async fn ask_tcp(destination: SocketAddr, name: &[u8]) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(destination).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer == name)
}

async fn ask_udp(destination: SocketAddr, name: &[u8]) -> std::io::Result<bool> {
    const QUESTION: &[u8] = b"who? ";
    let socket = UdpSocket::bind(any_port(destination)).await?;
    socket.connect(destination).await?;
    socket.send(QUESTION).await?;
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer).await?;
    Ok(answer[..length].strip_prefix(QUESTION) == Some(name))
}

/// Any port of the machine itself, for packets to `destination`.
pub(super) fn any_port(destination: SocketAddr) -> SocketAddr {
    let address = match destination.ip() {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    };
    SocketAddr::new(address, 0)
}
