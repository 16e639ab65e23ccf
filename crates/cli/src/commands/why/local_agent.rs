//! What the agent of this machine says about its node.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tortie_agent::NodeStatus;
use tortie_agent::config::Config;

/// How long an agent may take to answer; one that takes longer counts as absent.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest answer that is read.
const MAX_ANSWER: u64 = 64 << 20;

/// What the agent of this machine says, if there is one and it answers.
pub(super) async fn ask(config: &Config) -> Option<NodeStatus> {
    let (host, port) = (&*config.health.host, config.health.port);
    let host = if host.is_empty() { "localhost" } else { host };
    timeout(PATIENCE, get(host, port)).await.ok()?
}

async fn get(host: &str, port: u16) -> Option<NodeStatus> {
    let mut stream = TcpStream::connect((host, port)).await.ok()?;
    // Before version 1.1 an answer ends with its connection.
    let request = format!("GET /status HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    let mut stream = stream.take(MAX_ANSWER);
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_good = head.split_whitespace().nth(1) == Some("200");
    let status = serde_json::from_str(body).ok();
    status.filter(|_| is_good)
}
