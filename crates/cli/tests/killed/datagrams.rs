//! Packets that go on while agents come and go.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tortie_testkit::net::Pod;

/// The time between two datagrams. Receivers on a busy machine still keep up.
const INTERVAL: Duration = Duration::from_millis(3);

/// How long it may take until packets come through.
const PATIENCE: Duration = Duration::from_secs(30);

/// Datagrams from one pod to another, until this is dropped. As nobody answers, policy is asked about each of them.
pub(crate) struct Datagrams {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
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
    pub(crate) fn start(from: &Pod, to: &Pod, port: u16) -> Self {
        let shared = Arc::new(Shared::default());
        let destination = SocketAddr::new(address(to), port);
        let receiver = bind(to, destination);
        let sender = bind(from, SocketAddr::new(address(from), 0));
        let for_receiver = Arc::clone(&shared);
        let receive = move || {
            let mut number = [0; 8];
            while !for_receiver.is_over.load(Ordering::Acquire) {
                if receiver.recv(&mut number).is_ok() {
                    for_receiver.arrived.fetch_add(1, Ordering::AcqRel);
                    let mut missing = for_receiver.missing.lock().unwrap();
                    missing.remove(&u64::from_be_bytes(number));
                }
            }
        };
        let for_sender = Arc::clone(&shared);
        let send = move || {
            while !for_sender.is_sent.load(Ordering::Acquire) {
                let number = for_sender.sent.load(Ordering::Acquire);
                let mut missing = for_sender.missing.lock().unwrap();
                missing.insert(number, Instant::now());
                drop(missing);
                // A node that has no way to the other pod says so; that is no less a loss.
                let _ = sender.send_to(&number.to_be_bytes(), destination);
                for_sender.sent.store(number + 1, Ordering::Release);
                thread::sleep(INTERVAL);
            }
        };
        Self {
            shared,
            threads: vec![thread::spawn(receive), thread::spawn(send)],
        }
    }

    /// Waits until packets come through: routes come a moment after the rules.
    pub(crate) fn await_open(from: &Pod, to: &Pod, port: u16) {
        let first = Self::start(from, to, port);
        let end = Instant::now() + PATIENCE;
        while first.arrived() == 0 {
            assert!(Instant::now() < end, "nothing comes to port {port}");
            thread::sleep(INTERVAL);
        }
    }

    /// How many have arrived.
    pub(crate) fn arrived(&self) -> u64 {
        self.shared.arrived.load(Ordering::Acquire)
    }

    /// How many were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Acquire)
    }

    /// Ends the sending and gives when those were sent that did not arrive, after some time for the last ones.
    pub(crate) fn lost(mut self) -> Vec<Instant> {
        self.shared.is_sent.store(true, Ordering::Release);
        if let Some(sender) = self.threads.pop() {
            sender.join().unwrap();
        }
        let end = Instant::now() + Duration::from_secs(1);
        while self.arrived() < self.sent() && Instant::now() < end {
            thread::sleep(INTERVAL);
        }
        let missing = self.shared.missing.lock().unwrap();
        missing.values().copied().collect()
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        for flag in [&self.shared.is_sent, &self.shared.is_over] {
            flag.store(true, Ordering::Release);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn address(pod: &Pod) -> IpAddr {
    *pod.addresses.first().unwrap()
}

fn bind(pod: &Pod, address: SocketAddr) -> UdpSocket {
    let socket = pod.namespace.run(|| UdpSocket::bind(address));
    let socket = socket.unwrap().unwrap();
    let wait = Some(Duration::from_millis(50));
    socket.set_read_timeout(wait).unwrap();
    socket
}
