//! Datagrams that go on while something changes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::error::{Result, cannot};
use super::namespace::Namespace;

/// The time between two datagrams. Receivers on a busy machine still keep up.
const INTERVAL: Duration = Duration::from_millis(3);

/// How long the receiver waits before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// How long the last datagrams may be under way.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// How long it may take until packets come through, or stop to.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many datagrams show that something goes on.
const SOME: u64 = 30;

/// Datagrams that are sent until this is dropped. As nobody answers, policy is asked about each of them.
#[derive(Debug)]
pub struct Datagrams {
    shared: Arc<Shared>,
    sender: Option<JoinHandle<()>>,
    receiver: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Nothing is to be sent any more.
    is_sent: AtomicBool,
    /// Nothing is to be received any more.
    is_over: AtomicBool,
    /// When each was sent that has not arrived, by its number.
    missing: Mutex<BTreeMap<u64, Instant>>,
    sent: AtomicU64,
    arrived: AtomicU64,
}

impl Datagrams {
    /// Starts sending from an address of one namespace to an address and port of another.
    pub fn start(
        from: &Namespace,
        source: IpAddr,
        to: &Namespace,
        destination: SocketAddr,
    ) -> Result<Self> {
        let receiver = bind(to, destination)?;
        let sender = bind(from, SocketAddr::new(source, 0))?;
        let source = sender
            .local_addr()
            .map_err(cannot("read a socket's address"))?;
        let shared = Arc::new(Shared::default());
        let (ours, theirs) = (Arc::clone(&shared), Arc::clone(&shared));
        Ok(Self {
            shared,
            sender: Some(thread::spawn(move || ours.send(&sender, destination))),
            receiver: Some(thread::spawn(move || theirs.receive(&receiver, source))),
        })
    }

    /// How many have arrived.
    pub fn arrived(&self) -> u64 {
        self.shared.arrived.load(Ordering::Acquire)
    }

    /// How many were sent.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Acquire)
    }

    /// Waits until some more have been sent.
    #[track_caller]
    pub fn go_on(&self) {
        let enough = self.sent() + SOME;
        wait("no more datagrams are sent", || self.sent() >= enough);
    }

    /// Waits until some more have arrived.
    #[track_caller]
    pub fn await_arrivals(&self) {
        let enough = self.arrived() + SOME;
        wait("no more datagrams arrive", || self.arrived() >= enough);
    }

    /// Ends the sending and gives when those were sent that did not arrive, after some time for the last ones.
    pub fn lost(mut self) -> Vec<Instant> {
        self.shared.is_sent.store(true, Ordering::Release);
        join(self.sender.take());
        let end = Instant::now() + UNDER_WAY;
        while !self.shared.missing().is_empty() && Instant::now() < end {
            thread::sleep(INTERVAL);
        }
        self.shared.missing().values().copied().collect()
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.shared.is_sent.store(true, Ordering::Release);
        self.shared.is_over.store(true, Ordering::Release);
        join(self.sender.take());
        join(self.receiver.take());
    }
}

impl Shared {
    fn send(&self, socket: &UdpSocket, destination: SocketAddr) {
        while !self.is_sent.load(Ordering::Acquire) {
            let number = self.sent.load(Ordering::Acquire);
            self.missing().insert(number, Instant::now());
            // A node that has no way to the destination says so; that is no less a loss.
            let _ = socket.send_to(&number.to_be_bytes(), destination);
            self.sent.store(number + 1, Ordering::Release);
            thread::sleep(INTERVAL);
        }
    }

    fn receive(&self, socket: &UdpSocket, source: SocketAddr) {
        let mut number = [0; 8];
        while !self.is_over.load(Ordering::Acquire) {
            // Others may send to the same port.
            if socket
                .recv_from(&mut number)
                .is_ok_and(|(_, from)| from == source)
            {
                self.missing().remove(&u64::from_be_bytes(number));
                self.arrived.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    fn missing(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bind(namespace: &Namespace, address: SocketAddr) -> Result<UdpSocket> {
    let open = || -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(LOOK))?;
        Ok(socket)
    };
    namespace
        .run(open)?
        .map_err(cannot(format!("open a socket at {address}")))
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        // A panic there has been printed; tests fail by what did not arrive.
        let _ = thread.join();
    }
}

#[track_caller]
fn wait(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(INTERVAL);
    }
}
