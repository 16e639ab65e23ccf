//! Packets from one pod to another, one every half millisecond, and which of them arrive.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tortie_testkit::net::Namespace;

use super::world::{PORT, SERVER};

const INTERVAL: Duration = Duration::from_micros(500);

/// So many packets in a row must be missing for the way to count as closed.
const MISSING: u64 = 8;

/// The longest that a change may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Packets that are sent until this is dropped. Nobody answers, so that every packet is the first of its connection.
pub(crate) struct Traffic {
    start: Instant,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// When the last packet was sent that arrived, in microseconds from the start, and when the last one was sent.
    arrived: AtomicU64,
    sent: AtomicU64,
}

impl Traffic {
    pub(crate) fn start(client: &Namespace, server: &Namespace) -> Self {
        let start = Instant::now();
        let shared = Arc::new(Shared::default());
        let receiver = server
            .run(|| UdpSocket::bind((SERVER, PORT)))
            .unwrap()
            .unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let sender = client
            .run(|| UdpSocket::bind("0.0.0.0:0"))
            .unwrap()
            .unwrap();
        let threads = vec![
            {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || receive(&receiver, &shared))
            },
            {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || send(&sender, start, &shared))
            },
        ];
        Self {
            start,
            shared,
            threads,
        }
    }

    /// The time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits until packets from now on arrive, or do not, and tells when the first of them was sent.
    pub(crate) fn wait_until(&self, is_open: bool) -> Duration {
        let begin = self.now();
        let interval = u64::try_from(INTERVAL.as_micros()).unwrap();
        loop {
            std::thread::sleep(INTERVAL / 2);
            let arrived = self.shared.arrived.load(Ordering::Acquire);
            let sent = self.shared.sent.load(Ordering::Acquire);
            let from = u64::try_from(begin.as_micros()).unwrap();
            if is_open && arrived > from {
                return Duration::from_micros(arrived);
            }
            if !is_open && sent > from.max(arrived) + MISSING * interval * 2 {
                return Duration::from_micros(arrived.max(from));
            }
            assert!(
                self.now().saturating_sub(begin) < PATIENCE,
                "packets should {}arrive by now",
                if is_open { "" } else { "not " }
            );
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn send(socket: &UdpSocket, start: Instant, shared: &Shared) {
    while !shared.is_over.load(Ordering::Acquire) {
        let now = u64::try_from(start.elapsed().as_micros()).unwrap();
        let _ = socket.send_to(&now.to_be_bytes(), (SERVER, PORT));
        shared.sent.store(now, Ordering::Release);
        std::thread::sleep(INTERVAL);
    }
}

fn receive(socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 8];
    while !shared.is_over.load(Ordering::Acquire) {
        if socket.recv_from(&mut buffer).is_ok() {
            shared
                .arrived
                .fetch_max(u64::from_be_bytes(buffer), Ordering::AcqRel);
        }
    }
}
