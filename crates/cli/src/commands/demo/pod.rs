//! A pod: a thread in a network namespace of its own, with servers, in which clients can be run.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tortie_kernel::link::{Link, Mac};
use tortie_kernel::namespace;
use tortie_kernel::route::{Route, Scope, Socket};
use tortie_kernel::sysctl::{Group, Sysctl};

use super::cast::{DNS, IpVersion, Role};

/// Pods send everything here, and the node answers for it.
pub(super) const GATEWAY_IPV4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);

/// The address that the kernel makes of Calico's hardware address.
const GATEWAY_IPV6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0xecee, 0xeeff, 0xfeee, 0xeeee);

/// Datagrams that begin so are counted and not answered.
pub(super) const TICK: &[u8; 4] = b"tick";

/// The interface in a pod.
const INSIDE: &str = "eth0";

const LOOPBACK: u32 = 1;

/// The table with the addresses of a machine itself.
const LOCAL_TABLE: u32 = 255;

/// How long interfaces may take until they can be used. Mostly it takes a few milliseconds.
const READY: Duration = Duration::from_secs(5);

/// A pod, which ends when this is dropped.
pub(super) struct Pod {
    pub(super) role: &'static Role,
    /// The thread, whose network namespace is the pod's.
    pub(super) thread: u32,
    /// The hardware address of its interface.
    pub(super) mac: Mac,
    /// Numbers of the ticks that arrived.
    pub(super) ticks: Arc<Mutex<Vec<u32>>>,
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

/// What the thread tells once it runs.
struct Started {
    runtime: Handle,
    mac: Mac,
}

impl Pod {
    /// Starts a pod and joins it to the node, of which `node` is the routing.
    pub(super) fn start(
        role: &'static Role,
        versions: &'static [IpVersion],
        node: &mut Socket,
    ) -> Result<Self> {
        let (tell_namespace, namespace) = mpsc::channel();
        let (tell_joined, joined) = mpsc::channel();
        let (tell_started, started) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let ticks = Arc::new(Mutex::new(Vec::new()));
        let for_server = Arc::clone(&ticks);
        let body = move || {
            // Who does not listen any more needs no answer.
            let _ = tell_namespace.send(new_namespace());
            if joined.recv().is_err() {
                return;
            }
            let (runtime, mac) = match set_up(role, versions) {
                Ok(parts) => parts,
                Err(error) => {
                    let _ = tell_started.send(Err(error));
                    return;
                }
            };
            let opened = runtime.block_on(serve(role, versions, &for_server));
            let _ = tell_started.send(opened.map(|()| Started {
                runtime: runtime.handle().clone(),
                mac,
            }));
            let _ = runtime.block_on(ended);
        };
        thread::Builder::new()
            .name(role.name.to_owned())
            .spawn(body)?;
        let lost = || anyhow!("the thread of pod {} ended", role.name);
        let (file, thread) = namespace.recv().map_err(|_| lost())??;
        join(role, node, &file).with_context(|| format!("pod {} has no network", role.name))?;
        tell_joined.send(()).map_err(|_| lost())?;
        let started = started.recv().map_err(|_| lost())?;
        let Started { runtime, mac } =
            started.with_context(|| format!("pod {} does not start", role.name))?;
        await_ready(node, &role.interface(), versions)?;
        Ok(Self {
            role,
            thread,
            mac,
            ticks,
            runtime,
            _end: end,
        })
    }

    /// Runs something in the pod. Sockets that it opens and threads that it starts are the pod's.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let task = self.runtime.spawn(work);
        task.await.context("something in a pod went wrong")
    }
}

/// Moves the calling thread into a namespace; gives a file of that, and the thread's number.
fn new_namespace() -> Result<(File, u32)> {
    let file = namespace::move_to_new().context("a network namespace cannot be made")?;
    let path = std::fs::read_link("/proc/thread-self")?;
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    Ok((file, number.context("this thread has no number")?))
}

/// Joins the node and a pod's namespace with a veth pair.
fn join(role: &Role, node: &mut Socket, namespace: &File) -> Result<()> {
    let interface = role.interface();
    node.execute(|batch| batch.create_veth(&interface, INSIDE, namespace.as_fd()))?;
    let link = find(node, &interface)?;
    node.execute(|batch| {
        batch.set_link_mac(link.index, Mac::CALICO);
        batch.set_link_up(link.index, true);
    })?;
    Ok(())
}

/// Sets up the network of the calling thread, and a runtime in it.
fn set_up(role: &Role, versions: &[IpVersion]) -> Result<(tokio::runtime::Runtime, Mac)> {
    if versions.contains(&IpVersion::V6) {
        for setting in ["disable_ipv6", "accept_dad"] {
            Sysctl::of_interface(Group::Ipv6, INSIDE, setting)?.write("0")?;
        }
    }
    let mut socket = Socket::open()?;
    let link = find(&mut socket, INSIDE)?;
    socket.execute(|batch| {
        batch.set_link_up(LOOPBACK, true);
        batch.set_link_up(link.index, true);
        let device = Some(link.index);
        for address in role.addresses(versions) {
            batch.add_address(link.index, address.into());
            let (gateway, everything): (IpAddr, IpNet) = match address {
                IpAddr::V4(_) => (GATEWAY_IPV4.into(), Ipv4Net::default().into()),
                IpAddr::V6(_) => (GATEWAY_IPV6.into(), Ipv6Net::default().into()),
            };
            if gateway.is_ipv4() {
                batch.add_route(&Route {
                    device,
                    scope: Scope::LINK,
                    ..Route::to(gateway.into())
                });
            }
            batch.add_route(&Route {
                device,
                gateway: Some(gateway),
                ..Route::to(everything)
            });
        }
    })?;
    await_ready(&mut socket, INSIDE, versions)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok((
        runtime,
        link.mac.context("its interface has no hardware address")?,
    ))
}

/// Waits until an interface carries packets and its addresses are in use: the kernel sees to that on its own time.
fn await_ready(socket: &mut Socket, interface: &str, versions: &[IpVersion]) -> Result<()> {
    let end = Instant::now() + READY;
    loop {
        let link = find(socket, interface)?;
        let local = socket.routes(LOCAL_TABLE)?;
        let in_use = |address: &IpNet| {
            let mut destinations = local.iter().map(|route| route.destination);
            destinations.any(|local| local == address.addr().into())
        };
        // With IPv6 an interface has a link-local address, which is the last to come. Without, those do not matter.
        let with_ipv6 = versions.contains(&IpVersion::V6);
        let (ipv6, ipv4): (Vec<IpNet>, Vec<IpNet>) = link
            .addresses
            .iter()
            .partition(|address| matches!(address, IpNet::V6(_)));
        let has_ipv6 = !ipv6.is_empty() && ipv6.iter().all(in_use);
        if link.is_running && (has_ipv6 || !with_ipv6) && ipv4.iter().all(in_use) {
            return Ok(());
        }
        if Instant::now() > end {
            bail!(
                "interface {interface} is not ready after {} s",
                READY.as_secs()
            );
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn find(socket: &mut Socket, interface: &str) -> Result<Link> {
    let link = socket.link(interface)?;
    link.with_context(|| format!("there is no interface {interface}"))
}

/// Starts the servers of a pod, which answer with its name.
async fn serve(
    role: &'static Role,
    versions: &[IpVersion],
    ticks: &Arc<Mutex<Vec<u32>>>,
) -> Result<()> {
    for address in role.addresses(versions) {
        let listener = TcpListener::bind(SocketAddr::new(address, role.port)).await?;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // A client that went away is not interested.
                let _ = stream.write_all(role.name.as_bytes()).await;
            }
        });
        let socket = UdpSocket::bind(SocketAddr::new(address, DNS)).await?;
        let ticks = Arc::clone(ticks);
        tokio::spawn(async move {
            let mut buffer = [0; 64];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                let asked = &buffer[..length];
                if let Some(number) = asked.strip_prefix(TICK) {
                    let number = number.try_into().map(u32::from_ne_bytes);
                    let mut ticks = ticks.lock().unwrap_or_else(PoisonError::into_inner);
                    ticks.extend(number.ok());
                } else {
                    let answer = [asked, role.name.as_bytes()].concat();
                    let _ = socket.send_to(&answer, client).await;
                }
            }
        });
    }
    Ok(())
}
