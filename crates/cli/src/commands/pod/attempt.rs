//! One real connection from inside a pod.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tortie_kernel::namespace;

use crate::args::PodProtocol;

/// How long a connection may take. Within a machine it takes less than a millisecond, and what is lost is sent again after
/// a second.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How long a server may take that answers by itself. Others say nothing before they are asked.
const GREETING: Duration = Duration::from_millis(100);

const DATAGRAM: &[u8] = b"tortie pod connect\n";

/// What became of a connection.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// It was made, in this time; perhaps the other side has said who it is.
    Connected(Duration, Option<String>),
    /// Somebody said no.
    Refused,
    /// Nobody answered.
    TimedOut,
    /// The pod cannot send there.
    Failed(String),
}

impl Outcome {
    pub(super) fn is_connected(&self) -> bool {
        matches!(self, Self::Connected(..))
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Connected(..) => "CONNECTED",
            Self::Refused => "REFUSED",
            Self::TimedOut => "TIMED OUT",
            Self::Failed(_) => "FAILED",
        }
    }

    /// Whether the same became of another one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed(one), Self::Failed(other)) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// More than the word says.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(took, who) => {
                write!(f, "in {:.1} ms", took.as_secs_f64() * 1e3)?;
                match who {
                    Some(who) => write!(f, ", answered by {who}"),
                    None => Ok(()),
                }
            }
            Self::Refused => f.write_str("nobody serves that port, or a policy rejects it"),
            Self::TimedOut => write!(f, "no answer within {:.1} s", PATIENCE.as_secs_f64()),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

/// Tries a connection from a network namespace. Blocks.
pub(super) fn attempt(
    network: &File,
    destination: SocketAddr,
    protocol: PodProtocol,
) -> Result<Outcome> {
    let tried = namespace::run_in(network.as_fd(), || match protocol {
        PodProtocol::Tcp => try_tcp(destination),
        PodProtocol::Udp => try_udp(destination),
    });
    let tried = tried.context("the pod's network cannot be entered")?;
    Ok(tried.unwrap_or_else(|error| match error.kind() {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Outcome::TimedOut,
        _ => Outcome::Failed(error.to_string()),
    }))
}

fn try_tcp(destination: SocketAddr) -> io::Result<Outcome> {
    let start = Instant::now();
    let stream = TcpStream::connect_timeout(&destination, PATIENCE)?;
    let took = start.elapsed();
    stream.set_read_timeout(Some(GREETING))?;
    let mut line = Vec::new();
    // Whatever it says or does not, the connection was made.
    let _ = stream.take(64).read_to_end(&mut line);
    let line = String::from_utf8_lossy(&line);
    let who = line.lines().next().filter(|who| !who.is_empty());
    Ok(Outcome::Connected(took, who.map(str::to_owned)))
}

fn try_udp(destination: SocketAddr) -> io::Result<Outcome> {
    let any = match destination {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(destination)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let start = Instant::now();
    socket.send(DATAGRAM)?;
    socket.recv(&mut [0; DATAGRAM.len()])?;
    Ok(Outcome::Connected(start.elapsed(), None))
}
