//! Whole conversations through ordinary sockets: packets must come back, too.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};

use super::error::{Result, cannot};
use super::namespace::Namespace;

const QUESTION: &[u8] = b"question";
const ANSWER: &[u8] = b"answer";

/// A client that asks something of a server.
#[derive(Debug, Clone, Copy)]
pub struct Dialogue<'a> {
    /// Where the client is.
    pub client: &'a Namespace,
    /// The client's own address and port, if they matter.
    pub source: Option<SocketAddr>,
    /// What the client connects to.
    pub destination: SocketAddr,
    /// Where the server is.
    pub server: &'a Namespace,
    /// What the server listens on: the destination, unless somebody translates it.
    pub listen: SocketAddr,
    /// How long each may wait for the other.
    pub timeout: Duration,
}

impl<'a> Dialogue<'a> {
    /// A dialogue with a server that listens on the destination.
    pub fn new(client: &'a Namespace, server: &'a Namespace, destination: SocketAddr) -> Self {
        Self {
            client,
            source: None,
            destination,
            server,
            listen: destination,
            timeout: Duration::from_millis(500),
        }
    }

    /// Whether a TCP connection comes about and carries something both ways.
    pub fn tcp(&self) -> Result<bool> {
        let listener = self.server.run(|| TcpListener::bind(self.listen))?;
        let listener = listener.map_err(cannot(format!("listen on {}", self.listen)))?;
        let opened = self.client.run(|| self.open_tcp())?;
        let client = opened.map_err(cannot("open a TCP socket"))?;
        let talk = || -> io::Result<bool> {
            rustix::net::connect(&client, &self.destination)?;
            let mut client = TcpStream::from(client);
            sockopt::set_socket_timeout(&listener, Timeout::Recv, Some(self.timeout))?;
            let (mut server, _) = listener.accept()?;
            for stream in [&client, &server] {
                stream.set_read_timeout(Some(self.timeout))?;
            }
            client.write_all(QUESTION)?;
            let is_asked = is_read(&mut server, QUESTION)?;
            server.write_all(ANSWER)?;
            Ok(is_asked && is_read(&mut client, ANSWER)?)
        };
        as_answer(talk()).map_err(cannot(format!("talk with {}", self.destination)))
    }

    /// Whether a datagram arrives and the answer to it comes back.
    pub fn udp(&self) -> Result<bool> {
        let server = self.server.run(|| UdpSocket::bind(self.listen))?;
        let server = server.map_err(cannot(format!("listen on {}", self.listen)))?;
        let any = SocketAddr::new(unspecified(self.destination.ip()), 0);
        let client = self
            .client
            .run(|| UdpSocket::bind(self.source.unwrap_or(any)))?;
        let client = client.map_err(cannot("open a UDP socket"))?;
        let talk = || -> io::Result<bool> {
            for socket in [&client, &server] {
                socket.set_read_timeout(Some(self.timeout))?;
            }
            client.connect(self.destination)?;
            client.send(QUESTION)?;
            let mut buffer = [0; 64];
            let (length, from) = server.recv_from(&mut buffer)?;
            let is_asked = buffer[..length] == *QUESTION;
            server.send_to(ANSWER, from)?;
            let length = client.recv(&mut buffer)?;
            Ok(is_asked && buffer[..length] == *ANSWER)
        };
        as_answer(talk()).map_err(cannot(format!("talk with {}", self.destination)))
    }

    fn open_tcp(&self) -> io::Result<OwnedFd> {
        let family = family(self.destination.ip());
        let socket =
            rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(self.timeout))?;
        if let Some(source) = self.source {
            sockopt::set_socket_reuseaddr(&socket, true)?;
            rustix::net::bind(&socket, &source)?;
        }
        Ok(socket)
    }
}

/// Whether an answer to an echo request comes back.
pub fn ping(from: &Namespace, destination: IpAddr, timeout: Duration) -> Result<bool> {
    let opened = from.run(|| {
        let protocol = if destination.is_ipv4() {
            ipproto::ICMP
        } else {
            ipproto::ICMPV6
        };
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socket_with(family(destination), SocketType::RAW, flags, Some(protocol))
    })?;
    let socket = opened.map_err(cannot("open a raw socket"))?;
    // The checksum for IPv6 is the kernel's work; that for IPv4 is of constant bytes.
    let (request, reply) = match destination {
        IpAddr::V4(_) => ([8, 0, 0xf7, 0xff, 0, 0, 0, 0], [0, 0]),
        IpAddr::V6(_) => ([128, 0, 0, 0, 0, 0, 0, 0], [129, 0]),
    };
    let talk = || -> io::Result<bool> {
        let end = Instant::now() + timeout;
        rustix::net::sendto(
            &socket,
            &request,
            SendFlags::empty(),
            &SocketAddr::new(destination, 0),
        )?;
        let mut buffer = [0; 256];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(left))?;
            let (length, _, source) =
                rustix::net::recvfrom(&socket, &mut buffer[..], RecvFlags::empty())?;
            // For IPv4 the kernel hands over the header of IP too.
            let header = if destination.is_ipv4() {
                usize::from(buffer[0] & 0x0f) * 4
            } else {
                0
            };
            let source = source.and_then(|source| SocketAddr::try_from(source).ok());
            let is_from_there = source.is_some_and(|source| source.ip() == destination);
            if is_from_there
                && buffer[..length]
                    .get(header..)
                    .is_some_and(|p| p.starts_with(&reply))
            {
                return Ok(true);
            }
        }
    };
    as_answer(talk()).map_err(cannot(format!("ping {destination}")))
}

/// What a packet filter or missing route causes is an answer; anything else is an error.
fn as_answer(result: io::Result<bool>) -> io::Result<bool> {
    let refusals = [
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::TimedOut,
        ErrorKind::WouldBlock,
        ErrorKind::PermissionDenied,
        ErrorKind::NetworkUnreachable,
        ErrorKind::HostUnreachable,
        ErrorKind::UnexpectedEof,
    ];
    match result {
        // The last is what a connection says that did not come about in time.
        Err(error) if refusals.contains(&error.kind()) || is_in_progress(&error) => Ok(false),
        other => other,
    }
}

fn is_in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error())
}

fn is_read(stream: &mut TcpStream, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; expected.len()];
    stream.read_exact(&mut buffer)?;
    Ok(buffer == expected)
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    }
}

fn unspecified(address: IpAddr) -> IpAddr {
    if address.is_ipv4() {
        IpAddr::from([0; 4])
    } else {
        IpAddr::from([0; 16])
    }
}
