//! The process that holds a pod: its network namespace lives as long as it does, and it answers on the pod's ports.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::oneshot;
use tortie_kernel::route::Socket;
use tortie_kernel::{namespace, poll};

use super::record::{Record, start_of};
use crate::args::{PodProtocol, PodServe, Service};
use crate::commands::until_signal;

/// What it says once it answers on all ports.
const READY: &str = "ready";

/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

const LOOPBACK: u32 = 1;

/// The largest datagram.
const DATAGRAM: usize = 65536;

/// A process that was started.
pub(super) struct Holder {
    child: Child,
}

impl Holder {
    /// Starts it in a new network namespace, and waits until it answers on its ports.
    pub(super) fn start(
        namespace: &str,
        name: &str,
        services: &[Service],
        ends_with: Option<u32>,
    ) -> Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["pod", "serve", &format!("{namespace}/{name}")])
            .args(services.iter().map(|service| format!("--serve={service}")))
            .args(ends_with.map(|process| format!("--ends-with={process}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Signals of the terminal are for the command that was run there.
            .process_group(0);
        let spawned = namespace::run_in_new(|| command.spawn());
        let spawned = spawned.context(
            "no network namespace can be made: run this as root, or start `tortie up` without root",
        )?;
        let mut child = spawned.context("the pod's process cannot be started")?;
        let said = child.stdout.take().context("a pipe is missing")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        let holder = Self { child };
        match line.trim() {
            READY => Ok(holder),
            problem => {
                holder.end();
                bail!("the pod's process cannot serve: {problem}")
            }
        }
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn started(&self) -> Result<u64> {
        start_of(self.process()).context("the pod's process has ended")
    }

    /// Ends it, and with it the namespace.
    pub(super) fn end(mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A name for a container that no other has.
pub(super) fn new_id() -> Result<String> {
    const FILE: &str = "/proc/sys/kernel/random/uuid";
    let id = fs::read_to_string(FILE).with_context(|| format!("reading {FILE}"))?;
    Ok(id.trim().to_owned())
}

/// Ends the process of a pod, and waits until it has.
pub(super) async fn end(record: &Record) {
    let process = Pid::from_raw(record.process.cast_signed());
    let Some(process) = process.filter(|_| record.is_live()) else {
        return;
    };
    // Whoever may make pods may also end them; one that ends at this moment is no error.
    let _ = kill_process(process, Signal::TERM);
    let start = Instant::now();
    while record.is_live() && start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What the process does: it answers until it is told to end, or ends with another one.
pub(super) async fn serve(args: PodServe) -> Result<ExitCode> {
    let mut out = std::io::stdout();
    match open(&args).await {
        Ok(()) => writeln!(out, "{READY}")?,
        Err(error) => {
            writeln!(out, "{error:#}")?;
            return Ok(ExitCode::FAILURE);
        }
    }
    tokio::select! {
        () = until_signal()? => {}
        ended = end_of(args.ends_with) => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Becomes ready when a process ends, if one is given.
async fn end_of(process: Option<u32>) -> Result<()> {
    let Some(process) = process.and_then(|id| Pid::from_raw(id.cast_signed())) else {
        return std::future::pending().await;
    };
    let file = match pidfd_open(process, PidfdFlags::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (tell, ended) = oneshot::channel();
    thread::spawn(move || {
        let waited = poll::wait(&[file.as_fd()], None);
        // Nobody listens who was told to end before.
        let _ = tell.send(waited);
    });
    ended.await??;
    Ok(())
}

/// Takes all ports.
async fn open(args: &PodServe) -> Result<()> {
    let mut socket = Socket::open()?;
    socket.execute(|batch| batch.set_link_up(LOOPBACK, true))?;
    let name: Arc<str> = args.pod.name.as_str().into();
    for service in &args.serve {
        let taken = match service.protocol {
            PodProtocol::Tcp => answer_tcp(service.port, Arc::clone(&name)).await,
            PodProtocol::Udp => echo_udp(service.port).await,
        };
        taken.with_context(|| format!("{service} cannot be served"))?;
    }
    Ok(())
}

/// Answers each connection with a line that has the pod's name.
async fn answer_tcp(port: u16, name: Arc<str>) -> std::io::Result<()> {
    let listener = match TcpListener::bind(all_addresses(port, true)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(all_addresses(port, false)).await?,
    };
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                // There may be too many open; they become fewer.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let line = format!("{name}\n");
            // A client that went away is not interested.
            tokio::spawn(async move { stream.write_all(line.as_bytes()).await });
        }
    });
    Ok(())
}

/// Sends each datagram back.
async fn echo_udp(port: u16) -> std::io::Result<()> {
    let socket = match UdpSocket::bind(all_addresses(port, true)).await {
        Ok(socket) => socket,
        Err(_) => UdpSocket::bind(all_addresses(port, false)).await?,
    };
    tokio::spawn(async move {
        let mut datagram = vec![0; DATAGRAM];
        loop {
            // An error is about an earlier datagram, which nobody took.
            if let Ok((length, client)) = socket.recv_from(&mut datagram).await {
                let _ = socket.send_to(&datagram[..length], client).await;
            }
        }
    });
    Ok(())
}

/// All addresses of both IP versions, or of IPv4 where there is no other.
fn all_addresses(port: u16, both: bool) -> SocketAddr {
    let address = if both {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    };
    SocketAddr::new(address, port)
}
