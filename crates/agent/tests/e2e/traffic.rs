//! Packets that go on while something changes.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::flow::{Machine, PATIENCE, eventually};

/// The time between two datagrams. Receivers on a busy machine still keep up.
const INTERVAL: Duration = Duration::from_millis(3);

/// Datagrams that are sent until this is dropped, and never answered.
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
    sent: AtomicU64,
    arrived: AtomicU64,
}

/// A TCP connection that stays open.
pub(crate) struct Conversation {
    client: TcpStream,
    server: TcpStream,
}

impl Datagrams {
    /// Starts sending. As nobody answers, policy is asked about every datagram.
    pub(crate) fn start(from: &Machine, to: &Machine, port: u16) -> Self {
        let shared = Arc::new(Shared::default());
        let destination = SocketAddr::new(to.ipv4(), port);
        let receiver = bind(to, destination);
        let sender = bind(from, SocketAddr::new(from.ipv4(), 0));
        let source = sender.local_addr().unwrap();
        let for_receiver = Arc::clone(&shared);
        let receive = move || {
            let mut buffer = [0; 16];
            while !for_receiver.is_over.load(Ordering::Acquire) {
                // Others may send to the same port.
                let datagram = receiver.recv_from(&mut buffer);
                if datagram.is_ok_and(|(_, from)| from == source) {
                    for_receiver.arrived.fetch_add(1, Ordering::AcqRel);
                }
            }
        };
        let for_sender = Arc::clone(&shared);
        let send = move || {
            while !for_sender.is_sent.load(Ordering::Acquire) {
                if sender.send_to(b"datagram", destination).is_ok() {
                    for_sender.sent.fetch_add(1, Ordering::AcqRel);
                }
                thread::sleep(INTERVAL);
            }
        };
        Self {
            shared,
            threads: vec![thread::spawn(receive), thread::spawn(send)],
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

    /// Waits until some more have been sent.
    pub(crate) fn go_on(&self) {
        let enough = self.sent() + 30;
        eventually("more datagrams are sent", &true, || self.sent() >= enough);
    }

    /// Waits until some more have arrived.
    pub(crate) fn await_arrivals(&self) {
        let enough = self.arrived() + 30;
        eventually("more datagrams arrive", &true, || self.arrived() >= enough);
    }

    /// Ends the sending and gives how many did not arrive, after some time for the last ones.
    pub(crate) fn lost(mut self) -> u64 {
        self.shared.is_sent.store(true, Ordering::Release);
        let send = self.threads.pop();
        if let Some(thread) = send {
            thread.join().unwrap();
        }
        let end = Instant::now() + Duration::from_secs(1);
        while self.arrived() < self.sent() && Instant::now() < end {
            thread::sleep(INTERVAL);
        }
        self.sent() - self.arrived()
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

impl Conversation {
    /// Opens a connection, which must come about.
    pub(crate) fn open(client: &Machine, server: &Machine, address: IpAddr, port: u16) -> Self {
        let address = SocketAddr::new(address, port);
        let listen = || TcpListener::bind(address);
        let listener = server.namespace.run(listen).unwrap().unwrap();
        let connect = || TcpStream::connect_timeout(&address, PATIENCE);
        let client = client.namespace.run(connect).unwrap().unwrap();
        let (server, _) = listener.accept().unwrap();
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
        }
        Self { client, server }
    }

    /// Says something both ways.
    #[track_caller]
    pub(crate) fn go_on(&mut self) {
        for word in [b"one", b"two"] {
            let mut heard = [0; 3];
            self.client.write_all(word).unwrap();
            self.server.read_exact(&mut heard).unwrap();
            self.server.write_all(&heard).unwrap();
            self.client.read_exact(&mut heard).unwrap();
            assert_eq!(heard, *word);
        }
    }
}

fn bind(machine: &Machine, address: SocketAddr) -> UdpSocket {
    let socket = machine.namespace.run(|| UdpSocket::bind(address));
    let socket = socket.unwrap().unwrap();
    let wait = Some(Duration::from_millis(50));
    socket.set_read_timeout(wait).unwrap();
    socket
}
